"""TFLite's integer arithmetic: real multipliers as fixed-point numbers, and exact rounding.

Source: gemmlowp's fixedpoint.h and TFLite's kernels/internal/common.h and quantization_util.cc, double rounding
(the build in which TFLITE_SINGLE_ROUNDING is not set).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.errors import RuleError
from onert.ir.value import Value

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


@frozen
class Multiplier(Value):
    """`mantissa * 2**(shift - 31)`: a positive real multiplier; mantissa in [2**30, 2**31) or 0."""

    mantissa: int
    shift: int


def quantize_multiplier(real: float) -> Multiplier:
    """The fixed-point number nearest to `real` (TFLite QuantizeMultiplier). RuleError for inf, nan or negatives."""
    if not math.isfinite(real) or real < 0:
        raise RuleError(f"multiplier is {real}, expected a finite number of at least 0")
    if real == 0.0:
        return Multiplier(0, 0)
    fraction, shift = math.frexp(real)
    mantissa = math.floor(fraction * (1 << 31) + 0.5)  # C's round: the operand is positive
    if mantissa == 1 << 31:
        mantissa //= 2
        shift += 1
    if shift < -31:
        return Multiplier(0, 0)
    if shift > 30:
        return Multiplier(INT32_MAX, 30)
    return Multiplier(mantissa, shift)


def quantize_multipliers(reals: Sequence[float] | Array) -> tuple[Array, Array]:
    """Mantissas and shifts (int64) of several multipliers, for example one per channel; see `quantize_multiplier`."""
    real = np.asarray(reals, np.float64)
    wrong = real[~np.isfinite(real) | (real < 0)]
    if wrong.size:
        quantize_multiplier(float(wrong[0]))
    fraction, exponent = np.frexp(real)
    mantissas = np.floor(fraction * (1 << 31) + 0.5).astype(np.int64)
    carried = mantissas == 1 << 31
    mantissas >>= carried
    shifts = exponent.astype(np.int64) + carried
    kept = shifts >= -31
    mantissas, shifts = np.where(kept, mantissas, 0), np.where(kept, shifts, 0)
    large = shifts > 30
    return np.where(large, INT32_MAX, mantissas), np.where(large, 30, shifts)


def saturating_rounding_doubling_high_mul(a: Array, b: Array | int) -> Array:
    """`round(a * b / 2**31)` on int32 values held in int64, with gemmlowp's rounding.

    gemmlowp adds 2**30 (or 1 - 2**30 for a negative product) and divides with truncation. That rounds halves away from
    zero for positive products and towards zero for negative ones: for both the floor of (a * b + 2**30) / 2**31.
    """
    out = np.asarray(a.astype(np.int64) * np.asarray(b, np.int64))
    out += 1 << 30
    out >>= 31
    return np.minimum(out, INT32_MAX)


def rounding_divide_by_pot(x: Array, exponent: Array | int) -> Array:
    """`round(x / 2**exponent)` on int32 values held in int64, halves away from zero (gemmlowp RoundingDivideByPOT)."""
    x = x.astype(np.int64)
    exponent = np.asarray(exponent, np.int64)
    half = (np.int64(1) << exponent) >> 1
    out = np.asarray(x + half)
    out -= (x < 0) & (exponent > 0)
    out >>= exponent
    return out


def multiply_by_quantized_multiplier(x: Array, mantissa: Array | int, shift: Array | int) -> Array:
    """`x * mantissa * 2**(shift - 31)` as TFLite computes it on int32 with double rounding; int32 values in int64.

    `mantissa` and `shift` broadcast against `x` (one per channel along the last axis, or one for all).
    """
    shift = np.asarray(shift, np.int64)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    shifted = _wrap32(x.astype(np.int64) << left) if left.any() else x
    return rounding_divide_by_pot(saturating_rounding_doubling_high_mul(shifted, mantissa), right)


def multiply_by_quantized_multiplier_64(x: Array, mantissa: Array | int, shift: Array | int) -> Array:
    """As above for an int64 accumulator (int16 activations): TFLite's variant with 16-bit mantissas, rounded once."""
    reduced = narrowed(mantissa)
    total_shift = 15 - np.asarray(shift, np.int64)
    product = x.astype(np.int64) * reduced + (np.int64(1) << (total_shift - 1))
    out: Array = product >> total_shift
    return out


def narrowed(mantissa: Array | int) -> Array:
    """The mantissas of multipliers of 64-bit numbers: the upper 16 bits, rounded."""
    mantissa = np.asarray(mantissa, np.int64)
    return np.where(mantissa < 0x7FFF0000, (mantissa + (1 << 15)) >> 16, 0x7FFF)


def _wrap32(x: Array) -> Array:
    """Wrap to int32's range like C's two's-complement conversion."""
    out: Array = ((x + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
    return out


def activation_range(
    low: float | None, high: float | None, scale: float, zero_point: int, limits: tuple[int, int]
) -> tuple[int, int]:
    """The stored values to which a fused activation with real bounds clamps (TFLite CalculateActivationRange)."""

    def stored(real: float) -> int:
        ratio = float(np.float32(real) / np.float32(scale))
        return zero_point + int(math.copysign(math.floor(abs(ratio) + 0.5), ratio))

    smallest, largest = limits
    return (
        smallest if low is None else max(smallest, stored(low)),
        largest if high is None else min(largest, stored(high)),
    )
