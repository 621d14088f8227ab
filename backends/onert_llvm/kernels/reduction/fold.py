"""How elements are folded, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import reduce
from operator import or_

from onert_llvm.irbuilder import I1, Kernel, Val
from onert_llvm.kernels.arithmetic.expression import Kind


class Fold(Enum):
    """How elements are folded: `MAX` and `MIN` of floats are NaN if any element is, `MAX_NUMBER` skips NaNs."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    MAX_NUMBER = "max_number"

    def start(self, kind: Kind) -> float | int:
        """The neutral element."""
        if self in (Fold.SUM, Fold.PROD):
            return 0 if self is Fold.SUM else 1
        if kind.is_float:
            return float("inf" if self is Fold.MIN else "-inf")
        bits = int(kind.memory.width)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind.signed else (0, (1 << bits) - 1)
        return low if self is Fold.MAX else high

    def join(self, a: Val, b: Val, kind: Kind = Kind.F32) -> Val:
        if self is Fold.SUM:
            return a + b
        if self is Fold.PROD:
            return a * b
        if self is Fold.MAX_NUMBER:
            return a.max(b)
        if not kind.unsigned:
            return a.maximum(b) if self is Fold.MAX else a.minimum(b)
        return a.umax(b) if self is Fold.MAX else a.umin(b)

    def join_numbers(self, a: Val, b: Val, kind: Kind = Kind.F32) -> Val:
        """The same, but for floats a NaN may be lost; `NanTracker` tracks those."""
        if tracks_nan(self, kind):
            return a.max(b) if self is Fold.MAX else a.min(b)
        return self.join(a, b, kind)


def tracks_nan(fold: Fold, kind: Kind) -> bool:
    """Whether a fold has to track NaN elements."""
    return kind is Kind.F32 and fold in (Fold.MAX, Fold.MIN)


def unordered(elements: Sequence[Val]) -> Val:
    """The lanes in which any element is NaN; two elements take one comparison."""
    return reduce(or_, (a.unordered(b) for a, b in zip(elements[::2], [*elements[1::2], elements[-1]], strict=False)))


class NanTracker:
    """Tracks per lane whether any element was NaN: two elements take one comparison, and no total waits for it.

    For folds and kinds without NaN it does nothing.
    """

    def __init__(self, k: Kernel, fold: Fold, kind: Kind, lanes: int) -> None:
        self._lanes = k.var(k.zeros(I1, lanes)) if tracks_nan(fold, kind) else None

    def see(self, elements: Sequence[Val]) -> None:
        """Include some elements."""
        if self._lanes is not None:
            self._lanes.set(self._lanes.get() | unordered(elements))

    @property
    def seen(self) -> Val | None:
        """The lanes in which an element was NaN; None if they are not tracked."""
        return None if self._lanes is None else self._lanes.get()

    def with_nan(self, total: Val) -> Val:
        """The total, NaN in lanes that had a NaN element; for a scalar, if any lane had one."""
        seen = self.seen
        if seen is None:
            return total
        return (seen if total.lanes > 1 else seen.any()).select(total.like(float("nan")), total)


def fold_lanes(fold: Fold, x: Val, kind: Kind = Kind.F32) -> Val:
    """One value from all lanes, folding halves; NaN may be lost, as in `join_numbers`."""
    return x.over_lanes(lambda a, b: fold.join_numbers(a, b, kind))
