"""Functions of one quantised operand, computed on integers as in LiteRT's reference kernels.

Sources: TFLite's kernels/activations.cc and elementwise.cc, kernels/internal/reference/{hard_swish,leaky_relu}.h and
reference/integer_ops; gemmlowp's fixedpoint.h.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from onert.ir.dtype import Array
from onert.ir.errors import RuleError
from onert.ir.quant import round_half_away
from onert.ir.types import TensorType

from .fixed_point import activation_range, multiply_by_quantized_multiplier, quantize_multiplier, rounding_divide_by_pot
from .fixed_point_functions import inverse_square_root

_ROOT_BITS = 20


def rescale(x: Array, real: float, result: TensorType, low: int | None = None, high: int | None = None) -> Array:
    """`x * real` in fixed point plus the result's zero point, clamped to [low, high] or the result type's limits."""
    multiplier = quantize_multiplier(real)
    scaled = multiply_by_quantized_multiplier(x, multiplier.mantissa, multiplier.shift) + result.zero_point
    smallest, largest = result.dtype.limits
    bounded = np.clip(scaled, smallest if low is None else low, largest if high is None else high)
    out: Array = bounded.astype(result.dtype.numpy)
    return out


def through_table(function: Callable[[Array], Array], x: Array, source: TensorType, result: TensorType) -> Array:
    """The function in float32, requantised with the reciprocal of the result's scale, as TFLite fills lookup tables."""
    real = np.float32(source.scale) * (x.astype(np.int64) - source.zero_point).astype(np.float32)
    inverse = np.float32(1) / np.float32(result.scale)
    scaled = function(real).astype(np.float32) * inverse
    low, high = result.dtype.limits
    rounded = round_half_away(np.nan_to_num(scaled, nan=0.0, posinf=1e9, neginf=-1e9).astype(np.float64))
    out: Array = np.clip(rounded + result.zero_point, low, high).astype(result.dtype.numpy)
    return out


def _ratio(source: TensorType, result: TensorType) -> float:
    """The ratio of the scales, divided in float32 as in the kernels' preparation."""
    return float(np.float32(source.scale) / np.float32(result.scale))


def _abs(x: Array, source: TensorType, result: TensorType) -> Array:
    centred = np.abs(x.astype(np.int64) - source.zero_point)
    if source.scale == result.scale:
        low, high = result.dtype.limits
        out: Array = np.clip(centred + result.zero_point, low, high).astype(result.dtype.numpy)
        return out
    return rescale(centred, _ratio(source, result), result)


def log(x: Array) -> Array:
    """The logarithm, rounded once; zero and negative numbers map to -inf, the lowest result."""
    wide = np.maximum(x, np.finfo(x.dtype).tiny).astype(np.float64)
    return np.where(x > 0, np.log(wide), -np.inf).astype(x.dtype)


def inverse_root(x: Array) -> Array:
    """The reciprocal of the square root; zero and negative numbers map to inf, the largest result."""
    return np.where(x > 0, 1 / np.sqrt(np.maximum(x, np.finfo(x.dtype).tiny)), np.inf).astype(x.dtype)


def sqrt(x: Array, source: TensorType, result: TensorType) -> Array:
    """The square root in the result's scale, rounded down; negative numbers count as 0."""
    real = np.float32(source.scale) * (x.astype(np.int64) - source.zero_point).astype(np.float32)
    root = np.floor(np.sqrt(np.maximum(real, np.float32(0))) / np.float32(result.scale)).astype(np.float64)
    out: Array = np.clip(root + result.zero_point, *result.dtype.limits).astype(result.dtype.numpy)
    return out


def _relu(low: float | None, high: float | None) -> Callable[[Array, TensorType, TensorType], Array]:
    def compute(x: Array, source: TensorType, result: TensorType) -> Array:
        bounds = activation_range(low, high, result.scale, result.zero_point, result.dtype.limits)
        return rescale(x.astype(np.int64) - source.zero_point, _ratio(source, result), result, *bounds)

    return compute


