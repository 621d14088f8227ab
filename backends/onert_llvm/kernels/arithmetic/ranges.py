"""Bounds of the values of expression trees, from the ranges of the integers that they read."""

from __future__ import annotations

from .expression import Apply, Const, Expr, Fn, Kind

Bounds = tuple[float, float]

_SLACK = 1e-6
"""More than the relative error of a float32 operation."""

_MOST = 2.0**30
"""Beyond it 32-bit integers might wrap."""

_SMALL = (Kind.I8, Kind.I16, Kind.U8, Kind.U16)
_WIDENED = (Kind.I32, Kind.F32)


def bounds(tree: Expr) -> Bounds | None:
    """The least and the greatest value, or numbers beyond these; None if they are not known or may be NaN."""
    return _bounds(tree, {})


def _bounds(e: Expr, done: dict[Expr, Bounds | None]) -> Bounds | None:
    if e not in done:
        done[e] = _within(_found(e, done))
    return done[e]


def _within(found: Bounds | None) -> Bounds | None:
    if found is None or not all(abs(v) < _MOST for v in found):  # false for NaN too
        return None
    low, high = found
    return low - abs(low) * _SLACK, high + abs(high) * _SLACK


def _found(e: Expr, done: dict[Expr, Bounds | None]) -> Bounds | None:
    if isinstance(e, Const):
        return float(e.value), float(e.value)
    if not isinstance(e, Apply):
        return _stored(e.kind)
    if e.kind not in _WIDENED:
        return None
    given = [_bounds(a, done) for a in (e.args[1:] if e.fn is Fn.SELECT else e.args)]
    known = [g for g in given if g is not None]
    return _applied(e.fn, known) if len(known) == len(given) else None


def _stored(kind: Kind) -> Bounds | None:
    if kind not in _SMALL:
        return None
    bits = kind.memory.width
    low = 0 if kind.unsigned else -(1 << bits - 1)
    return float(low), float(low + (1 << bits) - 1)


def _applied(fn: Fn, given: list[Bounds]) -> Bounds | None:
    (low, high), *others = given
    if fn in (Fn.CAST, Fn.ROUND):
        return low - 1, high + 1
    if fn is Fn.NEG:
        return -high, -low
    if fn is Fn.SELECT:
        return min(low, others[0][0]), max(high, others[0][1])
    if fn is Fn.ADD:
        return low + others[0][0], high + others[0][1]
    if fn is Fn.SUB:
        return low - others[0][1], high - others[0][0]
    if fn is Fn.MUL:
        return _product((low, high), others[0])
    if fn in (Fn.DIV, Fn.WHOLE_OF) and others[0][0] * others[0][1] > 0:
        return _product((low, high), (1 / others[0][0], 1 / others[0][1]))
    return None


def _product(x: Bounds, y: Bounds) -> Bounds:
    every = [a * b for a in x for b in y]
    return min(every), max(every)
