"""The elements of reductions and pools, and how their results are stored."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, Kernel, Type, Val, View, vec
from onert_llvm.kernels.arithmetic.expression import Expr, Kind, evaluate
from onert_llvm.kernels.contraction.epilogue import ACC

from .fold import Fold, NanTracker, fold_lanes, tracks_nan

_WAYS = 4
"""Registers of a row that are folded in parallel."""


@frozen
class Elements(Value):
    """Elements of a `kind` and how they are folded; a `mean` is a sum that is divided."""

    fold: Fold
    kind: Kind = Kind.F32
    mean: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots for storing a result."""
        return ()

    @property
    def accumulator(self) -> Type:
        """The type of totals."""
        return self.kind.memory

    @property
    def stored(self) -> Type:
        """The type of results in memory."""
        return self.kind.memory

    @property
    def divisors(self) -> Type:
        """The type of a mean's divisors; floats are multiplied by the reciprocal."""
        return F32

    def lanes(self, k: Kernel) -> int:
        """Elements per register of totals."""
        return k.isa.f32

    def start(self, k: Kernel, lanes: int) -> Val:
        """The initial totals: the neutral element."""
        return k.const(vec(self.accumulator, lanes), self.fold.start(self.kind))

    @property
    def tracks_nan(self) -> bool:
        """Whether results must be NaN if an element is."""
        return tracks_nan(self.fold, self.kind)

    def nan_tracker(self, k: Kernel) -> NanTracker:
        return NanTracker(k, self.fold, self.kind, k.isa.f32)

    def load(self, place: View, lanes: int, mask: Val | None = None) -> Val:
        """Load elements in the type that is folded."""
        return place.load(lanes, mask)

    def join(self, a: Val, b: Val) -> Val:
        return self.fold.join(a, b, self.kind)

    def join_numbers(self, a: Val, b: Val) -> Val:
        """The same where `nan_tracker` tracks NaN."""
        return self.fold.join_numbers(a, b, self.kind)

    def along(self, k: Kernel, row: View, width: Val) -> Val:
        """Fold `width` contiguous elements: several registers in parallel, then the rest, then the lanes."""
        lanes, start, nan_tracker = k.isa.f32, self.start(k, k.isa.f32), self.nan_tracker(k)
        totals = [k.var(start) for _ in range(_WAYS)]
        block, whole = width - width % (lanes * _WAYS), width - width % lanes

        def add(elements: list[Val]) -> None:
            for total, x in zip(totals, elements, strict=False):
                total.set(self.join_numbers(total.get(), x))
            nan_tracker.see(elements)

        with k.loop(block, step=lanes * _WAYS) as at:
            add([self.load(row[at + i * lanes], lanes) for i in range(_WAYS)])
        with k.loop(whole, block, step=lanes) as at:
            add([self.load(row[at], lanes)])
        with k.when(whole < width):
            mask = k.mask(lanes, width - whole)
            add([mask.select(self.load(row[whole], lanes, mask), start)])
        first, second = (self.join_numbers(totals[i].get(), totals[i + 1].get()) for i in (0, 2))
        return nan_tracker.with_nan(fold_lanes(self.fold, self.join_numbers(first, second), self.kind))

    def divisor(self, k: Kernel, count: Val) -> Val:
        """The divisor of means of `count` elements."""
        return k.f32(1.0) / count.cast(F32)

    def finish(self, k: Kernel, task: Task, total: Val, divisor: Val | None) -> Val:
        """A register of totals converted to stored results."""
        raise NotImplementedError


@frozen
class Plain(Elements):
    """Elements folded unchanged or `squared`, then `tree`. Only means of float32 are supported."""

    squared: bool = False
    tree: Expr = ACC

    def load(self, place: View, lanes: int, mask: Val | None = None) -> Val:
        found = place.load(lanes, mask)
        return found * found if self.squared else found

    def finish(self, k: Kernel, task: Task, total: Val, divisor: Val | None) -> Val:
        value = total if divisor is None else total * divisor
        return value if self.tree == ACC else evaluate(k, self.tree, lambda _: value, value)
