"""Factors with which sums of multiples of two bytes reproduce every result of TFLite's additions and subtractions.

All 65536 results are checked: most against exact arithmetic, from which no candidate deviates much, and those close to
a rounding boundary against what a kernel computes.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from attrs import frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert_llvm.kernels.elementwise.byte_sums import BITS
from onert_llvm.target.isa import Isa

from .int8_lookup_tables import all_bytes, pair_table

_STEPS = 8
"""The range of the search for float offsets, in steps of 2**-18."""

_UNITS, _OFFSETS = 2, 512
"""The range of the search for integers: the factors and the offset, in units of the last place."""

_ROWS = 48
"""Rows of the result table that are checked at once: few enough that their memory is reused."""


@frozen(eq=False)
class _Near:
    """Pairs of operands whose results are near a rounding boundary, and these results."""

    x: Array
    y: Array
    exact: Array


def _near(op: Binary, types: CallTypes, real: tuple[float, float], start: float, error: float) -> _Near | None:
    """The pairs whose `x · real[0] + y · real[1] + start` is within `error` of a half; None if other results differ."""
    a, b = (all_bytes(types.input(i)).astype(np.float64) for i in (0, 1))
    bounds, found = op.activation.bounds(types.output), []
    for part in (slice(at, at + _ROWS) for at in range(0, 256, _ROWS)):
        exact = pair_table(op, types, part)
        sums = a[part, None] * real[0] + (b * real[1] + start)
        rounded = np.rint(sums)
        near = np.abs(sums - rounded) > 0.5 - error
        if not np.all(near[np.clip(rounded, *bounds) != exact]):
            return None
        rows, columns = np.nonzero(near)
        found.append((a[part][rows], b[columns], exact[rows, columns].astype(np.float64)))
    return _Near(*(np.concatenate(each) for each in zip(*found, strict=True)))


def whole_factors(op: Binary, types: CallTypes) -> dict[str, int] | None:
    """The slots with which `ByteSums` gives every result; None if no such numbers are found."""
    x, y, out = types.input(0), types.input(1), types.output
    moved = 128 if out.dtype is DType.UINT8 else 0
    real = (x.scale / out.scale, (1 if op.kind is BinaryKind.ADD else -1) * y.scale / out.scale)
    start = out.zero_point - x.zero_point * real[0] - y.zero_point * real[1]
    middle = start + moved * (real[0] + real[1]) + 0.5
    reach = 128 * (abs(real[0]) + abs(real[1])) + abs(middle) + 2
    if not 0 < reach < 1 << 13:
        return None
    right = min(31 - math.frexp(reach)[1], *(BITS - 1 - math.frexp(abs(r) + 2.0**-BITS * 1024)[1] for r in real))
    unit = 2.0**-right
    near = _near(op, types, real, start, (256 * (_UNITS + 0.5) + _OFFSETS + 1) * unit) if right > 0 else None
    if near is None:
        return None
    low, high = op.activation.bounds(out)
    at_least = np.where(near.exact > low, near.exact, -np.inf) / unit
    below = np.where(near.exact < high, near.exact + 1, np.inf) / unit
    nominal, (p, q) = round(middle / unit), (round(r / unit) for r in real)
    steps = sorted(range(-_UNITS, _UNITS + 1), key=abs)
    for i, j in product(steps, steps):
        sums = (p + i) * (near.x - moved) + (q + j) * (near.y - moved)
        first = max(nominal - _OFFSETS, (at_least - sums).max(initial=-np.inf))
        last = min(nominal + _OFFSETS, (below - sums).min(initial=np.inf) - 1)
        if first <= last:
            offset, factors = int(first + last) // 2, (p + i, q + j)
            words, digits = ([f >> 8 & 0xFFFF for f in factors], [(f & 0xFF) << 8 for f in factors])
            halves = {"words": words, "digits": digits}
            return {name: a | b << 16 for name, (a, b) in halves.items()} | {"offset": offset, "right": right}
    return None


def affine_factors(op: Binary, types: CallTypes, isa: Isa) -> tuple[float, float, float] | None:
    """Float32 factors of x and y and an offset with which `Affine` gives every result; None if none are found."""
    x, y, out = types.input(0), types.input(1), types.output
    sign = 1 if op.kind is BinaryKind.ADD else -1
    real = (np.float32(x.scale / out.scale), np.float32(sign * y.scale / out.scale))
    start = out.zero_point - x.zero_point * float(real[0]) - y.zero_point * float(real[1])
    most = [float(np.abs(all_bytes(t).astype(np.int64)).max()) for t in (x, y)]
    reach = most[0] * abs(float(real[0])) + most[1] * abs(float(real[1])) + abs(start) + 1
    if reach >= 1 << 13 or min(np.abs(real)) < 2.0**-16:
        return None  # float64 could not represent a trial's results
    near = _near(op, types, (float(real[0]), float(real[1])), start, _most_error(real, reach))
    if near is None:
        return None
    trial = _Trial(near, op.activation.bounds(out), isa.fma)
    steps = sorted(range(-_STEPS, _STEPS + 1), key=abs)
    nearby = [(r, np.nextafter(r, np.float32(0)), np.nextafter(r, 2 * r)) for r in real]
    for p, q, step in product(*nearby, steps):
        factors = (p, q, np.float32(start + step * 2.0**-18))
        if trial.agrees(*factors):
            return float(p), float(q), float(factors[2])
    return None


def _most_error(factors: tuple[np.float32, np.float32], reach: float) -> float:
    """The largest difference between a trial's results and exact arithmetic on `factors`, if nothing exceeds `reach`.

    Candidate factors differ by one unit in the last place, times up to 255; the offset differs by its steps; and five
    results below `reach` are rounded to float32: two products, two sums, the offset. Doubled, to be safe.
    """
    other = 255 * sum(float(np.spacing(np.abs(f))) for f in factors) + _STEPS * 2.0**-18
    return 2 * (other + 5 * float(np.spacing(np.float32(reach))))


@frozen(eq=False)
class _Trial:
    """Pairs of operands with their exact results, and the target's arithmetic."""

    near: _Near
    bounds: tuple[int, int]
    fma: bool

    def agrees(self, p: np.float32, q: np.float32, offset: np.float32) -> bool:
        total = self._added(self.near.y, q, self._added(self.near.x, p, np.float64(offset)))
        return bool(np.array_equal(np.clip(np.rint(total), *self.bounds), self.near.exact))

    def _added(self, x: Array, factor: np.float32, to: Array | np.float64) -> Array:
        """`x * factor + to` in float32, computed in float64, where everything before the last rounding is exact."""
        product_ = x * np.float64(factor)
        if not self.fma:
            product_ = product_.astype(np.float32).astype(np.float64)
        out: Array = np.asarray(product_ + to).astype(np.float32).astype(np.float64)
        return out
