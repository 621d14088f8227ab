"""Functions of one int16 operand, interpolated in tables as in LiteRT's reference kernels.

Sources: TFLite's kernels/internal/common.h (LUTPopulate, LUTLookup), kernels/internal/reference/integer_ops/{logistic,
tanh}.h and the preparation in kernels/activations.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from onert.ir.dtype import Array
from onert.ir.quant import round_half_away
from onert.ir.types import TensorType

from .unary_quantized import through_table

_STEPS = 512


def _logistic_at(place: Array) -> Array:
    out: Array = 65536 / (1 + np.exp(-place / 24))
    return out


def _logistic_table() -> Array:
    """Entry n is 65536 * logistic(n / 24) plus half the error of linear interpolation midway to the next entry.

    The last two entries are the maximum, 65535.
    """
    n = np.arange(257, dtype=np.float64)
    lacks = _logistic_at(n + 0.5) - (_logistic_at(n) + _logistic_at(n + 1)) / 2
    table = np.floor(_logistic_at(n) + lacks / 2 + 0.5)
    return np.where(n < 255, table, 65535).astype(np.int64)


_SIGMOID = _logistic_table()


def through_interpolation(
    function: Callable[[Array], Array], x: Array, source: TensorType, result: TensorType, *, pole: bool = False
) -> Array:
    """Interpolates between 513 evenly spaced values of the function, corrected by half the error at each midpoint.

    Where LiteRT's interpolation is meaningless, each element has the exact value of the function: if an end of the
    interval is beyond float32, if the ends are further apart than int16 can hold (LiteRT's difference wraps), and, with
    `pole`, if the interval contains the function's pole.
    """
    scale, zero = np.float32(source.scale), source.zero_point
    low, high = scale * np.float32(-32768 - zero), scale * np.float32(32767 - zero)
    step = (high - low) / np.float32(_STEPS)
    at = low + np.arange(_STEPS, dtype=np.float32) * step
    following = low + np.arange(1, _STEPS + 1, dtype=np.float32) * step
    places = (at, following, at + step / np.float32(2), high.reshape(1))
    table = _table([_finite(function(p), result) for p in places], result)
    finite = np.isfinite(table)
    whole = np.clip(np.where(finite, table, 0).astype(np.float64), -32768, 32767).astype(np.int64)
    slopes = np.diff(whole)
    meaningless = ~finite[:-1] | ~finite[1:] | (np.abs(slopes) > 32767)
    if pole:
        meaningless |= (at <= 0) & (following > 0)
    index, offset = 256 + (x.astype(np.int64) >> 7), x.astype(np.int64) & 127
    out: Array = (whole[index] + ((slopes[index] * offset + 64) >> 7)).astype(np.int16)
    own = meaningless[index]
    return np.where(own, through_table(function, x, source, result), out) if own.any() else out


def _table(reals: Sequence[Array], result: TensorType) -> Array:
    """Real results (at each point, at the next, midway, at the end) as stored numbers, not clamped yet."""
    values, nexts, middles, last = reals
    low, high = (np.float32(result.scale) * np.float32(end - result.zero_point) for end in (-32768, 32767))
    inverse = np.float32(65536) / (high - low)
    first, following, middle = (x * inverse for x in (values, nexts, middles))
    between = _rounded((following + _rounded(first)) / np.float32(2))
    bias = _rounded((between - _rounded(middle)) / np.float32(2))
    return np.concatenate([_rounded(first) - bias, _rounded(last * inverse)])


def _finite(x: Array, result: TensorType) -> Array:
    """Replace NaN and -inf by the lowest number that the result can represent."""
    low = np.float32(result.scale) * np.float32(-32768 - result.zero_point)
    return np.where(np.isnan(x) | (x == -np.inf), low, x).astype(x.dtype)


def _rounded(x: Array) -> Array:
    return round_half_away(x.astype(np.float64)).astype(x.dtype)


def _scaled(x: Array, source: TensorType) -> Array:
    """The element in units of 2**-12 / 3, as an integer; exact if the scale is 2**-12 or 2**-11."""
    exponent = math.log2(source.scale) + 12
    if exponent in (0, 1):
        return x.astype(np.int64) * (3 << int(exponent))
    multiplier, shift = float(np.float32(source.scale)) * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        multiplier, shift = multiplier * 2.0, shift + 1
    return (x.astype(np.int64) * int(multiplier) + ((1 << shift) >> 1)) >> shift


def _interpolated(size: Array, bits: int, most: int) -> Array:
    """The logistic function of a magnitude by linear interpolation in the table; its lower `bits` are a fraction."""
    at = np.minimum(size >> bits, 255)
    value = (_SIGMOID[at] << bits) + (size & ((1 << bits) - 1)) * (_SIGMOID[at + 1] - _SIGMOID[at])
    return np.where(size >> bits >= 255, most, value)


def logistic(x: Array, source: TensorType, result: TensorType) -> Array:
    """The logistic function; the result has scale 2**-15, whatever the file declares."""
    scaled = _scaled(x, source)
    value = _interpolated(np.abs(scaled), 9, 0x7FFF << 10)
    both = np.where(scaled >= 0, value + (1 << 9), (1 << 25) - value + (1 << 9) - 1)
    return (both >> 10).astype(np.int16)


def tanh(x: Array, source: TensorType, result: TensorType) -> Array:
    """tanh as 2 logistic(2 x) - 1; the result has scale 2**-15, whatever the file declares."""
    scaled = _scaled(x, source)
    value = _interpolated(np.abs(scaled), 8, 0xFFFF << 8)
    both = np.where(scaled >= 0, value - (1 << 23) + (1 << 7), -value + (1 << 23) + (1 << 7) - 1)
    return (both >> 8).astype(np.int16)
