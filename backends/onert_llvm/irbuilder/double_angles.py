"""Sines, cosines and angles of float64 lanes; the bounds on their errors are tested against wider floats."""

from __future__ import annotations

import math
from itertools import pairwise

from .kernel import Kernel, Var
from .math import polynomial
from .types import F64, I32, I64, vec
from .value import Val
from .wide_math import first_quadrant_angle

_ROUND = 6755399441055744.0
"""1.5 * 2**52: adding it leaves the nearest integer in the low bits of the sum."""
_LARGE = 1048576.0
"""From here on turns and the parts of half of pi no longer give the last bits of what is left."""
_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
"""Half of pi in four parts, all but the last of 33 bits: exact times up to 20 bits."""
_SIN = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(1, 9))
_COS = tuple((-1) ** n / math.factorial(2 * n) for n in range(1, 9))
"""Taylor's series after the first term; their error up to a quarter of pi is below 2**-58."""
_TWO_OVER_PI = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41,
    0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip
"""Bits of 2 / pi behind 64 zeros."""
_LOW = 0xFFFFFFFF
_MANTISSA = (1 << 52) - 1


def sin(k: Kernel, x: Val) -> Val:
    """The sine, within 3 ulp; not-a-number of what is infinite."""
    return _circular(k, x, 0)


def cos(k: Kernel, x: Val) -> Val:
    """The cosine, within 3 ulp; not-a-number of what is infinite."""
    return _circular(k, x, 1)


def _circular(k: Kernel, x: Val, quarters: int) -> Val:
    """The sine so many quarters of a turn on: of the argument less its quarter turns."""
    size = x.call("fabs")
    turns = x * (2 / math.pi) + _ROUND - _ROUND
    left = x
    for part in _HALF_PI:
        left = left - turns * part
    rest, quarter = k.var(left), k.var(turns.saturated(I32))
    large = (size >= _LARGE) & (size < math.inf)
    with k.when(large.any()):
        _reduce_large(k, x, large, rest, quarter)
    r = rest.get()
    square = r * r
    sine = square.eq(0.0).select(r, k.fma(r * square, polynomial(k, square, _SIN), r))
    cosine = k.fma(square, polynomial(k, square, _COS), x.like(1.0))
    turned = quarter.get() + quarters
    value = (turned & 1).ne(0).select(cosine, sine)
    return (turned & 2).ne(0).select(-value, value)


def _reduce_large(k: Kernel, x: Val, large: Val, rest: Var, quarter: Var) -> None:
    """Quarter turns (modulo 4) of the large lanes and what is left, lane by lane: such arguments are rare."""
    table = k.scratch(I64, len(_TWO_OVER_PI))
    for at, word in enumerate(_TWO_OVER_PI):
        k.view(table, I64, 1)[at].store(k.const(I64, word - ((word >> 63) << 64)))
    sizes, rests, quarters = (k.scratch(t, x.lanes) for t in (F64, F64, I32))
    k.view(sizes, F64, 1)[0].store(large.select(x, x.like(_LARGE)))
    with k.loop(x.lanes) as lane:
        r, n = _quarter_turns(k, k.view(sizes, F64, 1)[lane].load(), table)
        k.view(rests, F64, 1)[lane].store(r)
        k.view(quarters, I32, 1)[lane].store(n)
    rest.set(large.select(k.view(rests, F64, 1)[0].load(x.lanes), rest.get()))
    quarter.set(large.select(k.view(quarters, I32, 1)[0].load(x.lanes), quarter.get()))


def _quarter_turns(k: Kernel, x: Val, table: Val) -> tuple[Val, Val]:
    """What is left of a large float after whole quarter turns, and how many these are modulo 4.

    A float is its 53-bit mantissa times a power of 2. Of 2 / pi times that power only those bits matter whose product
    with the mantissa is below 4 turns and above the last bit of the result: a window of 192 bits, chosen by the
    exponent (M. Payne and R. Hanek). The product is made in limbs of 32 bits; its upper 2 bits are the quarter turns.
    """
    bits = x.bits(I64)
    mantissa = (bits & _MANTISSA) | (_MANTISSA + 1)
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
    """The angle of the point `(x, y)` from -pi to pi, within 3 ulp; zeros and infinities have angles by their signs."""
    tall, broad = y.call("fabs"), x.call("fabs")
    angle = first_quadrant_angle(tall, broad, 43)
    integers = vec(I64, x.lanes)
    angle = (x.bits(integers) < 0).select(angle * -1.0 + math.pi, angle)
    signed = (angle.bits(integers) | (y.bits(integers) & -0x8000000000000000)).bits(x.type)
    return x.unordered(y).select(x.like(math.nan), signed)
