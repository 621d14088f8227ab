"""Logistic and tanh of 16-bit fixed-point numbers, bit for bit as gemmlowp computes them.

Numbers are in 32-bit lanes; format Qn has n integer bits and 15 - n fractional bits. The steps are those of
`onert.ir.ops.recurrent.lstm_functions`.
"""

from __future__ import annotations

from onert_llvm.irbuilder import Val

_ONE = 32767
"""1 in Q0, as close as possible."""

_EXP_STEPS = ((-2, 25520), (-1, 19875), (0, 12055), (1, 4435), (2, 600), (3, 11), (4, 0))
"""exp(-2**exponent) in Q0."""

_AT_EIGHTH, _THIRD = 28918, 10923
"""exp(-1/8) and 1/3 in Q0."""

_START, _SLOPE = 23130, -15420
"""48/17 and -32/17 in Q2, the linear initial guess of a quotient."""


def divided(x: Val, exponent: int | Val) -> Val:
    """`x / 2**exponent`, halves away from zero; does not overflow if `x` has a spare bit."""
    if isinstance(exponent, int):
        return x if exponent == 0 else (x + (x >> 31) + (1 << exponent - 1)) >> exponent
    half = (x.like(1) << exponent.splat(x.lanes)).lshr(1)
    return (x + (exponent > 0).splat(x.lanes).select(x >> 31, 0) + half) >> exponent.splat(x.lanes)


def saturated(x: Val) -> Val:
    """Saturated to 16 bits."""
    return x.clamp(-32768, 32767)


def times(a: Val, b: Val | int) -> Val:
    """The product of Qm and Qn in Q(m + n): halves rounded up, saturated."""
    return ((a * a.like(b) + (1 << 14)) >> 15).min(32767)


def _exp_of_negative(x: Val, integer_bits: int) -> Val:
    """exp(x) in Q0 for x <= 0 in Q`integer_bits`."""
    fraction = 15 - integer_bits
    quarter = 1 << (fraction - 2)
    below = (x & (quarter - 1)) - quarter
    result = _exp_near_zero(below << integer_bits)
    remainder = below - x
    for exponent, factor in _EXP_STEPS:
        if integer_bits > exponent:
            bit = (remainder & (1 << (fraction + exponent))).ne(0)
            result = bit.select(times(result, factor), result)
    if integer_bits > 5:
        result = (x < -(32 << fraction)).select(0, result)
    return x.eq(0).select(_ONE, result)


def _exp_near_zero(a: Val) -> Val:
    """exp(a) in Q0 for a in [-1/4, 0) in Q0: a polynomial around -1/8."""
    x = a + (1 << 12)
    x2 = times(x, x)
    x3, x4 = times(x2, x), times(x2, x2)
    tail = divided(times(divided(x4, 2) + x3, _THIRD) + x2, 1)
    return saturated(times(x + tail, _AT_EIGHTH) + _AT_EIGHTH)


def _two_over_one_plus(a: Val) -> Val:
    """1 / ((1 + a) / 2) in Q2 for a in [0, 1] in Q0: three Newton steps."""
    half = (a + (_ONE + 1)) >> 1
    x = times(half, _SLOPE) + _START
    for _ in range(3):
        x = x + saturated(times(x, -times(half, x) + (1 << 13)) << 2)
    return x


def logistic(x: Val) -> Val:
    """The logistic function of a Q3 number, in Q0."""
    size = x.max(-x)
    above = saturated(_two_over_one_plus(_exp_of_negative(-size, 3)) << 1)
    signed = (x > 0).select(above, -above + _ONE)
    return x.eq(0).select(1 << 14, signed)


def tanh(x: Val, integer_bits: int) -> Val:
    """tanh of a Q`integer_bits` number (at most 6 integer bits), in Q0. Finer numbers are first rounded to Q0."""
    if integer_bits < 0:
        x, integer_bits = divided(x, -integer_bits), 0
    size = x.max(-x)
    found = saturated((_two_over_one_plus(_exp_of_negative(-size, integer_bits + 1)) - (1 << 13)) << 2)
    signed = (x < 0).select(-found, found)
    return x.eq(0).select(0, signed)
