"""The logistic function and tanh on 16-bit fixed-point numbers, computed as in gemmlowp.

A number in format Qn has n integer bits and 15 - n fractional bits. Results are in Q0. Source: gemmlowp's
fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from onert.ir.dtype import Array
from onert.ir.ops.arithmetic.fixed_point import rounding_divide_by_pot

_ONE = 32767
"""The largest number in Q0, which stands for 1."""


def _constant(raw: int) -> int:
    """The 16-bit form of a constant that gemmlowp defines in 32 bits."""
    return int(rounding_divide_by_pot(np.asarray(raw), 16))


def _saturate(x: Array) -> Array:
    return np.clip(x, -32768, 32767)


def multiply(a: Array, b: Array | int) -> Array:
    """The product of a Qm and a Qn number, in Q(m + n): halves round up, saturated."""
    out: Array = np.minimum((np.asarray(a, np.int64) * b + (1 << 14)) >> 15, 32767)
    return out


def rescale(x: Array, before: int, after: int) -> Array:
    """Convert Q`before` to Q`after`: rounds when fractional bits are lost, saturates when integer bits are lost."""
    if after >= before:
        return rounding_divide_by_pot(x, after - before)
    return _saturate(np.asarray(x, np.int64) << (before - after))


_EXP_STEPS = ((-2, 1672461947), (-1, 1302514674), (0, 790015084), (1, 290630308), (2, 39332535), (3, 720401), (4, 242))
"""exp(-2**exponent) in 32-bit Q0."""


def _exp_of_negative(x: Array, integer_bits: int) -> Array:
    """exp(x) in Q0 for x <= 0 in Q`integer_bits`."""
    fraction = 15 - integer_bits
    quarter = 1 << (fraction - 2)
    below = (x & (quarter - 1)) - quarter
    result = _exp_near_zero(rescale(below, integer_bits, 0))
    remainder = below - x
    for exponent, factor in _EXP_STEPS:
        if integer_bits > exponent:
            bit = 1 << (fraction + exponent)
            result = np.where(remainder & bit, multiply(result, _constant(factor)), result)
    if integer_bits > 5:
        result = np.where(x < -(32 << fraction), 0, result)
    return np.where(x == 0, _ONE, result)


def _exp_near_zero(a: Array) -> Array:
    """exp(a) in Q0 for a in [-1/4, 0) in Q0: a polynomial around -1/8."""
    at_eighth, third = _constant(1895147668), _constant(715827883)
    x = a + (1 << 12)
    x2 = multiply(x, x)
    x3, x4 = multiply(x2, x), multiply(x2, x2)
    tail = rounding_divide_by_pot(multiply(rounding_divide_by_pot(x4, 2) + x3, third) + x2, 1)
    return _saturate(at_eighth + multiply(x + tail, at_eighth))


def _two_over_one_plus(a: Array) -> Array:
    """1 / ((1 + a) / 2) in Q2 for a in [0, 1] in Q0: three steps of Newton's method."""
    half = (a + _ONE + 1) >> 1
    x = _constant(1515870810) + multiply(half, _constant(-1010580540))
    for _ in range(3):
        x = x + rescale(multiply(x, (1 << 13) - multiply(half, x)), 4, 2)
    return x


def _logistic(x: Array) -> Array:
    """The logistic function of numbers in Q3."""
    above = rescale(_two_over_one_plus(_exp_of_negative(-np.abs(x), 3)), 1, 0)
    return np.where(x == 0, 1 << 14, np.where(x > 0, above, _ONE - above))


def _tanh(x: Array, integer_bits: int) -> Array:
    """tanh of numbers in Q`integer_bits`."""
    size = rescale(_two_over_one_plus(_exp_of_negative(-np.abs(x), integer_bits + 1)) - (1 << 13), 2, 0)
    return np.where(x == 0, 0, np.where(x < 0, -size, size))


_ALL = np.arange(-32768, 32768, dtype=np.int64)


@cache
def _logistic_table() -> Array:
    return _logistic(_ALL)


@cache
def _tanh_table(integer_bits: int) -> Array:
    return _tanh(_ALL, integer_bits)


def logistic(x: Array) -> Array:
    """The logistic function in Q0 of int16 values in Q3; int16 values held in int64."""
    out: Array = _logistic_table()[x.astype(np.int64) + 32768]
    return out


def tanh(x: Array, integer_bits: int) -> Array:
    """tanh in Q0 of int16 values in Q`integer_bits`, at most 6; int16 values held in int64.

    gemmlowp defines it from Q0 on. Finer numbers, whose integer bits are negative, are first rounded to Q0.
    """
    stored = rounding_divide_by_pot(x.astype(np.int64), max(-integer_bits, 0))
    out: Array = _tanh_table(max(integer_bits, 0))[stored + 32768]
    return out
