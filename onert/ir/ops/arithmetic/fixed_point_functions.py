"""Transcendental functions on fixed-point numbers, computed in int32 as in gemmlowp and TFLite.

A number in format Qn has n integer bits and 31 - n fractional bits: its raw integer represents `raw / 2**(31 - n)`. Raw
integers are held in int64. Source: gemmlowp's fixedpoint/fixedpoint.h, TFLite's kernels/internal/common.h.
"""

from __future__ import annotations

import numpy as np

from onert.ir.dtype import Array

from .fixed_point import INT32_MAX, INT32_MIN, rounding_divide_by_pot, saturating_rounding_doubling_high_mul

ONE = INT32_MAX
"""The largest number in Q0, which stands for 1."""


def multiply(a: Array, b: Array | int) -> Array:
    """The product of a Qm and a Qn number, in Q(m + n)."""
    return saturating_rounding_doubling_high_mul(a, b)


def shift_left(x: Array, exponent: Array | int) -> Array:
    """`x * 2**exponent`, saturated to int32; `exponent` is at least 0."""
    exponent = np.asarray(exponent, np.int64)
    threshold = (np.int64(1) << (31 - exponent)) - 1
    shifted = x << exponent
    out: Array = np.where(x > threshold, INT32_MAX, np.where(x < -threshold, INT32_MIN, shifted))
    return np.where(exponent == 0, x, out)


def rescale(x: Array, before: int, after: int) -> Array:
    """Convert Q`before` to Q`after`: rounds when fractional bits are lost, saturates when integer bits are lost."""
    return rounding_divide_by_pot(x, after - before) if after >= before else shift_left(x, before - after)


def leading_zeros(x: Array) -> Array:
    """The number of leading zero bits of non-negative int32 values."""
    bits: Array = 32 - np.frexp(x.astype(np.float64))[1].astype(np.int64)
    return bits


_EXP_STEPS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
"""exp(-2**exponent) in Q0."""


def exp_of_negative(x: Array) -> Array:
    """exp(x) in Q0 for x <= 0 in Q5 (gemmlowp exp_on_negative_values)."""
    quarter = 1 << 24
    below = (x & (quarter - 1)) - quarter
    result = _exp_near_zero(rescale(below, 5, 0))
    remainder = below - x
    for exponent, factor in _EXP_STEPS:
        result = np.where(remainder & (1 << (26 + exponent)), multiply(result, factor), result)
    return np.where(x == 0, ONE, result)


def _exp_near_zero(a: Array) -> Array:
    """exp(a) in Q0 for a in [-1/4, 0) in Q0: a polynomial around -1/8."""
    at_eighth, third = 1895147668, 715827883
    x = a + (1 << 28)
    x2 = multiply(x, x)
    x3, x4 = multiply(x2, x), multiply(x2, x2)
    tail = rounding_divide_by_pot(multiply(rounding_divide_by_pot(x4, 2) + x3, third) + x2, 1)
    return at_eighth + multiply(x + tail, at_eighth)


def one_over_one_plus(a: Array) -> Array:
    """1 / (1 + a) in Q0 for a in [0, 1] in Q0: three steps of Newton's method."""
    half = (a + ONE + 1) >> 1
    x = 1515870810 + multiply(half, -1010580540)
    for _ in range(3):
        x = x + rescale(multiply(x, (1 << 29) - multiply(half, x)), 4, 2)
    return rescale(x, 1, 0)


def reciprocal(x: Array, integer_bits: int) -> tuple[Array, Array]:
    """1 / x for x >= 1 in Q`integer_bits`, as (scale in Q0, bits): the value is `scale / 2**bits` (GetReciprocal)."""
    headroom = leading_zeros(x)
    return one_over_one_plus((x << headroom) - (1 << 31)), integer_bits - headroom


def log_of_q12(x: Array) -> Array:
    """log(x) in Q5 for x >= 1 in Q12 (log_x_for_x_greater_than_or_equal_to_1)."""
    log2, root_half, fourth_root_half = 1488522236, 1518500250, 1805811301
    quarter = rescale(np.asarray(1 << 29, np.int64), 0, 6)
    headroom = leading_zeros(x)
    first = shift_left(multiply(shift_left(x, headroom - 1), root_half), 1)
    first_power = np.minimum(shift_left(12 - headroom, 25) + quarter, INT32_MAX)
    second_headroom = leading_zeros(multiply(x, root_half)) - 1
    second = shift_left(x, second_headroom)
    second_power = np.maximum(shift_left(12 - second_headroom, 25) - quarter, INT32_MIN)
    r, power = np.minimum(first, second), np.maximum(first_power, second_power)
    p = _half_sum(r, fourth_root_half)
    q = 2 * (r - fourth_root_half)
    square = multiply(q, q)
    numerator = multiply(q, r) + multiply(multiply(q, square), 117049297)
    denominator = multiply(p, 1057819769 + q + multiply(square, 127690142)) + multiply(q, 638450708)
    quotient = multiply(rescale(numerator, 0, 6), one_over_one_plus(denominator))
    return rescale(multiply(power, log2) + quotient, 6, 5)


def _half_sum(a: Array, b: int) -> Array:
    """`(a + b) / 2`, halves away from zero."""
    total = a + b
    out: Array = np.where(total >= 0, (total + 1) >> 1, -((1 - total) >> 1))
    return out


def inverse_square_root(x: Array) -> tuple[Array, Array]:
    """Mantissa and shift of the fixed-point multiplier 1 / sqrt(x) for integers x >= 0 (0 counts as 1).

    Source: TFLite GetInvSqrtQuantizedMultiplierExp with a reverse shift of -1; five steps of Newton's method.
    """
    small = x <= 1
    value = np.where(small, 2, x.astype(np.int64))
    shift = np.full(value.shape, 11, np.int64)
    while (value >= 1 << 29).any():
        large = value >= 1 << 29
        value = np.where(large, value // 4, value)
        shift += large
    pairs = (leading_zeros(value) - 1) // 2 - 1
    shift -= pairs
    value = value << (2 * pairs)
    halved = value >> 1
    half = rounding_divide_by_pot(halved, 1)
    root = np.full(value.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = rescale(multiply(multiply(root, root), root), 9, 3)
        step = multiply(root, (1 << 28) + (1 << 27)) - multiply(half, cube)
        root = rescale(step, 6, 3)
    mantissa = multiply(root, 1518500250)
    mantissa = mantissa << np.maximum(-shift, 0)
    shift = np.maximum(shift, 0)
    return np.where(small, INT32_MAX, mantissa), np.where(small, 0, -shift)