def leaky_relu(x: Array, alpha: float, source: TensorType, result: TensorType) -> Array:
    """Two multipliers: the ratio of the scales, and for negative elements this ratio times alpha."""
    centred = x.astype(np.int64) - source.zero_point
    steep = float(np.float32(source.scale) * np.float32(alpha) / np.float32(result.scale))
    above = rescale(centred, _ratio(source, result), result)
    # Multipliers are non-negative: a negative one is applied by negating the element.
    below = rescale(centred, steep, result) if steep >= 0 else rescale(-centred, -steep, result)
    return np.where(centred >= 0, above, below)


def rsqrt(x: Array, source: TensorType, result: TensorType) -> Array:
    """The reciprocal square root of int8 elements with 20 fractional bits; non-positive ones give the maximum."""
    value = x.astype(np.int64) - source.zero_point
    mantissa, shift = inverse_square_root(np.maximum(value, 1))
    roots = multiply_by_quantized_multiplier(np.ones_like(value), mantissa, shift + _ROOT_BITS)
    scale = quantize_multiplier(1 / float(np.sqrt(np.float32(source.scale)) * np.float32(result.scale)))
    scaled = multiply_by_quantized_multiplier(roots, scale.mantissa, scale.shift - _ROOT_BITS) + result.zero_point
    low, high = result.dtype.limits
    out: Array = np.where(value <= 0, high, np.clip(scaled, low, high)).astype(result.dtype.numpy)
    return out


def _high_mul_16(a: Array, b: int) -> Array:
    """round(a * b / 2**15) on int16 values, halves up, saturated (gemmlowp SaturatingRoundingDoublingHighMul)."""
    product: Array = a * b
    out: Array = np.minimum((product + (1 << 14)) >> 15, 32767)
    return out


def _int16_multiplier(real: float) -> tuple[int, int]:
    multiplier = quantize_multiplier(real)
    mantissa = multiplier.mantissa
    return (32767 if mantissa >= (1 << 31) - 1 - (1 << 15) else (mantissa + (1 << 15)) >> 16), multiplier.shift


def _saturate_16(x: Array) -> Array:
    return np.clip(x, -32768, 32767)


def _hard_swish(x: Array, source: TensorType, result: TensorType) -> Array:
    """x * relu6(x + 3) / 6 with 16-bit multipliers: a gate of 15 bits, multiplied by x in the result's scale."""
    fine = np.float32(1 / 128) * np.float32(source.scale)
    output, output_shift = _int16_multiplier(float(fine / np.float32(result.scale)))
    gate, gate_shift = _int16_multiplier(float(fine / np.float32(3 / 32768)))
    hires = (x.astype(np.int64) - source.zero_point) << 7
    scaled = _high_mul_16(hires, output)
    reluish = hires
    if gate_shift > 0:
        reluish = _saturate_16(reluish << (gate_shift - 1))
    reluish = _high_mul_16(reluish, gate)
    if gate_shift > 0:
        reluish = _saturate_16(reluish << 1)
    elif gate_shift < 0:
        reluish = rounding_divide_by_pot(reluish, -gate_shift)
    reluish = (reluish + (1 << 15)) >> 1
    product = reluish * scaled
    high = np.where(product >= 0, product >> 15, -((-product) >> 15))
    if output_shift > 0:
        raise RuleError(f"HARD_SWISH has an input scale {source.scale} too large for its output scale {result.scale}")
    shifted = rounding_divide_by_pot(np.minimum(high, 32767), -output_shift) + result.zero_point
    low, largest = result.dtype.limits
    out: Array = np.clip(shifted, low, largest).astype(result.dtype.numpy)
    return out


FIXED: Mapping[str, Callable[[Array, TensorType, TensorType], Array]] = {
    "ABS": _abs,
    "SQRT": sqrt,
    "RELU": _relu(0, None),
    "RELU6": _relu(0, 6),
    "RELU_N1_TO_1": _relu(-1, 1),
    "RELU_0_TO_1": _relu(0, 1),
    "HARD_SWISH": _hard_swish,
}
"""Integer arithmetic by the function's name; every other function uses a lookup table."""
