"""Functions of two quantised operands, computed on integers as in LiteRT's reference kernels.

Sources: TFLite's kernels/{add,sub,mul,squared_difference,activations,comparisons}.cc and
kernels/internal/reference/{add,mul,prelu,comparisons}.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.types import TensorType
from onert.ir.value import ByIdentity

from .fixed_point import multiply_by_quantized_multiplier, quantize_multiplier, rounding_divide_by_pot

Bounds = tuple[int, int]


@frozen(eq=False)
class Side(ByIdentity):
    """An operand: its stored elements and type."""

    array: Array
    type: TensorType

    @property
    def centred(self) -> Array:
        """The elements minus their zero point, as int64."""
        centred: Array = self.array.astype(np.int64) - self.type.zero_point
        return centred


def scaled(x: Array, real: float) -> Array:
    """`x * real`, with `real` as a fixed-point multiplier."""
    multiplier = quantize_multiplier(real)
    return multiply_by_quantized_multiplier(x, multiplier.mantissa, multiplier.shift)


def _finish(x: Array, result: TensorType, bounds: Bounds) -> Array:
    out: Array = np.clip(x + result.zero_point, *bounds).astype(result.dtype.numpy)
    return out


def _sum(sign: int) -> Callable[[Side, Side, TensorType, Bounds, bool], Array]:
    """Sum or difference: both sides are shifted left, rescaled to twice the larger scale, added, and rescaled."""

    def compute(x: Side, y: Side, result: TensorType, bounds: Bounds, power_of_two: bool) -> Array:
        if power_of_two and result.dtype is DType.INT16 and all(_is_power(t.scale) for t in (x.type, y.type, result)):
            return _sum_by_shifts(x, y, result, bounds, sign)
        left = 15 if result.dtype is DType.INT16 else 20
        twice = 2.0 * max(x.type.scale, y.type.scale)
        a = scaled(x.centred << left, x.type.scale / twice)
        b = scaled(y.centred << left, y.type.scale / twice)
        return _finish(scaled(a + sign * b, twice / ((1 << left) * result.scale)), result, bounds)

    return compute


def _is_power(scale: float) -> bool:
    return math.frexp(scale)[0] == 0.5


def _sum_by_shifts(x: Side, y: Side, result: TensorType, bounds: Bounds, sign: int) -> Array:
    """int16 with power-of-two scales: each side is shifted right with rounding, and the sum saturates."""

    def shifted(side: Side) -> Array:
        by = math.frexp(result.scale)[1] - math.frexp(side.type.scale)[1]
        wide = side.array.astype(np.int64)
        return rounding_divide_by_pot(wide, by) if by >= 0 else wide << -by

    out: Array = np.clip(np.clip(shifted(x) + sign * shifted(y), -32768, 32767), *bounds).astype(result.dtype.numpy)
    return out


def _mul(x: Side, y: Side, result: TensorType, bounds: Bounds, power_of_two: bool) -> Array:
    real = np.float32(x.type.scale) * np.float32(y.type.scale) / np.float32(result.scale)
    return _finish(scaled(x.centred * y.centred, float(real)), result, bounds)


def _squared_difference(x: Side, y: Side, result: TensorType, bounds: Bounds, power_of_two: bool) -> Array:
    """8-bit elements are shifted left before they are squared, 16-bit ones are not (as in TFLite Micro's kernel)."""
    left = 0 if result.dtype is DType.INT16 else 7
    twice = 2.0 * max(x.type.scale, y.type.scale)
    difference = scaled(x.centred << left, x.type.scale / twice) - scaled(y.centred << left, y.type.scale / twice)
    return _finish(scaled(difference * difference, twice * twice / ((1 << (left * 2)) * result.scale)), result, bounds)


FIXED: Mapping[str, Callable[[Side, Side, TensorType, Bounds, bool], Array]] = {
    "ADD": _sum(1),
    "SUB": _sum(-1),
    "MUL": _mul,
    "SQUARED_DIFFERENCE": _squared_difference,
}
"""Integer arithmetic by the function's name."""


def prelu(x: Side, alpha: Side, result: TensorType) -> Array:
    """Non-negative elements are rescaled to the result; negative ones are multiplied by `alpha` first."""
    positive = scaled(x.centred, float(np.float32(x.type.scale) / np.float32(result.scale)))
    real = np.float32(x.type.scale) * np.float32(alpha.type.scale) / np.float32(result.scale)
    negative = scaled(x.centred * alpha.centred, float(real))
    return _finish(np.where(x.centred >= 0, positive, negative), result, result.dtype.limits)


def comparable(side: Side) -> Array:
    """Elements rescaled to a common scale for comparison: shifted left by eight bits, multiplied by the scale."""
    return scaled(side.centred << 8, side.type.scale)
