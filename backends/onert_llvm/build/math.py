"""Functions of float32 lanes; the bounds on their errors are tested against float64.

An `ulp` is the distance between neighbouring float32 numbers at the result; the bounds hold for results in the normal
range, and results below it may be zero. Not-a-number gives not-a-number. The polynomials are our own fits of least
maximum error on the reduced range, weighted with the function they end up in.
"""

from __future__ import annotations

from collections.abc import Sequence

from .kernel import Kernel
from .text import constant
from .types import F32, F64, I16, I32, vec
from .value import Val, intrinsic

_ROUND = 12582912.0
"""1.5 * 2**23: adding it leaves the nearest integer in the low bits of the sum."""

_ROUND_WIDE = 6755399441055744.0
"""1.5 * 2**52: the same in float64."""

_CONVERTS = ("x86_64", "aarch64", "riscv64")
"""Architectures that have an instruction for it; others would call a function of libm's."""

_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_EXP = (0.49999994, 0.1666652, 0.041668393, 0.008368781, 0.0013814467)
_LOG = (
    0.3333331346511841, -0.25000008940696716, 0.2000211924314499, -0.1666799634695053, 0.14219552278518677,
    -0.1240558922290802, 0.11888162791728973, -0.11675651371479034, 0.0674663856625557,
)  # fmt: skip
_ERF = (
    1.128379225730896, 0.6366164684295654, 0.10281441360712051, -0.01932171732187271, 0.00020571734057739377,
    0.0012517456198111176, -0.00038100025267340243, 4.07078696298413e-05,
)  # fmt: skip
"""`-log(erfc(x)) / x` from 0 to 4."""

_HALF_PI_HIGH, _HALF_PI_LOW = 1.570796325802803, 9.920935796805404e-10
"""Half of pi in two parts, the first of 29 bits: exact in float64 times up to 24 bits."""
_SIN = (-1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800)
_COS = (-1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800)
"""Taylor's series after the first term; their error up to a quarter of pi is below 2**-33."""


def floor(k: Kernel, x: Val) -> Val:
    """The greatest integer that is not above `x`; exact."""
    if _rounds(k):
        return x.call("floor")
    near = round_even(k, x)
    return _signed_as((near > x).select(near - 1.0, near), x)


def ceil(k: Kernel, x: Val) -> Val:
    """The least integer that is not below `x`; exact."""
    if _rounds(k):
        return x.call("ceil")
    near = round_even(k, x)
    return _signed_as((near < x).select(near + 1.0, near), x)


def round_even(k: Kernel, x: Val) -> Val:
    """The nearest integer, halves to even; exact."""
    if _rounds(k):
        return x.call("rint")
    size = x.call("fabs")
    return (size < 8388608.0).select(_signed_as(size + 8388608.0 - 8388608.0, x), x)


def nearest_even(k: Kernel, x: Val) -> Val:
    """The nearest integers in 32 bits, halves to even, of floats whose size is below 2**22."""
    if k.isa.architecture in _CONVERTS:
        return x.rounded_even()
    return _bits(x + _ROUND) - _bits(x.like(_ROUND))


def _rounds(k: Kernel) -> bool:
    """Whether the target has instructions that round: those that multiply and add at once came later."""
    return k.isa.fma


def polynomial(k: Kernel, x: Val, coefficients: Sequence[float]) -> Val:
    """`c0 + c1 x + c2 x² ...` by Horner's rule."""
    total = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = k.fma(total, x, x.like(c))
    return total


def exp(k: Kernel, x: Val) -> Val:
    """e to the power of `x`, within 2 ulp; beyond the range infinity or zero."""
    p, whole, n = _reduced(k, x.like(-104.0).max(x.like(89.0).min(x)))
    p = p + 1.0
    if k.isa.vector_bytes == 64 and x.lanes == 16:
        return _scaled_at_once(p, whole)
    half = n >> 1
    return p * _power(half) * _power(n - half)


