"""What reductions and pools fold: elements of some kind, and how their results are stored."""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, I32, Kernel, Type, Val, View, vec
from onert_llvm.kernels.arithmetic.expression import Expr, Kind, evaluate
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, as_byte, load_lanes, stored
from onert_llvm.kernels.arithmetic.requantize_int16 import ShortScaling
from onert_llvm.kernels.contraction.byte_terms import add_row_sums
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.contraction.int8_microkernel import offset

from .fold import Fold, Spoilt, fold_lanes, spoils

_WAYS = 4
"""Registers of a row that are folded side by side."""


@frozen
class Elements(Value):
    """Elements of a `kind` and how they are put together; a `mean` is a sum that is divided."""

    fold: Fold
    kind: Kind = Kind.F32
    mean: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        """What a result is stored with."""
        return ()

    @property
    def accumulator(self) -> Type:
        """The type of totals."""
        return self.kind.memory

    @property
    def divisors(self) -> Type:
        """The type of what means are divided by: floats are multiplied by its reciprocal."""
        return F32

    def lanes(self, k: Kernel) -> int:
        """Elements of a register of totals."""
        return k.isa.f32

    def start(self, k: Kernel, lanes: int) -> Val:
        """Where totals begin: it changes nothing."""
        return k.const(vec(self.accumulator, lanes), self.fold.start(self.kind))

    @property
    def spoils(self) -> bool:
        """Whether results are not numbers where an element is none."""
        return spoils(self.fold, self.kind)

    def spoilt(self, k: Kernel) -> Spoilt:
        return Spoilt(k, self.fold, self.kind, k.isa.f32)

    def load(self, place: View, lanes: int, mask: Val | None = None) -> Val:
        """Elements as they are folded."""
        return place.load(lanes, mask)

    def join(self, a: Val, b: Val) -> Val:
        return self.fold.join(a, b, self.kind)

    def join_numbers(self, a: Val, b: Val) -> Val:
        """Likewise, where `spoilt` tells what is not a number."""
        return self.fold.join_numbers(a, b, self.kind)

    def along(self, k: Kernel, row: View, width: Val) -> Val:
        """One total from `width` neighbours: several side by side, then the rest, then the lanes."""
        lanes, start, spoilt = k.isa.f32, self.start(k, k.isa.f32), self.spoilt(k)
        totals = [k.var(start) for _ in range(_WAYS)]
        block, whole = width - width % (lanes * _WAYS), width - width % lanes

        def add(elements: list[Val]) -> None:
            for total, x in zip(totals, elements, strict=False):
                total.set(self.join_numbers(total.get(), x))
            spoilt.see(elements)

        with k.loop(block, step=lanes * _WAYS) as at:
            add([self.load(row[at + i * lanes], lanes) for i in range(_WAYS)])
        with k.loop(whole, block, step=lanes) as at:
            add([self.load(row[at], lanes)])
        with k.when(whole < width):
            mask = k.mask(lanes, width - whole)
            add([mask.select(self.load(row[whole], lanes, mask), start)])
        first, second = (self.join_numbers(totals[i].get(), totals[i + 1].get()) for i in (0, 2))
        return spoilt.mend(fold_lanes(self.fold, self.join_numbers(first, second), self.kind))

    def divisor(self, k: Kernel, count: Val) -> Val:
        """What means of so many elements are divided by."""
        return k.f32(1.0) / count.cast(F32)

    def finish(self, k: Kernel, task: Task, total: Val, divisor: Val | None) -> Val:
        """A register of totals as results in memory."""
        raise NotImplementedError


@frozen
class Plain(Elements):
    """Elements folded as they are, or `squared`; `tree` follows. Only a mean of float32 is native."""

    squared: bool = False
    tree: Expr = ACC

    def load(self, place: View, lanes: int, mask: Val | None = None) -> Val:
        found = place.load(lanes, mask)
        return found * found if self.squared else found

    def finish(self, k: Kernel, task: Task, total: Val, divisor: Val | None) -> Val:
        value = total if divisor is None else total * divisor
        return value if self.tree == ACC else evaluate(k, self.tree, lambda _: value, value)


@frozen
class Quantized(Elements):
    """Bytes or 16-bit numbers, whose sums have 32 bits and fit these.

    Sums are brought to the result's scale by `scaling`, with one register of its parameters. Means that keep their
    quantisation are rounded halves away from zero; they and extremes are within [`low`, `high`] where `clamped`.
    """

    scaling: Requantize | ShortScaling | None = None
    clamped: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        if self.scaling is not None:
            return self.scaling.slots
        return ("low", "high") if self.clamped else ()

    @property
    def accumulator(self) -> Type:
        return I32 if self.fold is Fold.SUM else self.kind.memory

    @property
    def divisors(self) -> Type:
        return I32

    def lanes(self, k: Kernel) -> int:
        """Extremes are found among whole registers of what is stored."""
        return k.isa.f32 if self.fold is Fold.SUM else k.isa.vector_bytes // (int(self.kind.memory.width) // 8)

    def load(self, place: View, lanes: int, mask: Val | None = None) -> Val:
        found = place.load(lanes, mask)
        return found.cast(I32, self.kind.signed) if self.fold is Fold.SUM else found

    def along(self, k: Kernel, row: View, width: Val) -> Val:
        if self.fold is not Fold.SUM or self.kind is Kind.I16:
            return super().along(k, row, width)
        total = k.var(k.zeros(I32, k.isa.f32))
        add_row_sums(k, [total], [row], width, self.kind.signed)
        return total.get().over_lanes(Val.__add__) - width.cast(I32) * offset(k.isa, self.kind.signed)

    def divisor(self, k: Kernel, count: Val) -> Val:
        return count.cast(I32)

    def finish(self, k: Kernel, task: Task, total: Val, divisor: Val | None) -> Val:
        first = k.index(0)
        if isinstance(self.scaling, ShortScaling):
            biased = total + self.scaling.bias(k, task, first)
            return self.scaling.stored(k, task, biased, self.scaling.lanes(k, task, first))
        if self.scaling is not None:
            lanes = load_lanes(k, task, self.scaling, first)
            return as_byte(stored(task, self.scaling, self.kind.signed, lanes["bias"] + total, lanes))
        if divisor is not None:
            total = self._quotient(total, divisor.splat(total.lanes))
        if not self.clamped:
            return total.cast(self.kind.memory)
        low, high = (task.i64(name).cast(total.type.element).splat(total.lanes) for name in ("low", "high"))
        unsigned = self.fold is not Fold.SUM and self.kind.unsigned
        bounded = total.umax(low).umin(high) if unsigned else total.clamp(low, high)
        return bounded.cast(self.kind.memory)

    def _quotient(self, total: Val, count: Val) -> Val:
        """Halves away from zero. A float holds the quotient well enough to truncate it: numerators of bytes stay below
        2**24, those of 16-bit numbers below 2**31.
        """
        half, real = count >> 1, F64 if self.kind is Kind.I16 else F32
        nudged = (total > 0).select(total + half, total - half)
        return (nudged.cast(real) / count.cast(real)).cast(I32)
