"""Requantises exact sums to 16-bit numbers, bit for bit as TFLite rounds (`onert.ir.ops.arithmetic.fixed_point` and
`rescale`).

A 16-bit fixed-point multiplier on a 64-bit sum is `floor(x · mantissa / 2**shift + 1/2)`. In float64 that is exact
while `x` stays below 2**37: the product has at most 53 bits, and dividing by a power of two loses none.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F64, I16, I32, Kernel, Val

from .requantize_int8 import fixed, nearest


class Rounding(Enum):
    """How sums are scaled, by what slot `factors` holds for each column.

    `UP`: a 16-bit mantissa over a power of two as float64, halves up. `AWAY`: any float64, halves away from zero.
    `FIXED`: mantissa, right and left shift of a 32-bit multiplier, a register of columns each; sums are modulo 2**32.
    """

    UP = "up"
    AWAY = "away"
    FIXED = "fixed"


_FIELDS = ("mantissa", "right", "left")
_BEYOND = float(1 << 30)
"""Beyond any stored number, and well within 32 bits."""


@frozen
class ShortScaling(Value):
    """Scaling to a zero point of 0, clamped to [`low`, `high`]; `bias` is int32, one per column."""

    rounding: Rounding

    @property
    def slots(self) -> tuple[str, ...]:
        return ("bias", "factors", "low", "high")

    def bias(self, k: Kernel, task: Task, column: Val) -> Val:
        """The initial sums of the columns from `column` on."""
        return task.view("bias", I32, 1)[column].load(k.isa.f32)

    def lanes(self, k: Kernel, task: Task, column: Val) -> tuple[Val, ...]:
        """The parameters of the register of columns that begins at `column`."""
        lanes = k.isa.f32
        if self.rounding is not Rounding.FIXED:
            return (task.view("factors", F64, 1)[column].load(lanes),)
        fields = task.view("factors", I32, len(_FIELDS), 1)[column]
        return tuple(fields[i * lanes].load(lanes) for i in range(len(_FIELDS)))

    def stored(self, k: Kernel, task: Task, total: Val, lanes: tuple[Val, ...]) -> Val:
        """Sums in 32 bits or float64, converted to stored numbers."""
        low, high = (task.i64(name).cast(I32).splat(total.lanes) for name in ("low", "high"))
        return self._scaled(k, total, lanes).clamp(low, high).cast(I16)

    def _scaled(self, k: Kernel, total: Val, lanes: tuple[Val, ...]) -> Val:
        if self.rounding is Rounding.FIXED:
            return fixed(total, dict(zip(_FIELDS, lanes, strict=True)))
        real = (total if total.is_float else total.cast(F64)) * lanes[0]
        real = real.clamp(-_BEYOND, _BEYOND)
        return nearest(real).cast(I32) if self.rounding is Rounding.AWAY else _floor(k, real + 0.5)


def _floor(k: Kernel, x: Val) -> Val:
    """The floor of a float64 within the range of 32 bits."""
    if k.isa.fma and k.isa.architecture in ("x86_64", "aarch64"):  # other targets would call libm
        return x.call("floor").cast(I32)
    whole = x.cast(I32)
    return (whole.cast(F64) > x).select(whole - 1, whole)
