"""Softmax and its logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.filter_types import require_scale
from onert.ir.ops.arithmetic.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from onert.ir.ops.arithmetic.fixed_point_functions import (
    exp_of_negative,
    leading_zeros,
    log_of_q12,
    multiply,
    reciprocal,
    rescale,
)
from onert.ir.quant import dequantize, quantize, round_half_away
from onert.ir.types import CallTypes, TensorType

_EIGHT = (DType.INT8, DType.UINT8)


@frozen
class Softmax(Op):
    """`exp(beta * x) / sum(exp(beta * x))` along the last axis.

    Operand: `x`, at least one dimension. Result: the same shape. Element types: floats; int8 and uint8 (to their own
    type, or with `output` to int16) and int16. Quantised results are computed in fixed point if their scale is 1/256
    and their zero point the lowest value (8 bits), or 1/32768 and 0 (int16); others via floats.

    Source: TFLite SOFTMAX, kernels/activations.cc and kernels/internal/reference/softmax.h.
    """

    beta: float = 1.0
    output: DType | None = None

    def infer(self, x: TensorType) -> TensorType:
        require(x.rank >= 1, "input is a scalar, expected at least 1 dimension")
        require(math.isfinite(self.beta), f"beta is {self.beta}, expected a finite number")
        _require_logits(x, (*_EIGHT, DType.INT16))
        require(
            self.output in (None, x.dtype) or (self.output is DType.INT16 and x.dtype in _EIGHT),
            f"result is {self.output} for an input of {x.dtype.text}",
        )
        return TensorType(self.output or x.dtype, x.shape)

    def evaluate(self, x: Array) -> Array:
        if not x.size:
            return x
        powers = np.exp((x - x.max(axis=-1, keepdims=True)) * x.dtype.type(self.beta))
        out: Array = powers / powers.sum(axis=-1, keepdims=True)
        return out

    def evaluate_quantized(self, types: CallTypes, x: Array) -> Array:
        before, after = types.input(0), types.output
        if not x.size:
            return np.zeros(x.shape, after.dtype.numpy)
        if not self.in_fixed_point(after):
            return _through_float(self.evaluate, types, x)
        if before.dtype is DType.INT16:
            return self._table(before.scale, x)
        kept, exps, sums = _exponentials(x, self.beta * before.scale)
        scale, bits = reciprocal(sums, 12)
        exponent = bits + 31 - after.dtype.bits
        values = rounding_divide_by_pot(multiply(exps, scale), exponent)
        low, high = after.dtype.limits
        return np.where(kept, np.clip(values + low, low, high), low).astype(after.dtype.numpy)

    def in_fixed_point(self, result: TensorType) -> bool:
        """Whether quantised elements are computed in fixed point instead of via floats."""
        return self.beta > 0 and _has(result, *_SOFTMAX_RESULTS[result.dtype])

    def _table(self, scale: float, x: Array) -> Array:
        """int16: exponentials and the reciprocal of their sum by interpolation in tables."""
        exps = exponentials_of_16_bits(scale, self.beta)[x.max(axis=-1, keepdims=True).astype(np.int64) - x]
        sums = np.minimum(exps.sum(axis=-1, keepdims=True), INT32_MAX)
        headroom = leading_zeros(sums)
        shifted = ((sums << (headroom - 1)) + (1 << 13)) >> 14
        inverse = _look_up(np.clip(shifted - ((1 << 15) + (1 << 16)), -32768, 32767), RECIPROCALS)
        right = 31 - headroom
        out = (exps * inverse + (np.int64(1) << (right - 1))) >> right
        stored: Array = np.clip(out, 0, 32767).astype(np.int16)
        return stored


@frozen
class LogSoftmax(Op):
    """`x - log(sum(exp(x)))` along the last axis.

    Operand: `x`, at least one dimension. Result: the same shape and type. Element types: floats; int8 and uint8 with a
    result of scale 1/16 and zero point 127 or 255, computed in fixed point; any other quantisation via floats.

    Source: TFLite LOG_SOFTMAX, kernels/activations.cc and kernels/internal/reference/integer_ops/log_softmax.h.
    """

    def infer(self, x: TensorType) -> TensorType:
        require(x.rank >= 1, "input is a scalar, expected at least 1 dimension")
        _require_logits(x, (*_EIGHT, DType.INT16))
        return x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        if not x.size:
            return x
        shifted = x - x.max(axis=-1, keepdims=True)
        out: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        return out

    def evaluate_quantized(self, types: CallTypes, x: Array) -> Array:
        before, after = types.input(0), types.output
        if not x.size:
            return x
        if not self.in_fixed_point(before, after):
            return _through_float(self.evaluate, types, x)
        below, (low, high) = x.max(axis=-1, keepdims=True).astype(np.int64) - x, after.dtype.limits
        logs = log_of_q12(_exponentials(x, before.scale)[2])
        values = rounding_divide_by_pot(distances(before.scale)[below] - logs, 31 - 5 - 4) + high
        out: Array = np.clip(values, low, high).astype(x.dtype)
        return out

    def in_fixed_point(self, x: TensorType, result: TensorType) -> bool:
        """Whether quantised elements are computed in fixed point instead of via floats."""
        if x.dtype not in _EIGHT or not _has(result, 1 / 16, result.dtype.limits[1]):
            return False
        return input_scaling(x.scale)[0] > 0


_SOFTMAX_RESULTS = {DType.INT8: (1 / 256, -128), DType.UINT8: (1 / 256, 0), DType.INT16: (1 / 32768, 0)}


def _require_logits(x: TensorType, quantized: tuple[DType, ...]) -> None:
    allowed = " or ".join(d.text for d in quantized)
    require(x.dtype.is_float or x.dtype in quantized, f"input is {x.dtype.text}, expected a float, {allowed}")
    if not x.dtype.is_float:
        require_scale("input", x)


def _has(type_: TensorType, scale: float, zero_point: int) -> bool:
    """Whether a tensor has this quantisation, with a tolerance of a thousandth of the scale."""
    q = type_.quantization
    return q is not None and abs(q.scale - scale) <= 0.001 * scale and q.zero_point == zero_point


def _through_float(function: Callable[[Array], Array], types: CallTypes, x: Array) -> Array:
    before, after = types.input(0).quantization, types.output.quantization
    require(before is not None and after is not None, "result has no quantisation, expected scale and zero point")
    assert before is not None
    assert after is not None
    return quantize(function(dequantize(x, before)), after, types.output.dtype)


def input_scaling(real: float) -> tuple[int, int, int]:
    """Mantissa and shift that convert differences of stored values to Q5, and the smallest significant difference.

    Source: TFLite PreprocessSoftmaxScaling and CalculateInputRadius.
    """
    multiplier = quantize_multiplier(min(real * (1 << 26), float(INT32_MAX)))
    radius = math.floor(31.0 * (1 << 26) / 2.0**multiplier.shift)
    return multiplier.mantissa, multiplier.shift, -radius


def exponentials(real: float) -> tuple[Array, Array, Array]:
    """For elements 0, 1, ... 255 stored steps of `real` below the maximum: which are significant, exp in Q0 and in Q12.

    In Q12, the format of the sum, insignificant ones are 0.
    """
    mantissa, shift, smallest = input_scaling(real)
    difference = -np.arange(256, dtype=np.int64)
    kept = difference >= smallest
    scaled = multiply_by_quantized_multiplier(np.maximum(difference, smallest), mantissa, shift)
    exps = exp_of_negative(scaled)
    return kept, exps, np.where(kept, rescale(exps, 0, 12), 0)


def distances(real: float) -> Array:
    """0, -1, ... -255 stored steps of `real` in Q5; insignificant ones are the least int32.

    TFLite finds more of them by the logarithm of the sum. Because a step is at most 32, they are at least 16 below it,
    so their results are the lowest anyway.
    """
    mantissa, shift, smallest = input_scaling(real)
    difference = -np.arange(256, dtype=np.int64)
    return np.where(difference < smallest, INT32_MIN, multiply_by_quantized_multiplier(difference, mantissa, shift))


@lru_cache(8)
def exponentials_of_16_bits(scale: float, beta: float) -> Array:
    """exp for int16 elements 0, 1, ... 65535 stored steps below the maximum, interpolated, with 15 fractional bits."""
    multiplier = quantize_multiplier(float(np.float32(scale) * np.float32(beta)) / (10.0 / 65535.0))
    difference = -np.arange(1 << 16, dtype=np.int64)
    scaled = multiply_by_quantized_multiplier(difference, multiplier.mantissa, multiplier.shift)
    return _look_up(np.clip(scaled + 32767, -32768, 32767), _EXP_TABLE)


def _exponentials(x: Array, real: float) -> tuple[Array, Array, Array]:
    """Which elements are significant, exp(real * (x - maximum)) in Q0, and the sums along the last axis in Q12."""
    below = x.max(axis=-1, keepdims=True).astype(np.int64) - x
    kept, exps, shares = (table[below] for table in exponentials(real))
    return kept, exps, np.minimum(shares.sum(axis=-1, keepdims=True), INT32_MAX)


def _table(function: Callable[[Array], Array], scale: float, zero_point: int) -> Array:
    """513 samples of a function on int16 for interpolation (TFLite LUTPopulateInt16 in double, results in +-1)."""
    low, high = scale * (-32768 - zero_point), scale * (32767 - zero_point)
    step = (high - low) / 512
    inverse = 65536.0 / (2.0 / 65535 * 32767 - 2.0 / 65535 * -32768)
    at = np.arange(512)
    here = function(low + at * step) * inverse
    middle = round_half_away(function(low + at * step + step / 2) * inverse)
    following = function(low + (at + 1) * step) * inverse
    sample = round_half_away(here)
    bias = round_half_away((round_half_away((following + sample) / 2) - middle) / 2)
    last = round_half_away(function(np.array([high])) * inverse)
    out: Array = np.clip(np.concatenate([sample - bias, last]), -32768, 32767).astype(np.int64)
    return out


def _look_up(x: Array, table: Array) -> Array:
    """Interpolate a table at int16 values held in int64 (TFLite LUTLookup)."""
    index = 256 + (x >> 7)
    base = table[index]
    out: Array = base + (((table[index + 1] - base) * (x & 127) + 64) >> 7)
    return out


_EXP_TABLE = _table(np.exp, 10.0 / 65535, 32767)
RECIPROCALS = _table(lambda x: 1.0 / (1.0 + x), 1.0 / 65535, -32768)
"""Samples of the reciprocal of 1 to 2 for interpolation."""
