"""Requantises a 32-bit sum to a byte, on scalar processors.

The rounding is that of `onert_llvm.kernels.arithmetic.requantize_int8`, which explains why it is right.
"""

from __future__ import annotations

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, I64, Kernel, Val, View
from onert_llvm.kernels.arithmetic.requantize_int8 import Scaling, exact

FIELDS = 4
"""32-bit parameters per column; the first is the initial sum."""


@frozen
class OneByOne(Value):
    """How sums are scaled, and whether results are clamped beyond their type's range. The fields of a column by kind:

    `NARROW`: bias, mantissa, addend of the product's high half, right shift. Sums are below 2**30; `rectified`: no
    result is below the zero point. `WIDE`: bias, mantissa, right shift, left shift. `EXACT`: as in `Scaling`.
    """

    scaling: Scaling
    clamped: bool = False
    rectified: bool = False
    signed: bool = True

    @property
    def slots(self) -> tuple[str, ...]:
        zero = () if self.scaling is Scaling.NARROW else ("zero_point",)
        return ("columns", *zero, *(("low", "high") if self.clamped else ()))

    def byte(self, task: Task, x: Val, fields: View) -> Val:
        """The byte for a sum, given the fields of its column."""
        scaled = self._scaled(x, *(fields[i].load(align=4) for i in range(1, FIELDS)))
        if self.scaling is not Scaling.NARROW:
            scaled = scaled + task.i64("zero_point").cast(I32)
        if self.clamped:
            return scaled.max(task.i64("low").cast(I32)).min(task.i64("high").cast(I32)).cast(I8)
        return (scaled.clamp(-128, 127) if self.signed else scaled.clamp(0, 255)).cast(I8)

    def _scaled(self, x: Val, a: Val, b: Val, c: Val) -> Val:
        if self.scaling is Scaling.NARROW:
            start = (b.cast(I64) << 32) + (1 << 31)
            high = (((x << 1).cast(I64) * a.cast(I64) + start) >> 32).cast(I32)
            return (high if self.rectified else high + (x >> 31)) >> c
        if self.scaling is Scaling.WIDE:
            y = (((x << c).cast(I64) * a.cast(I64) + (1 << 30)) >> 31).cast(I32)
            t = (y + (y >> 31)) >> (b - 1).max(0)
            return (b > 0).select((t + 1) >> 1, y)
        return exact(x, {"mantissa_low": a, "mantissa_high": b, "shift": c})


def fields_of(k: Kernel, at: Val) -> View:
    """The fields of the column whose parameters begin at an address."""
    return k.view(at, I32, 1)
