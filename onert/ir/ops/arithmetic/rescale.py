"""From integer products to stored results: exact sums in floats, and TFLite's requantisation of accumulators.

Source: TFLite's kernels/kernel_util.cc (PopulateConvolutionQuantizationParams, GetQuantizedConvolutionMultipler) and
kernels/internal/reference/integer_ops.
"""

from __future__ import annotations

import numpy as np

from onert.ir.dtype import Array, DType
from onert.ir.quant import round_half_away
from onert.ir.types import TensorType

from .fixed_point import multiply_by_quantized_multiplier, multiply_by_quantized_multiplier_64, quantize_multipliers


def exact_type(bound: float) -> np.dtype[np.generic]:
    """The fastest NumPy type in which sums of products are exact if their magnitudes sum to at most `bound`."""
    if bound <= 1 << 24:
        return np.dtype(np.float32)
    if bound <= 1 << 53:
        return np.dtype(np.float64)
    return np.dtype(np.int64)


def largest(x: Array) -> int:
    """The largest magnitude among integers; 0 for an empty array."""
    return max(abs(int(x.min())), abs(int(x.max()))) if x.size else 0


def exact(x: Array, x_zero: int, weight: Array, weight_zero: int, terms: int) -> tuple[Array, Array]:
    """Both operands minus their zero points, in a type in which sums of `terms` products are exact."""
    x_centred = x.astype(np.int32) - np.int32(x_zero)
    weight_centred = weight.astype(np.int32) - np.int32(weight_zero)
    wide = exact_type(float(largest(x_centred)) * largest(weight_centred) * max(terms, 1))
    return x_centred.astype(wide), weight_centred.astype(wide)


def filter_multipliers(x: TensorType, weight: TensorType, output: TensorType) -> tuple[Array, Array]:
    """Mantissas and shifts of `input scale * filter scale / output scale`, one per filter or one for all.

    As in TFLite: in double for signed filters, the product in float for unsigned ones.
    """
    assert weight.quantization is not None
    if weight.dtype is DType.UINT8:
        return quantize_multipliers([float(np.float32(x.scale) * np.float32(weight.scale)) / output.scale])
    return quantize_multipliers(filter_ratios(x, weight, output))


def as_floats(sums: Array, x: TensorType, weight: TensorType) -> Array:
    """Exact sums, outputs last, as float32: multiplied by the product of both scales, rounded to float32."""
    out: Array = sums.astype(np.float32) * (np.float32(x.scale) * filter_scales(weight))
    return out


def product_multiplier(x: TensorType, y: TensorType, output: TensorType) -> tuple[Array, Array]:
    """Mantissa and shift of a per-tensor multiplier: the product of the scales in float, the quotient in double."""
    return quantize_multipliers([float(np.float32(x.scale) * np.float32(y.scale)) / output.scale])


def add_bias(sums: Array, bias: Array | None, *, wide: bool) -> Array:
    """Exact sums as int32 accumulators (int64 if `wide`) with the bias added; overflow wraps as in C."""
    accumulator = np.int64 if wide else np.int32
    out: Array = sums.astype(np.int64).astype(accumulator)
    if bias is not None:
        out += bias.reshape(-1).astype(accumulator)
    return out


def rescale(sums: Array, multipliers: tuple[Array, Array], output: TensorType, bounds: tuple[int, int]) -> Array:
    """Requantise accumulators to the type of `output`, clamped to `bounds`.

    int64 sums use TFLite's 16-bit multiplier (int16 activations), int32 sums its 32-bit multiplier.
    """
    if sums.dtype == np.int64:
        scaled = multiply_by_quantized_multiplier_64(sums, *multipliers)
    else:
        scaled = multiply_by_quantized_multiplier(sums, *multipliers)
    scaled = np.asarray(scaled)
    if output.zero_point:
        scaled += output.zero_point
    low, high = bounds
    out: Array = np.clip(scaled, low, high).astype(output.dtype.numpy)
    return out


def requantized(
    sums: Array, bias: Array | None, x: TensorType, weight: TensorType, output: TensorType, bounds: tuple[int, int]
) -> Array:
    """Exact sums of products of `x` with filters, plus the bias, requantised to `output` and clamped to `bounds`."""
    wide = x.dtype is DType.INT16 and (bias is None or bias.dtype == np.int64)
    return rescale(add_bias(sums, bias, wide=wide), filter_multipliers(x, weight, output), output, bounds)


def rescale_exactly(sums: Array, reals: Array, output: TensorType, bounds: tuple[int, int]) -> Array:
    """`rescale` with real multipliers (float64, one per channel or one for all); rounds halves away from zero."""
    scaled = round_half_away(sums.astype(np.float64) * reals) + output.zero_point
    low, high = bounds
    out: Array = np.clip(scaled, low, high).astype(output.dtype.numpy)
    return out


def filter_ratios(x: TensorType, weight: TensorType, output: TensorType) -> Array:
    """`input scale * filter scale / output scale` in double, one per filter or one for all."""
    assert weight.quantization is not None
    return x.scale * np.asarray(weight.quantization.scales, np.float64) / output.scale


def filter_scales(weight: TensorType) -> Array:
    """The filter's scales in float32: one for all, or one per channel."""
    assert weight.quantization is not None
    return np.asarray(weight.quantization.scales, np.float32)


def first_zero_point(type_: TensorType) -> int:
    """The zero point that all of a tensor's channels share."""
    assert type_.quantization is not None
    return type_.quantization.zero_points[0]
