"""Powers, the error function and remainders of float64 lanes; the bounds on their errors are tested."""

from __future__ import annotations

import math

from .double_math import expm1, round_even
from .kernel import Kernel
from .math import polynomial
from .types import F64, I32, I64, vec
from .value import Val

_ROOT = 0x3FE6A09E667F3BCD
"""The bits of the square root of one half: mantissas go from there to twice as much."""
_MANTISSA = (1 << 52) - 1
_HIDDEN = 1 << 52
_INFINITY = 0x7FF0000000000000
_SPLIT = 134217729.0
"""2**27 + 1: times it, less what that exceeds the number by, are its upper 26 bits (T. Dekker)."""
_SCALE, _SCALE_LOW = 2.8853900817779268, 4.0710547481862066e-17
"""2 / log(2) in two parts."""
_SERIES = tuple(1 / n for n in range(3, 25, 2))
"""Of `log((1 + s) / (1 - s)) = 2 · (s + s³/3 + ...)`, after the first term."""
_EXP = tuple(1 / math.factorial(n) for n in range(14))
_BITS_AT_ONCE = 11
"""By how many bits a remainder of 53 bits can be moved in 64."""
_ERF_END = 6.0
"""From here on the error function is 1."""
_ERF = (
    3.5734543473270377, 2.730299341676197, 0.14188331472752339, -0.07517628856743118, 0.038636906740884484,
    -0.018735843901704623, 0.0082669686470948, -0.0030797944751347135, 0.0007410410092683162, 0.00015241554940375476,
    -0.0003779880337815543, 0.0003405595914661518, -0.00023242652078908367, 0.0001319733500418862,
    -6.180923836882112e-05, 2.09450015164584e-05, -1.2166711049608764e-06, -5.753852726516789e-06,
    6.735506116966859e-06, -5.801813295762549e-06, 3.6089766634651615e-06, -7.398357579430319e-07,
    1.3053071902983955e-07, -1.6069697809400716e-06, 7.480246124615422e-07, 1.7704959348679954e-06,
    -1.091470609993143e-06, -1.162302877816279e-06, 7.129139252143682e-07, 6.890443090775301e-07,
    -4.29779525239032e-07, -2.1214485983552705e-07, 1.4761750617283715e-07, 2.337555961520265e-08,
    -1.8990800190335874e-08,
)  # fmt: skip
"""`-log(erfc(x)) / x` from 0 to 6 as a polynomial of `x / 3 - 1`: our own interpolation at Chebyshev's points."""


def erf(k: Kernel, x: Val) -> Val:
    """The error function, within 8 ulp."""
    size = x.like(_ERF_END).min(x.call("fabs"))
    p = polynomial(k, size * (2 / _ERF_END) - 1.0, _ERF)
    return _signed_as(expm1(k, -(p * size)).call("fabs"), x)


def power(k: Kernel, x: Val, y: Val) -> Val:
    """`x` to the power of `y`, within 32 ulp; the ends as C has them: 1 for an exponent of 0 and for a base of 1
    whatever the other is.
    """
    size = x.call("fabs")
    high, low = _log2(k, size)
    times = y.like(-(2.0**100)).max(y.like(2.0**100).min(y))  # whose products with any logarithm are beyond all powers
    product, error = _product(k, times, high)
    found = _exp2(k, product, error + times * low)
    grows = (size > 1.0) ^ (y < 0.0)
    found = (size.eq(0.0) | size.eq(math.inf)).select(grows.select(y.like(math.inf), y.like(0.0)), found)
    half = y * 0.5
    integral = round_even(k, y).eq(y)
    odd = integral & round_even(k, half).ne(half)
    negative = x.bits(vec(I64, x.lanes)) < 0
    found = (negative & odd).select(-found, found)
    inside = (x < 0.0) & (size < math.inf)
    found = (inside & (integral ^ integral.like(1))).select(x.like(math.nan), found)
    found = x.unordered(y).select(x.like(math.nan), found)
    return (y.eq(0.0) | x.eq(1.0)).select(x.like(1.0), found)


