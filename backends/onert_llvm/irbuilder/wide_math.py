"""Functions of float32 lanes computed in float64, where float32 would lose digits in intermediate results.

Each is rounded once to float32, so that its error bound is 1 ulp; `fmod` is exact.
"""

from __future__ import annotations

import math

from .kernel import Kernel
from .math import ROUND_BITS, ROUND_WIDE, polynomial, signed_as
from .types import F32, F64, I32, I64, vec
from .value import Val

_ONE, MANTISSA = 1023 << 52, (1 << 52) - 1
"""The bits of 1, and the mask of a float64's mantissa."""
ROOT = 0x3FE6A09E667F3BCD
"""The bits of sqrt(1/2): mantissas are reduced to [sqrt(1/2), sqrt(2))."""
_STEP = 27
"""Quotient bits per step of `fmod`; the product of such a quotient with a float32 is exact in float64."""
_STEPS = 11
"""The number of steps that reduce the largest float32 by the smallest."""
_ASIN = (
    0.1666666715170462, 0.07499950516958542, 0.044659638645257425, 0.030115848393903064, 0.02458740325702227,
    0.007554884793186169, 0.03459891758765583,
)  # fmt: skip
"""`(asin(x) / x - 1) / x²` as a polynomial in `x²`, up to 1/2, within 2**-35 of the arcsine."""
_ATAN = (
    -0.3333333330032564, 0.19999994764873164, -0.1428543844326403, 0.11104241966047843, -0.0899881293007431,
    0.06999363778552564, -0.03805703092792234,
)  # fmt: skip
"""The same of the arctangent, up to tan(pi/8)."""
_TAN_HALF = math.sqrt(2) - 1


def fmod(k: Kernel, x: Val, y: Val) -> Val:
    """The remainder of `x` divided by `y`, with the sign of `x`; exact."""
    large, small = x.call("fabs").cast(F64), y.call("fabs").cast(F64)
    left = k.var(large)
    with k.when((large >= small * 2.0**_STEP).any()):
        scale = k.var(k.const(F64, 2.0 ** (_STEP * (_STEPS - 1))))
        with k.loop(_STEPS - 1):
            left.set(_reduced(left.get(), small * scale.get()))
            scale.set(scale.get() * 2.0**-_STEP)
    rest = _reduced(left.get(), small)
    infinite = x.like(math.inf)
    rest32 = y.call("fabs").eq(infinite).select(x.call("fabs"), rest.cast(F32))
    wrong = x.unordered(y) | y.eq(0.0) | x.call("fabs").eq(infinite)
    return wrong.select(x.like(math.nan), signed_as(rest32, x))


def _reduced(x: Val, y: Val) -> Val:
    """The remainder of `x` divided by `y`, both non-negative, with a quotient below 2**31; `x` if `y` is greater."""
    whole = (x / y).saturated(I32).cast(F64)
    return (x < y).select(x, x - whole * y)


def power(k: Kernel, x: Val, y: Val) -> Val:
    """`x` to the power of `y`, as in C: 1 for an exponent of 0 and for a base of 1, whatever the other is."""
    size, times = x.call("fabs"), y.call("fabs")
    logarithm = _log2(k, size)
    found = _exp2(logarithm.eq(0.0).select(0.0, logarithm * y.cast(F64)))
    whole = y.saturated(I32)
    even = times >= 16777216.0
    odd = (whole & 1).ne(0) & _not(even)
    integral = even | whole.cast(F32).eq(y)
    negative = x.bits(vec(I32, x.lanes)) < 0
    found = (negative & odd & integral).select(-found, found)
    inside = (x < 0.0) & (size < math.inf)
    found = (inside & _not(integral)).select(x.like(math.nan), found)
    found = x.unordered(y).select(x.like(math.nan), found)
    return (y.eq(0.0) | x.eq(1.0)).select(x.like(1.0), found)


def cbrt(k: Kernel, x: Val) -> Val:
    """The cube root."""
    size = x.call("fabs")
    return x.ne(x).select(x, signed_as(_exp2(_log2(k, size) * (1 / 3)), x))


def atan2(k: Kernel, y: Val, x: Val) -> Val:
    """The angle of the point `(x, y)` in [-pi, pi]; zeros and infinities give angles by their signs."""
    angle = first_quadrant_angle(y.call("fabs").cast(F64), x.call("fabs").cast(F64), 23)
    left = x.bits(vec(I32, x.lanes)) < 0
    angle = left.select(angle * -1.0 + math.pi, angle)
    return x.unordered(y).select(x.like(math.nan), signed_as(angle.cast(F32), y))