def expm1(k: Kernel, x: Val) -> Val:
    """`exp(x) - 1`, within 3 ulp for `x` of at least -87 and below 88."""
    p, _, n = _reduced(k, x.like(-87.0).max(x.like(88.0).min(x)))
    scale = _power(n)
    return k.fma(p, scale, scale - 1.0)


def _reduced(k: Kernel, x: Val) -> tuple[Val, Val, Val]:
    """`exp(r) - 1` for what is left of `x` after whole multiples of log 2, and how many, as float and as integer."""
    shifted = k.fma(x, x.like(1.4426950408889634), x.like(_ROUND))
    whole = shifted - _ROUND
    r = k.fma(whole, x.like(-_LN2_LOW), k.fma(whole, x.like(-_LN2_HIGH), x))
    return k.fma(polynomial(k, r, _EXP) * r, r, r), whole, _bits(shifted) - _bits(x.like(_ROUND))


def _scaled_at_once(p: Val, whole: Val) -> Val:
    """`p` times 2 to the power of a whole number, rounded once however small: one instruction of AVX-512."""
    every, nearest = Val(p.b, constant(I16, -1)), Val(p.b, constant(I32, 4))
    return intrinsic(p.b, "llvm.x86.avx512.mask.scalef.ps.512", p.type, p, whole, p.like(0.0), every, nearest)


def sin(k: Kernel, x: Val) -> Val:
    """The sine, within 1 ulp for arguments up to 2**20 in size; beyond 2**23 some number in [-1, 1]."""
    return _circular(k, x, 0)


def cos(k: Kernel, x: Val) -> Val:
    """The cosine, within 1 ulp for arguments up to 2**20 in size; beyond 2**23 some number in [-1, 1]."""
    return _circular(k, x, 1)


def _circular(k: Kernel, x: Val, quarters: int) -> Val:
    """The sine so many quarters of a turn on: in float64, the argument less its quarter turns."""
    wide = x.cast(F64)
    turns = wide * 0.6366197723675814 + _ROUND_WIDE - _ROUND_WIDE
    turns = (turns.call("fabs") < 8388608.0).select(turns, wide - wide)
    r = wide - turns * _HALF_PI_HIGH - turns * _HALF_PI_LOW
    r = (r > 0.8).select(r.like(0.8), (r < -0.8).select(r.like(-0.8), r))
    square = r * r
    sine = r + r * square * _horner(square, _SIN)
    cosine = square * _horner(square, _COS) + 1.0
    quarter = turns.saturated(I32) + quarters
    value = (quarter & 1).ne(0).select(cosine, sine)
    return (quarter & 2).ne(0).select(-value, value).cast(F32)


def _horner(x: Val, coefficients: Sequence[float]) -> Val:
    total = x.like(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def log(k: Kernel, x: Val) -> Val:
    """The natural logarithm, within 2 ulp; minus infinity for zero, not-a-number below."""
    tiny = x < 1.1754943508222875e-38
    scaled = tiny.select(x * 8388608.0, x)
    root = 0x3F3504F3  # the square root of one half: the mantissa goes from there to twice as much
    offset = _bits(scaled) - root
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
    size = x.call("fabs")
    e = expm1(k, x.like(20.0).min(size + size))
    return _signed_as(e / (e + 2.0), x)


def logistic(k: Kernel, x: Val) -> Val:
    """`1 / (1 + exp(-x))`, within 4 ulp."""
    return x.like(1.0) / (exp(k, -x) + 1.0)


def erf(k: Kernel, x: Val) -> Val:
    """The error function, within 4 ulp."""
    size = x.like(4.0).min(x.call("fabs"))
    return _signed_as(-expm1(k, -(polynomial(k, size, _ERF) * size)), x)


def _bits(x: Val) -> Val:
    return x.bits(vec(I32, x.lanes))


def _power(n: Val) -> Val:
    """2 to the power of an integer in the normal range of exponents."""
    return ((n + 127) << 23).bits(vec(F32, n.lanes))


def _signed_as(size: Val, x: Val) -> Val:
    """A number with the sign of `x`: `size` has that sign or is positive."""
    return (_bits(size) | (_bits(x) & -0x80000000)).bits(x.type)