def _log2(k: Kernel, size: Val) -> tuple[Val, Val]:
    """The logarithm of numbers that are above 0 and finite as a sum, within 2**-58 of itself."""
    tiny = size < 2.2250738585072014e-308
    offset = tiny.select(size * 2.0**54, size).bits(vec(I64, size.lanes)) - _ROOT
    exponent = (offset >> 52).cast(I32).cast(F64) - tiny.select(size.like(54.0), size.like(0.0))
    m = ((offset & _MANTISSA) + _ROOT).bits(size.type)
    above, below = m - 1.0, m + 1.0
    rest = (m - (below - (below - m))) + (1.0 - (below - m))
    s = above / below
    product, error = _product(k, s, below)
    s_low = ((above - product) - error - s * rest) / below
    square = s * s
    tail = s * square * polynomial(k, square, _SERIES)
    high, error = _product(k, s, s.like(_SCALE))
    low = error + (s * _SCALE_LOW + (s_low + tail) * _SCALE)
    near = exponent + high
    low = ((exponent - near) + high) + low
    total = near + low
    return total, (near - total) + low


def _exp2(k: Kernel, x: Val, low: Val) -> Val:
    """2 to the power of a sum, the second part of which is small."""
    near = x.like(-1100.0).max(x.like(1100.0).min(x))
    whole = round_even(k, near)
    r = ((near - whole) + near.eq(x).select(low, 0.0)) * math.log(2)
    p, n = polynomial(k, r, _EXP), whole.saturated(I32).cast(I64)
    half = n >> 1
    return p * _two_to(half) * _two_to(n - half)


def _product(k: Kernel, a: Val, b: Val) -> tuple[Val, Val]:
    """A product and what it is off by, exactly, for factors that are neither large nor small."""
    product = a * b
    if k.isa.fma:
        return product, k.fma(a, b, -product)
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(x: Val) -> tuple[Val, Val]:
    upper = x * _SPLIT
    upper = upper - (upper - x)
    return upper, x - upper


def fmod(k: Kernel, x: Val, y: Val) -> Val:
    """What is left of `x` after whole multiples of `y`, with the sign of `x`; exact."""
    firsts, seconds, rests = (k.scratch(F64, x.lanes) for _ in range(3))
    k.view(firsts, F64, 1)[0].store(x)
    k.view(seconds, F64, 1)[0].store(y)
    with k.loop(x.lanes) as lane:
        one, two = (k.view(place, F64, 1)[lane].load() for place in (firsts, seconds))
        k.view(rests, F64, 1)[lane].store(_rest(k, one, two))
    size, divisor = x.call("fabs"), y.call("fabs")
    rest = divisor.eq(math.inf).select(size, k.view(rests, F64, 1)[0].load(x.lanes))
    wrong = x.unordered(y) | y.eq(0.0) | size.eq(math.inf)
    return wrong.select(x.like(math.nan), _signed_as(rest, x))


def _rest(k: Kernel, x: Val, y: Val) -> Val:
    """What is left of the size of a number after whole multiples of that of another, by division of their mantissas.

    Where either has none, some number.
    """
    size, divisor = x.call("fabs"), y.call("fabs")
    bits, other = (v.bits(I64) for v in (size, divisor))
    other = ((other > 0) & (other < _INFINITY)).select(other, 1)
    bits = (bits < _INFINITY).select(bits, 0)
    mantissa, exponent = _parts(bits)
    modulus, least = _parts(other)
    rest, left = k.var(mantissa % modulus), k.var((exponent - least).max(0))
    with k.loop((left.get() + (_BITS_AT_ONCE - 1)) // _BITS_AT_ONCE):
        by = left.get().min(_BITS_AT_ONCE)
        rest.set((rest.get() << by) % modulus)
        left.set(left.get() - by)
    scale = least - 1075
    half = scale >> 1
    found = rest.get().cast(F64) * _two_to(half) * _two_to(scale - half)
    return (exponent < least).select(size, found)


def _parts(bits: Val) -> tuple[Val, Val]:
    """The mantissa of a number that is not negative, and its exponent with 1 for the least."""
    exponent = bits.lshr(52)
    tiny = exponent.eq(0)
    return (bits & _MANTISSA) | tiny.select(0, bits.like(_HIDDEN)), tiny.select(1, exponent)


def _two_to(n: Val) -> Val:
    """2 to the power of an integer in the normal range of exponents."""
    return ((n + 1023) << 52).bits(vec(F64, n.lanes))


def _signed_as(size: Val, x: Val) -> Val:
    """Numbers that are not negative with the signs of `x`."""
    bits = vec(I64, x.lanes)
    return (size.bits(bits) | (x.bits(bits) & -0x8000000000000000)).bits(x.type)
