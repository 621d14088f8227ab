"""Dynamic-range quantisation: float inputs are quantised at run time and multiplied by integer filters.

Source: TFLite's kernels/internal/optimized/neon_tensor_utils.cc (NeonSymmetricQuantizeFloats,
NeonAsymmetricQuantizeFloats), which its reference kernels run on x86 too.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.quant import Quantization, round_half_away
from onert.ir.types import TensorType
from onert.ir.value import ByIdentity

TOGETHER = 8
"""The number of elements of a row that LiteRT quantises per vector step."""

FILTERS = frozenset({DType.INT2, DType.INT4, DType.INT8, DType.UINT8})


@frozen(eq=False)
class QuantizedRows(ByIdentity):
    """Rows of int8 values: `real = scale * (value - offset)`, with a scale (float32) and an offset (int32) per row."""

    values: Array
    scales: Array
    offsets: Array

    @property
    def centred(self) -> Array:
        """The values minus their row's offset, as int32."""
        out: Array = self.values.astype(np.int32) - self.offsets[:, None]
        return out


def is_hybrid(x: TensorType, weight: TensorType) -> bool:
    """Whether a float input is combined with a quantised filter."""
    return x.dtype.is_float and weight.dtype in FILTERS


def filter_values(weight: Array) -> Array:
    """The filter's integers as TFLite's hybrid kernels interpret them: uint8 is reinterpreted as int8."""
    return weight.view(np.int8) if weight.dtype == np.uint8 else weight


def quantize_items(x: Array, *, asymmetric: bool) -> QuantizedRows:
    """Quantise each batch item of a float tensor as one row."""
    return quantize_rows(x.reshape(x.shape[0], math.prod(x.shape[1:])), asymmetric=asymmetric)


def quantize_rows(rows: Array, *, asymmetric: bool) -> QuantizedRows:
    """Quantise each row of a float matrix [count, size] separately."""
    rows = rows.astype(np.float32, copy=False)
    return _asymmetric(rows) if asymmetric else _symmetric(rows)


def _symmetric(rows: Array) -> QuantizedRows:
    """Symmetric: the largest magnitude of a row maps to 127."""
    largest = np.abs(rows).max(axis=1, initial=np.float32(0))
    empty = largest == 0
    safe = np.where(empty, np.float32(1), largest)
    inverse = np.float32(127) / safe
    values = np.clip(_round(rows * inverse[:, None]), -127, 127).astype(np.int8)
    scales = np.where(empty, np.float32(1), safe / np.float32(127)).astype(np.float32)
    return QuantizedRows(values, scales, np.zeros(len(rows), np.int32))


def _asymmetric(rows: Array) -> QuantizedRows:
    """Asymmetric: the range of a row's values, extended to contain 0, maps to -128 to 127.

    The zero point is computed with the scale in float64; elements are multiplied by the inverse of the float32 scale
    and rounded before the zero point is added.
    """
    low = rows.min(axis=1, initial=np.float32(0))
    high = rows.max(axis=1, initial=np.float32(0))
    empty = low == high
    wide = np.where(empty, 1.0, (high - low).astype(np.float64) / 255.0)
    wide = np.where(np.isfinite(wide), wide, np.nan)  # an infinite range has no scale
    below, above = low.astype(np.float64) / wide, high.astype(np.float64) / wide
    nearer = 128.0 + np.abs(below) < 127.0 + np.abs(above)
    zero = np.clip(np.nan_to_num(round_half_away(np.where(nearer, -128.0 - below, 127.0 - above))), -128, 127)
    offsets = np.where(empty, 0, zero).astype(np.int32)
    scales = wide.astype(np.float32)
    inverse = np.float32(1) / scales
    values = np.clip(_round(rows * inverse[:, None]) + offsets[:, None], -128, 127).astype(np.int8)
    values[empty] = 0
    return QuantizedRows(values, scales, offsets)


def _round(x: Array) -> Array:
    """Rounds halves away from zero; NaN becomes 0, so that it does not affect other rows.

    LiteRT rounds a row in groups of eight by adding a half in float32 and truncating, and the remaining elements
    exactly. The two differ for the largest float below a half.
    """
    whole = x.shape[1] - x.shape[1] % TOGETHER
    added = np.trunc(x[:, :whole] + np.copysign(np.float32(0.5), x[:, :whole]))
    out: Array = np.nan_to_num(np.concatenate([added, round_half_away(x[:, whole:])], axis=1), nan=0.0)
    return out


def blockwise(rows: Array, weight: Array, quantization: Quantization) -> Array:
    """`rows · weightᵀ` for a filter whose blocks of features have their own scales; rows are quantised asymmetrically.

    Source: TFLite's kernels/fully_connected.cc (EvalBlockwise4Bit).
    """
    block = quantization.block_size
    assert block is not None
    outputs, features = weight.shape
    scales = np.asarray(quantization.scales, np.float32).reshape(outputs, -1)
    quantized = quantize_rows(rows, asymmetric=True)
    out = np.zeros((len(rows), outputs), np.float32)
    filter_sums = np.zeros(outputs, np.float32)
    for index, start in enumerate(range(0, features, block)):
        part = filter_values(weight[:, start : start + block]).astype(np.float64)
        products = quantized.values[:, start : start + block].astype(np.float64) @ part.T
        out += products.astype(np.float32) * scales[:, index]
        filter_sums += scales[:, index] * part.sum(axis=1).astype(np.float32)
    out -= quantized.offsets.astype(np.float32)[:, None] * filter_sums
    return out * quantized.scales[:, None]
