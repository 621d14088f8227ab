"""Functions of float64 lanes; the bounds on their errors are tested against wider floats.

Not-a-number gives not-a-number; results below the normal range may be zero. The series are Taylor's, long enough that
what is left out is below the last bit on the reduced range.
"""

from __future__ import annotations

import math

from .kernel import Kernel
from .math import polynomial
from .types import F64, I32, I64, vec
from .value import Val

_ROUND = 6755399441055744.0
"""1.5 * 2**52: adding it leaves the nearest integer in the low bits of the sum."""
_ROUND_BITS = 0x4338000000000000
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""The logarithm of 2 in two parts, the first of 33 bits: exact times a whole number of turns."""
_EXPM1 = tuple(1 / math.factorial(n) for n in range(2, 15))
_LOG = tuple(1 / n for n in range(3, 25, 2))
"""Of `log((1 + s) / (1 - s)) = 2 · (s + s³/3 + ...)`, after the first term."""
_ROOT = 0x3FE6A09E667F3BCD
"""The bits of the square root of one half: mantissas go from there to twice as much."""
_MANTISSA = (1 << 52) - 1
_WHOLE = 4503599627370496.0
"""From here on every float64 is a whole number."""


def exp(k: Kernel, x: Val) -> Val:
    """e to the power of `x`, within 2 ulp; beyond the range infinity or zero."""
    p, n = _reduced(k, x.like(-746.0).max(x.like(710.0).min(x)))
    half = n >> 1
    return (p + 1.0) * _power(half) * _power(n - half)


def expm1(k: Kernel, x: Val) -> Val:
    """`exp(x) - 1`, within 3 ulp for `x` of at least -700 and below 709."""
    p, n = _reduced(k, x.like(-700.0).max(x.like(709.0).min(x)))
    scale = _power(n)
    return k.fma(p, scale, scale - 1.0)


def _reduced(k: Kernel, x: Val) -> tuple[Val, Val]:
    """`exp(r) - 1` for what is left of `x` after whole multiples of log 2, and how many."""
    shifted = k.fma(x, x.like(1 / math.log(2)), x.like(_ROUND))
    whole = shifted - _ROUND
    r = k.fma(whole, x.like(-_LN2_LOW), k.fma(whole, x.like(-_LN2_HIGH), x))
    return k.fma(polynomial(k, r, _EXPM1) * r, r, r), _bits(shifted) - _ROUND_BITS


def _power(n: Val) -> Val:
    """2 to the power of an integer in the normal range of exponents."""
    return ((n + 1023) << 52).bits(vec(F64, n.lanes))


def log(k: Kernel, x: Val) -> Val:
    """The natural logarithm, within 2 ulp; minus infinity for zero, not-a-number below."""
    tiny = x < 2.2250738585072014e-308
    offset = _bits(tiny.select(x * 18014398509481984.0, x)) - _ROOT
    exponent = (offset >> 52).cast(I32).cast(F64) - tiny.select(x.like(54.0), x.like(0.0))
    m = ((offset & _MANTISSA) + _ROOT).bits(x.type)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    twice = s + s
    tail = k.fma(exponent, x.like(_LN2_LOW), twice * square * polynomial(k, square, _LOG))
    near = k.fma(exponent, x.like(_LN2_HIGH), twice + tail)
    infinite = x.like(math.inf)
    kept = (x < infinite).select(near, x)
    return x.eq(0.0).select(-infinite, (x < 0.0).select(x.like(math.nan), kept))


def tanh(k: Kernel, x: Val) -> Val:
    """The hyperbolic tangent, within 4 ulp."""
    size = x.call("fabs")
    e = expm1(k, x.like(44.0).min(size + size))
    return _signed_as(e / (e + 2.0), x)


def logistic(k: Kernel, x: Val) -> Val:
    """`1 / (1 + exp(-x))`, within 4 ulp."""
    return x.like(1.0) / (exp(k, -x) + 1.0)


def round_even(k: Kernel, x: Val) -> Val:
    """The nearest integer, halves to even; exact."""
    size = x.call("fabs")
    return (size < _WHOLE).select(_signed_as(size + _WHOLE - _WHOLE, x), x)


def floor(k: Kernel, x: Val) -> Val:
    """The greatest integer that is not above `x`; exact."""
    near = round_even(k, x)
    return _signed_as((near > x).select(near - 1.0, near), x)


def ceil(k: Kernel, x: Val) -> Val:
    """The least integer that is not below `x`; exact."""
    near = round_even(k, x)
    return _signed_as((near < x).select(near + 1.0, near), x)


def _bits(x: Val) -> Val:
    return x.bits(vec(I64, x.lanes))


def _signed_as(size: Val, x: Val) -> Val:
    """A number with the sign of `x`: `size` has that sign or is positive."""
    return (_bits(size) | (_bits(x) & -0x8000000000000000)).bits(x.type)