def atan(k: Kernel, x: Val) -> Val:
    """The arctangent."""
    size = x.call("fabs").cast(F64)
    steep, beyond = size > 1.0 / _TAN_HALF, size > _TAN_HALF
    above = steep.select(-1.0, beyond.select(size - 1.0, size))
    below = steep.select(size, beyond.select(size + 1.0, 1.0))
    angle = steep.select(size.like(math.pi / 2), beyond.select(size.like(math.pi / 4), 0.0))
    return signed_as((_near_angle(k, above / below, _ATAN) + angle).cast(F32), x)


def asin(k: Kernel, x: Val) -> Val:
    """The arcsine; NaN beyond 1."""
    size = x.call("fabs").cast(F64)
    angle, beyond = _half_arcsine(k, size)
    return signed_as(beyond.select(angle * -2.0 + math.pi / 2, angle).cast(F32), x)


def acos(k: Kernel, x: Val) -> Val:
    """The arccosine; NaN beyond 1."""
    size, negative = x.call("fabs").cast(F64), x < 0.0
    angle, beyond = _half_arcsine(k, size)
    signed = negative.select(-angle, angle)
    times = beyond.select(size.like(2.0), -1.0)
    return k.fma(signed, times, beyond.select(negative.select(size.like(math.pi), 0.0), math.pi / 2)).cast(F32)


def _half_arcsine(k: Kernel, size: Val) -> tuple[Val, Val]:
    """The arcsine of a magnitude up to 1/2, and half of the arccosine of a greater one; and whether it is greater."""
    beyond = size > 0.5
    square = beyond.select((1.0 - size) * 0.5, size * size)
    return _near_angle(k, beyond.select(square.call("sqrt"), size), _ASIN), beyond


def _near_angle(k: Kernel, x: Val, series: tuple[float, ...]) -> Val:
    square = x * x
    return k.fma(x * square, polynomial(k, square, series), x)


def first_quadrant_angle(tall: Val, broad: Val, last: int) -> Val:
    """The angle in [0, pi/2] of a point with non-negative float64 coordinates.

    `last` is the highest power in the arctangent series, which is evaluated for arguments up to tan(pi/8).
    """
    steep = tall > broad
    small, large = steep.select(broad, tall), steep.select(tall, broad)
    ratio = small.eq(large).select(small.eq(0.0).select(small, small.like(1.0)), small / large)
    beyond = ratio > _TAN_HALF
    near = beyond.select((ratio - 1.0) / (ratio + 1.0), ratio)
    square = near * near
    series = near.like((-1) ** (last // 2) / last)
    for odd in range(last - 2, 0, -2):
        series = series * square + (-1) ** (odd // 2) / odd
    angle = near * series + beyond.select(near.like(math.pi / 4), near.like(0.0))
    return steep.select(angle * -1.0 + math.pi / 2, angle)


def _log2(k: Kernel, size: Val) -> Val:
    """The binary logarithm of non-negative float32 numbers, in float64, within 2**-40; infinities at the ends."""
    wide = vec(F64, size.lanes)
    bits = size.cast(F64).bits(vec(I64, size.lanes))
    offset = bits - ROOT
    exponent = (offset.bits(vec(I64, size.lanes)) >> 52).cast(I32).cast(F64)
    mantissa = ((offset & MANTISSA) + ROOT).bits(wide)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    square = f * f
    series = f.like(1 / 13)
    for odd in range(11, 0, -2):
        series = series * square + 1 / odd
    near = f * series * (2 / math.log(2)) + exponent
    ends = size.eq(0.0).select(f.like(-math.inf), f.like(math.inf))
    return ((size > 0.0) & (size < math.inf)).select(near, ends)


def _exp2(x: Val) -> Val:
    """2 to the power of float64 numbers, as float32."""
    near = (x < -200.0).select(-200.0, (x > 200.0).select(200.0, x))
    shifted = near + ROUND_WIDE
    r = (near - (shifted - ROUND_WIDE)) * math.log(2)
    series = r.like(1 / math.factorial(9))
    for n in range(8, -1, -1):
        series = series * r + 1 / math.factorial(n)
    whole = shifted.bits(vec(I64, x.lanes)) - ROUND_BITS
    scale = ((whole << 52) + _ONE).bits(vec(F64, x.lanes))
    return (series * scale).cast(F32)


def _not(a: Val) -> Val:
    return a ^ a.like(1)
