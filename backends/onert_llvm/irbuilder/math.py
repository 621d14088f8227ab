"""Functions of float32 lanes; their error bounds are tested against float64. What is exact, and what follows from the
exponential, is for float64 lanes too.

An `ulp` is the distance between neighbouring float32 numbers at the result; the bounds hold for results in the normal
range, and results below it may be zero. NaN gives NaN. The polynomials are our own minimax fits on the reduced range,
weighted with the function in which they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import factorial

from attrs import frozen

from .kernel import Kernel, Var
from .text import constant
from .types import F32, F64, I16, I32, I64, vec
from .value import Val, intrinsic

_ROUND = 12582912.0
"""1.5 * 2**23: adding it leaves the nearest integer in the low bits of the sum."""

ROUND_WIDE, ROUND_BITS = 6755399441055744.0, 0x4338000000000000
"""1.5 * 2**52: the same in float64, and its bits."""

_CONVERTS = ("x86_64", "aarch64", "riscv64")
"""Architectures with an instruction that converts to the nearest integer; others would call libm."""

_LN2_HIGH, _LN2_LOW = _LN2 = 0.693359375, -2.12194440e-4
LN2_WIDE = 0.6931471803691238, 1.9082149292705877e-10
"""log(2) in two parts, so that the product of the first with an exponent is exact; in float64 it has 33 bits."""
_EXP = (0.49999994, 0.1666652, 0.041668393, 0.008368781, 0.0013814467)
_EXP_WIDE = tuple(1 / factorial(n) for n in range(2, 15))
"""`(exp(r) - 1 - r) / r²` for `|r|` up to log(2) / 2."""
_LOG = (
    0.3333331346511841, -0.25000008940696716, 0.2000211924314499, -0.1666799634695053, 0.14219552278518677,
    -0.1240558922290802, 0.11888162791728973, -0.11675651371479034, 0.0674663856625557,
)  # fmt: skip
_EXP2 = (
    0.6931471824645996, 0.24022649228572845, 0.05550357326865196, 0.009618237614631653, 0.0013390735257416964,
    0.00015403512225020677,
)  # fmt: skip
"""`(2**r - 1) / r` for `|r|` up to 1/2."""
_ERF = (
    (
        0.688975989818573, 0.11626077443361282, 0.03220787271857262, 0.002299270126968622, 0.00017394636233802885,
        1.251749836228555e-06,
    ),
    (
        0.6105890870094299, 0.30656275153160095, 0.0696740448474884, 0.009140092879533768, 0.0007098366622813046,
        2.3258273358806036e-05,
    ),
)  # fmt: skip
"""Two polynomials in `x²` whose quotient is `erf(x) / x`, up to 3.92; scaled to round best."""

_NORMAL = (
    (
        0.36499303579330444, 0.03145059570670128, 0.004306669346988201, 0.00015905445616226643, 5.815575150336372e-06,
        2.0260840116748113e-08,
    ),
    (
        0.9149019718170166, 0.23131774365901947, 0.02647724188864231, 0.0017501768888905644, 6.871019286336377e-05,
        1.07977757579647e-06,
    ),
)  # fmt: skip
"""The same for the normal distribution function less 1/2, up to 5.6; beyond that its tail vanishes in float32."""

_LOG1P = (
    (0.9464740753173828, 0.820776104927063, 0.11713968962430954),
    (0.9464740753173828, 1.2940113544464111, 0.4486843943595886, 0.029430177062749863),
)
"""Two polynomials whose quotient is `log(1 + x) / x` from 0 to 1; scaled to round best."""

_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
"""pi/2 in three parts, each a float32."""
_HALF_PI_WIDE = (1.570796325802803, 9.920935796805404e-10)
"""pi/2 in two parts, the first with 29 bits, so that products with 24-bit integers are exact in float64."""
LARGE = 1048576.0
"""From here on the product of quarter turns and the parts of pi/2 loses the last bits of the remainder."""
_TWO_OVER_PI = (0x0517CC1B727220A9, 0x4FE13ABE8FA9A6EE, 0x06DB14ACC9E21C82, 0x0FF28B1D5EF5DE2B)
"""The bits of 2/pi; the first one has weight 16."""
_SIN = (-1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800)
_COS = (-1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800)
"""Taylor series after the first term; their error on [-pi/4, pi/4] is below 2**-33."""


@frozen(eq=False)
class _Exponential:
    """Of an element type: the `ends` beyond which `exp` is infinite or zero, the `near` ends of `expm1`, the number
    whose addition rounds to integers, the parts of log(2), and the polynomial."""

    ends: tuple[float, float]
    near: tuple[float, float]
    round: float
    parts: tuple[float, float]
    series: tuple[float, ...]


_EXPONENTIALS = {
    32: _Exponential((-104.0, 89.0), (-87.0, 88.0), _ROUND, _LN2, _EXP),
    64: _Exponential((-746.0, 710.0), (-700.0, 709.0), ROUND_WIDE, LN2_WIDE, _EXP_WIDE),
}


def floor(k: Kernel, x: Val) -> Val:
    """The greatest integer not above `x`; exact."""
    if _rounds(k, x):
        return x.call("floor")
    near = round_even(k, x)
    return signed_as((near > x).select(near - 1.0, near), x)


def ceil(k: Kernel, x: Val) -> Val:
    """The least integer not below `x`; exact."""
    if _rounds(k, x):
        return x.call("ceil")
    near = round_even(k, x)
    return signed_as((near < x).select(near + 1.0, near), x)


def round_even(k: Kernel, x: Val) -> Val:
    """The nearest integer, halves to even; exact."""
    if _rounds(k, x):
        return x.call("rint")
    size, whole = x.call("fabs"), 2.0**52 if x.type.width == 64 else 2.0**23  # from here on every float is an integer
    return (size < whole).select(signed_as(size + whole - whole, x), x)


def nearest_even(k: Kernel, x: Val) -> Val:
    """The nearest 32-bit integers, halves to even, of floats with a magnitude below 2**22."""
    if k.isa.architecture in _CONVERTS:
        return x.rounded_even()
    return bits_of(x + _ROUND) - bits_of(x.like(_ROUND))


def _rounds(k: Kernel, x: Val) -> bool:
    """Whether the target has rounding instructions for float32; all targets with fused multiply-add do, as it came
    later."""
    return k.isa.fma and x.type.width == 32


def polynomial(k: Kernel, x: Val, coefficients: Sequence[float]) -> Val:
    """`c0 + c1 x + c2 x² ...` by Horner's rule."""
    total = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = k.fma(total, x, x.like(c))
    return total


