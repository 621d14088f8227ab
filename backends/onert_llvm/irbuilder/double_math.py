"""Functions of float64 lanes; their error bounds are tested against wider floats.

NaN gives NaN; results below the normal range may be zero. The series are Taylor's, long enough that the truncation
error is below the last bit on the reduced range.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

from .kernel import Kernel
from .math import (
    LARGE,
    LN2_WIDE,
    ROUND_WIDE,
    bits_of,
    expm1,
    of_quarter,
    polynomial,
    power_of_two,
    reduce_large,
    round_even,
    signed_as,
)
from .types import F64, I32, I64
from .value import Val
from .wide_math import MANTISSA, ROOT, first_quadrant_angle

_LOG = tuple(1 / n for n in range(3, 25, 2))
"""The terms of `log((1 + s) / (1 - s)) = 2 · (s + s³/3 + ...)` after the first."""


def log(k: Kernel, x: Val) -> Val:
    """The natural logarithm, within 2 ulp; minus infinity for zero, NaN for negative numbers."""
    tiny = x < 2.2250738585072014e-308
    offset = bits_of(tiny.select(x * 18014398509481984.0, x)) - ROOT
    exponent = (offset >> 52).cast(I32).cast(F64) - tiny.select(x.like(54.0), x.like(0.0))
    m = ((offset & MANTISSA) + ROOT).bits(x.type)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    twice = s + s
    high, low = LN2_WIDE
    tail = k.fma(exponent, x.like(low), twice * square * polynomial(k, square, _LOG))
    near = k.fma(exponent, x.like(high), twice + tail)
    infinite = x.like(math.inf)
    kept = (x < infinite).select(near, x)
    return x.eq(0.0).select(-infinite, (x < 0.0).select(x.like(math.nan), kept))


def tanh(k: Kernel, x: Val) -> Val:
    """The hyperbolic tangent, within 4 ulp."""
    size = x.call("fabs")
    e = expm1(k, x.like(44.0).min(size + size))
    return signed_as(e / (e + 2.0), x)


_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
"""pi/2 in four parts, all but the last with 33 bits, so that products with 20-bit integers are exact."""
_SIN = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(1, 9))
_COS = tuple((-1) ** n / math.factorial(2 * n) for n in range(1, 9))
"""Taylor series after the first term; their error on [-pi/4, pi/4] is below 2**-58."""
_TWO_OVER_PI = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41,
    0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip
"""The bits of 2/pi, after 64 zeros."""
_LOW = 0xFFFFFFFF


def sin(k: Kernel, x: Val) -> Val:
    """The sine, within 3 ulp; NaN for infinities."""
    return _circular(k, x, 0)


def cos(k: Kernel, x: Val) -> Val:
    """The cosine, within 3 ulp; NaN for infinities."""
    return _circular(k, x, 1)


def _circular(k: Kernel, x: Val, quarters: int) -> Val:
    """The sine of `x` plus this many quarter turns, from the argument reduced by its own quarter turns."""
    size = x.call("fabs")
    turns = x * (2 / math.pi) + ROUND_WIDE - ROUND_WIDE
    left = x
    for part in _HALF_PI:
        left = left - turns * part
    rest, quarter = k.var(left), k.var(turns.saturated(I32))
    large = (size >= LARGE) & (size < math.inf)
    with k.when(large.any()):
        table = k.scratch(I64, len(_TWO_OVER_PI))
        for at, word in enumerate(_TWO_OVER_PI):
            k.view(table, I64, 1)[at].store(k.const(I64, word - ((word >> 63) << 64)))
        reduce_large(k, x, large, rest, quarter, partial(_quarter_turns, table))
    r = rest.get()
    square = r * r
    sine = square.eq(0.0).select(r, k.fma(r * square, polynomial(k, square, _SIN), r))
    cosine = k.fma(square, polynomial(k, square, _COS), x.like(1.0))
    return of_quarter(sine, cosine, quarter.get() + quarters)


def _quarter_turns(table: Val, k: Kernel, x: Val) -> tuple[Val, Val]:
    """The remainder of a large float after whole quarter turns, and their number modulo 4.

    A float is its 53-bit mantissa times a power of 2. Of 2/pi times that power, only those bits matter whose product
    with the mantissa is below 4 turns and above the last bit of the result: a window of 192 bits, selected by the
    exponent (M. Payne and R. Hanek). The product is computed in 32-bit limbs; its upper 2 bits are the quarter turns.
    """
    bits = x.bits(I64)
    mantissa = (bits & MANTISSA) | (MANTISSA + 1)
    start = (bits.lshr(52) & 2047) - (1075 - 62)
    words = [k.view(table, I64, 1)[start.lshr(6) + at].load() for at in range(4)]
    window = [a.call("fshl", b, start & 63) for a, b in pairwise(words)]
    limbs = [limb for word in reversed(window) for limb in (word & _LOW, word.lshr(32))]
    low, high = mantissa & _LOW, mantissa.lshr(32)
    product, carry, before = [], k.const(I64, 0), k.const(I64, 0)
    for limb in limbs:
        one, two = limb * low, before * high
        total = (one & _LOW) + (two & _LOW) + carry
        product.append(total & _LOW)
        carry, before = total.lshr(32) + one.lshr(32) + two.lshr(32), limb
    upper, lower = ((product[at] << 32) | product[at - 1] for at in (5, 3))
    turns = (upper + (1 << 61)).lshr(62)
    left = (upper - (turns << 62)).cast(F64) * 2.0**-62 + lower.lshr(1).cast(F64) * 2.0**-125
    angle, count = left * (math.pi / 2), turns.cast(I32)
    negative = bits < 0
    return negative.select(-angle, angle), negative.select(-count, count)


def atan2(k: Kernel, y: Val, x: Val) -> Val:
    """The angle of the point `(x, y)` in [-pi, pi], within 3 ulp; zeros and infinities give angles by their signs."""
    tall, broad = y.call("fabs"), x.call("fabs")
    angle = first_quadrant_angle(tall, broad, 43)
    angle = (bits_of(x) < 0).select(angle * -1.0 + math.pi, angle)
    return x.unordered(y).select(x.like(math.nan), signed_as(angle, y))


_HIDDEN = 1 << 52
_INFINITY = 0x7FF0000000000000
_SPLIT = 134217729.0
"""2**27 + 1, which splits off the upper 26 bits of a number (T. Dekker)."""
_SCALE, _SCALE_LOW = 2.8853900817779268, 4.0710547481862066e-17
"""2 / log(2) in two parts."""
_EXP = tuple(1 / math.factorial(n) for n in range(14))
_BITS_AT_ONCE = 11
"""How many bits a 53-bit remainder can be shifted within 64."""
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
"""`-log(erfc(x)) / x` on [0, 6] as a polynomial in `x / 3 - 1`: our own interpolation at Chebyshev points."""


def erf(k: Kernel, x: Val) -> Val:
    """The error function, within 8 ulp."""
    size = x.like(_ERF_END).min(x.call("fabs"))
    p = polynomial(k, size * (2 / _ERF_END) - 1.0, _ERF)
    return signed_as(expm1(k, -(p * size)).call("fabs"), x)


def power(k: Kernel, x: Val, y: Val) -> Val:
    """`x` to the power of `y`, within 32 ulp; special cases as in C: 1 for an exponent of 0 and for a base of 1,
    whatever the other is.
    """
    size = x.call("fabs")
    high, low = _log2(k, size)
    times = y.like(-(2.0**100)).max(y.like(2.0**100).min(y))  # products with any logarithm are out of range there
    product, error = _product(k, times, high)
    found = _exp2(k, product, error + times * low)
    grows = (size > 1.0) ^ (y < 0.0)
    found = (size.eq(0.0) | size.eq(math.inf)).select(grows.select(y.like(math.inf), y.like(0.0)), found)
    half = y * 0.5
    integral = round_even(k, y).eq(y)
    odd = integral & round_even(k, half).ne(half)
    negative = bits_of(x) < 0
    found = (negative & odd).select(-found, found)
    inside = (x < 0.0) & (size < math.inf)
    found = (inside & (integral ^ integral.like(1))).select(x.like(math.nan), found)
    found = x.unordered(y).select(x.like(math.nan), found)
    return (y.eq(0.0) | x.eq(1.0)).select(x.like(1.0), found)


def _log2(k: Kernel, size: Val) -> tuple[Val, Val]:
    """The binary logarithm of positive finite numbers as a sum of two parts, with relative error below 2**-58."""
    tiny = size < 2.2250738585072014e-308
    offset = bits_of(tiny.select(size * 2.0**54, size)) - ROOT
    exponent = (offset >> 52).cast(I32).cast(F64) - tiny.select(size.like(54.0), size.like(0.0))
    m = ((offset & MANTISSA) + ROOT).bits(size.type)
    above, below = m - 1.0, m + 1.0
    rest = (m - (below - (below - m))) + (1.0 - (below - m))
    s = above / below
    product, error = _product(k, s, below)
    s_low = ((above - product) - error - s * rest) / below
    square = s * s
    tail = s * square * polynomial(k, square, _LOG)
    high, error = _product(k, s, s.like(_SCALE))
    low = error + (s * _SCALE_LOW + (s_low + tail) * _SCALE)
    near = exponent + high
    low = ((exponent - near) + high) + low
    total = near + low
    return total, (near - total) + low


def _exp2(k: Kernel, x: Val, low: Val) -> Val:
    """2 to the power of a sum whose second part is small."""
    near = x.like(-1100.0).max(x.like(1100.0).min(x))
    whole = round_even(k, near)
    r = ((near - whole) + near.eq(x).select(low, 0.0)) * math.log(2)
    p, n = polynomial(k, r, _EXP), whole.saturated(I32).cast(I64)
    half = n >> 1
    return p * power_of_two(half) * power_of_two(n - half)


def _product(k: Kernel, a: Val, b: Val) -> tuple[Val, Val]:
    """A product and its exact rounding error, for factors that are neither large nor small."""
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
    """The remainder of `x` divided by `y`, with the sign of `x`; exact."""
    firsts, seconds, rests = (k.scratch(F64, x.lanes) for _ in range(3))
    k.view(firsts, F64, 1)[0].store(x)
    k.view(seconds, F64, 1)[0].store(y)
    with k.loop(x.lanes) as lane:
        one, two = (k.view(place, F64, 1)[lane].load() for place in (firsts, seconds))
        k.view(rests, F64, 1)[lane].store(_rest(k, one, two))
    size, divisor = x.call("fabs"), y.call("fabs")
    rest = divisor.eq(math.inf).select(size, k.view(rests, F64, 1)[0].load(x.lanes))
    wrong = x.unordered(y) | y.eq(0.0) | size.eq(math.inf)
    return wrong.select(x.like(math.nan), signed_as(rest, x))


def _rest(k: Kernel, x: Val, y: Val) -> Val:
    """The remainder of `|x|` divided by `|y|`, by long division of their mantissas.

    If either is not a finite number, or `y` is 0, the result is arbitrary.
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
    found = rest.get().cast(F64) * power_of_two(half) * power_of_two(scale - half)
    return (exponent < least).select(size, found)


def _parts(bits: Val) -> tuple[Val, Val]:
    """The mantissa of a non-negative number, and its biased exponent, with 1 for subnormals."""
    exponent = bits.lshr(52)
    tiny = exponent.eq(0)
    return (bits & MANTISSA) | tiny.select(0, bits.like(_HIDDEN)), tiny.select(1, exponent)
