"""The elements of reductions and pools of bytes and 16-bit numbers, and how their results are stored."""

from __future__ import annotations

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, I32, Kernel, Type, Val, View
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, as_byte
from onert_llvm.kernels.arithmetic.requantize_int16 import ShortScaling
from onert_llvm.kernels.contraction.byte_terms import add_row_sums
from onert_llvm.kernels.contraction.int8_microkernel import offset

from .elements import Elements
from .fold import Fold


@frozen
class Quantized(Elements):
    """Bytes or 16-bit numbers whose sums fit 32 bits.

    Sums are converted to the result's scale by `scaling`, with one register of parameters. Means that keep their
    quantisation round halves away from zero; they and extremes are clamped to [`low`, `high`] if `clamped`.
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
        """Extremes are found in whole registers of the stored type."""
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
            lanes = self.scaling.lanes(k, task, first)
            return as_byte(self.scaling.stored(task, self.kind.signed, lanes["bias"] + total, lanes))
        if divisor is not None:
            total = self._quotient(total, divisor.splat(total.lanes))
        if not self.clamped:
            return total.cast(self.kind.memory)
        low, high = (task.i64(name).cast(total.type.element).splat(total.lanes) for name in ("low", "high"))
        unsigned = self.fold is not Fold.SUM and self.kind.unsigned
        bounded = total.umax(low).umin(high) if unsigned else total.clamp(low, high)
        return bounded.cast(self.kind.memory)

    def _quotient(self, total: Val, count: Val) -> Val:
        """The quotient, halves away from zero. A float is accurate enough to truncate: numerators of bytes stay below
        2**24, those of 16-bit numbers (float64) below 2**31.
        """
        half, real = count >> 1, F64 if self.kind is Kind.I16 else F32
        nudged = (total > 0).select(total + half, total - half)
        return (nudged.cast(real) / count.cast(real)).cast(I32)


@frozen
class Widened(Quantized):
    """Bytes whose sums are stored as 32-bit integers, modulo 2**32."""

    @property
    def stored(self) -> Type:
        return I32

    def finish(self, k: Kernel, task: Task, total: Val, divisor: Val | None) -> Val:
        return total