def short_polynomial(k: Kernel, x: Val, coefficients: Sequence[float]) -> Val:
    """The same by Estrin's scheme: pairs of terms, then pairs of these, for a shorter dependency chain."""
    terms, power = [x.like(c) for c in coefficients], x
    while len(terms) > 1:
        pairs = [k.fma(high, power, low) for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms, power = [*pairs, *terms[2 * len(pairs) :]], power * power
    return terms[0]


def exp(k: Kernel, x: Val, *, negative: bool = False) -> Val:
    """e to the power of `x`, within 2 ulp; infinity or zero beyond the range.

    `negative`: no `x` is above 0, and powers that would be subnormal may be 0.
    """
    how, at_once = _EXPONENTIALS[x.type.width], _scales_at_once(k, x)
    least, most = how.ends
    if negative and not at_once:
        p, _, power = _reduced(k, x, (None, None))
        scale = power_of_two(power)
        return (x < how.near[0]).select(0.0, k.fma(p, scale, scale))  # rounds p + 1; NaN stays
    p, whole, power = _reduced(k, x, (least, None if negative else most))
    p = p + 1.0
    if at_once:
        return _scaled_at_once(p, whole)
    n = power - bits_of(x.like(how.round))
    half = n >> 1
    return p * power_of_two(half) * power_of_two(n - half)


def expm1(k: Kernel, x: Val) -> Val:
    """`exp(x) - 1`, within 3 ulp for `x` in [-87, 88), in float64 in [-700, 709)."""
    p, _, power = _reduced(k, x, _EXPONENTIALS[x.type.width].near)
    scale = power_of_two(power)
    return k.fma(p, scale, scale - 1.0)


def _reduced(k: Kernel, x: Val, ends: tuple[float | None, float | None]) -> tuple[Val, Val, Val]:
    """`exp(r) - 1`, where `r` is `x` within `ends` less the nearest multiple of log(2), and that multiple as float and
    as the lowest bits of an integer, which begins with bits of the number whose addition rounds.
    """
    how, (least, most) = _EXPONENTIALS[x.type.width], ends
    x = x if most is None else x.like(most).min(x)
    x = x if least is None else x.like(least).max(x)
    shifted, (high, low) = k.fma(x, x.like(1.4426950408889634), x.like(how.round)), how.parts
    whole = shifted - how.round
    r = k.fma(whole, x.like(-low), k.fma(whole, x.like(-high), x))
    return k.fma(polynomial(k, r, how.series) * r, r, r), whole, bits_of(shifted)


def _scales_at_once(k: Kernel, x: Val) -> bool:
    """Whether one instruction multiplies by powers of 2 of any size."""
    return k.isa.vector_bytes == 64 and x.lanes == 16 and x.type.width == 32


def _scaled_at_once(p: Val, whole: Val) -> Val:
    """`p` times 2 to the power of `whole`, rounded once even if subnormal: one AVX-512 instruction."""
    every, nearest = Val(p.b, constant(I16, -1)), Val(p.b, constant(I32, 4))
    return intrinsic(p.b, "llvm.x86.avx512.mask.scalef.ps.512", p.type, p, whole, p.like(0.0), every, nearest)


def sin(k: Kernel, x: Val) -> Val:
    """The sine, within 1.5 ulp; NaN for infinities."""
    return _circular(k, x, 0)


def cos(k: Kernel, x: Val) -> Val:
    """The cosine, within 1.5 ulp; NaN for infinities."""
    return _circular(k, x, 1)


def _circular(k: Kernel, x: Val, quarters: int) -> Val:
    """The sine of `x` plus this many quarter turns, from the argument reduced by its own quarter turns."""
    if not k.isa.fma:
        return _circular_wide(k, x, quarters)
    size = x.call("fabs")
    shifted = k.fma(x, x.like(0.6366197723675814), x.like(_ROUND))
    turns = shifted - _ROUND
    rest, quarter = k.var(x), k.var(bits_of(shifted) - bits_of(x.like(_ROUND)))
    for part in _HALF_PI:  # the first product is subtracted exactly
        rest.set(k.fma(turns, x.like(-part), rest.get()))
    large = (size >= LARGE) & (size < float("inf"))
    with k.when(large.any()):
        wide = k.var(rest.get().cast(F64))
        reduce_large(k, x, large, wide, quarter, _quarter_turns)
        rest.set(wide.get().cast(F32))
    r = rest.get()
    square = r * r
    # A square is 0 only without a quarter turn, which would lose the sign of a zero.
    sine = square.eq(0.0).select(x, k.fma(r * square, polynomial(k, square, _SIN[:4]), r))
    cosine = k.fma(square, polynomial(k, square, _COS), x.like(1.0))
    return of_quarter(sine, cosine, quarter.get() + quarters)


def _circular_wide(k: Kernel, x: Val, quarters: int) -> Val:
    """The same in float64, for targets without fused multiply-add: products with parts of pi/2 are exact there."""
    wide, size = x.cast(F64), x.call("fabs")
    turns = wide * 0.6366197723675814 + ROUND_WIDE - ROUND_WIDE
    rest = k.var(wide - turns * _HALF_PI_WIDE[0] - turns * _HALF_PI_WIDE[1])
    quarter = k.var(turns.saturated(I32))
    large = (size >= LARGE) & (size < float("inf"))
    with k.when(large.any()):
        reduce_large(k, x, large, rest, quarter, _quarter_turns)
    r = rest.get()
    square = r * r
    sine = r * (square * _horner(square, _SIN) + 1.0)
    cosine = square * _horner(square, _COS) + 1.0
    return of_quarter(sine, cosine, quarter.get() + quarters).cast(F32)


def of_quarter(sine: Val, cosine: Val, turned: Val) -> Val:
    """The sine of an angle after `turned` quarter turns, given its sine and cosine without them."""
    value = (turned & 1).ne(0).select(cosine, sine)
    return (turned & 2).ne(0).select(-value, value)


def reduce_large(
    k: Kernel, x: Val, large: Val, rest: Var, quarter: Var, reduced: Callable[[Kernel, Val], tuple[Val, Val]]
) -> None:
    """Set the float64 remainders and quarter turns (modulo 4) of the large lanes, which are `reduced` one by one, since
    they are rare."""
    element = x.type.element
    sizes, rests, quarters = (k.scratch(t, x.lanes) for t in (element, F64, I32))
    k.view(sizes, element, 1)[0].store(large.select(x, x.like(LARGE)))
    with k.loop(x.lanes) as lane:
        r, n = reduced(k, k.view(sizes, element, 1)[lane].load())
        k.view(rests, F64, 1)[lane].store(r)
        k.view(quarters, I32, 1)[lane].store(n)
    rest.set(large.select(k.view(rests, F64, 1)[0].load(x.lanes), rest.get()))
    quarter.set(large.select(k.view(quarters, I32, 1)[0].load(x.lanes), quarter.get()))


def _quarter_turns(k: Kernel, x: Val) -> tuple[Val, Val]:
    """The remainder of a large float after whole quarter turns, in float64, and their number modulo 4.

    A float is its 24-bit mantissa times a power of 2. Of 2/pi times that power, only those bits matter whose product
    with the mantissa is below 4 turns and above the last bit of the result: a window of 96 bits, selected by the
    exponent (M. Payne and R. Hanek). The product is exact in 64-bit integers; its upper 2 bits are the quarter turns.
    """
    bits = x.bits(I32)
    mantissa = ((bits & 0x7FFFFF) | 0x800000).cast(I64)
    start = ((bits >> 23) & 255).cast(I64) - 147
    far = start >= 64
    words = [far.select(k.const(I64, b), k.const(I64, a)) for a, b in pairwise(_TWO_OVER_PI)]
    upper, lower = (a.call("fshl", b, start) for a, b in pairwise(words))
    product = upper * mantissa + (lower.lshr(32) * mantissa).lshr(32)
    turns = (product + (1 << 61)).lshr(62)
    left = (product - (turns << 62)).cast(F64) * (1.5707963267948966 * 2.0**-62)
    negative, count = bits < 0, turns.cast(I32)
    return negative.select(-left, left), negative.select(-count, count)


def _horner(x: Val, coefficients: Sequence[float]) -> Val:
    total = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def log(k: Kernel, x: Val) -> Val:
    """The natural logarithm, within 2 ulp; minus infinity for zero, NaN for negative numbers."""
    tiny = x < 1.1754943508222875e-38
    scaled = tiny.select(x * 8388608.0, x)
    root = 0x3F3504F3  # sqrt(1/2): mantissas are reduced to [sqrt(1/2), sqrt(2))
    offset = bits_of(scaled) - root
    exponent = (offset >> 23).cast(F32) - tiny.select(x.like(23.0), x.like(0.0))
    f = ((offset & 0x7FFFFF) + root).bits(x.type) - 1.0
    square = f * f
    tail = polynomial(k, f, _LOG) * f * square
    tail = k.fma(exponent, x.like(_LN2_LOW), tail)
    tail = k.fma(square, x.like(-0.5), tail)
    near = k.fma(exponent, x.like(_LN2_HIGH), f + tail)
    infinite = x.like(float("inf"))
    kept = (x < infinite).select(near, x)
    return x.eq(0.0).select(-infinite, (x < 0.0).select(x.like(float("nan")), kept))


def tanh(k: Kernel, x: Val) -> Val:
    """The hyperbolic tangent, within 4 ulp."""
    p, scale = _parts_of_power(k, x.like(30.0).min(x.call("fabs") * 2.885390081777927))
    e = k.fma(p, scale, scale - 1.0)
    return signed_as(e / (e + 2.0), x)


def logistic(k: Kernel, x: Val) -> Val:
    """`1 / (1 + exp(-x))`, within 4 ulp; results that would be subnormal may be 0."""
    one = x.like(1.0)
    if _scales_at_once(k, x):
        return one / (exp(k, -x) + 1.0)
    how = _EXPONENTIALS[x.type.width]
    p, _, power = _reduced(k, -x, (how.near[0], how.ends[1]))  # the highest power is infinity
    return one / k.fma(p + 1.0, power_of_two(power), one)


def erf(k: Kernel, x: Val) -> Val:
    """The error function, within 6 ulp."""
    near = x.like(3.92).min(x.like(-3.92).max(x))
    square = near * near
    above, below = (short_polynomial(k, square, part) for part in _ERF)
    return x.like(1.0).min(x.like(-1.0).max(above / below * near))


def gelu(k: Kernel, x: Val) -> Val:
    """`x` times the normal distribution function, within 4 ulp for positive `x`, and 2.5e-7 of `x` otherwise."""
    near = x.like(5.6).min(x.like(-5.6).max(x))
    square = near * near
    above, below = (polynomial(k, square, part) for part in _NORMAL)
    return x * (x < -5.6).select(0.0, k.fma(above / below, near, x.like(0.5)))


def softplus(k: Kernel, x: Val) -> Val:
    """`log(1 + exp(x))`, within 4 ulp; results that would be subnormal may be 0."""
    e = exp(k, -x.call("fabs"), negative=True)
    above, below = (polynomial(k, e, part) for part in _LOG1P)
    return k.fma(above / below, e, x.like(0.0).max(x))


def mish_factor(k: Kernel, x: Val) -> Val:
    """`tanh(softplus(x))`, within 4 ulp; results that would be subnormal may be 0."""
    e = exp(k, x.like(20.0).min(x))
    n = k.fma(e, e, e + e)
    return n / (n + 2.0)


def _parts_of_power(k: Kernel, x: Val) -> tuple[Val, Val]:
    """`2**r - 1` and `2**n`, where `n` is the nearest integer to `x`, and `r = x - n`.

    `x` is in [-126, 127]. A rounding error in `x` carries over: one unit in its last place, relative to the result.
    """
    shifted = x + _ROUND
    r = x - (shifted - _ROUND)
    return short_polynomial(k, r, _EXP2) * r, power_of_two(bits_of(shifted))


def bits_of(x: Val) -> Val:
    """The bits of floats as integers of the same width."""
    return x.bits(vec(I64 if x.type.width == 64 else I32, x.lanes))


def power_of_two(n: Val) -> Val:
    """2 to the power of an integer, as a float of the same width. Only its lowest bits count, in the normal range of
    exponents or the next power, which is infinity; the others are shifted out.
    """
    bias, digits, element = (1023, 52, F64) if n.type.width == 64 else (127, 23, F32)
    return ((n + bias) << digits).bits(vec(element, n.lanes))


def signed_as(size: Val, x: Val) -> Val:
    """`size` with the sign of `x`; `size` must be positive or have that sign already."""
    return (bits_of(size) | (bits_of(x) & -(1 << (x.type.width - 1)))).bits(x.type)
