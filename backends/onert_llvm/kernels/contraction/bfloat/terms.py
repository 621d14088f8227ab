"""Products of numbers rounded to 16 bits: bfloat16 summed in float32, and float16 summed partly in float16.

Two neighbours along k are stored as one 32-bit element, the first in the low half, so packed panels, rows and tiles are
those of float32 with half as many terms.
"""

from __future__ import annotations

from enum import Enum

from onert_llvm.irbuilder import BF16, F16, F32, I16, I32, Kernel, Val, intrinsic, vec


class Terms(Enum):
    """The operands of a product's terms.

    `PAIRED`: both sides are pairs of bfloat16, multiplied and added by one instruction of the target. `WIDENED`: only
    the right-hand side is, and it is widened to float32; so few bytes are read that widening is free. `WIDENED_HALVES`:
    the same for pairs of float16. `HALVES`: both sides are pairs of float16, summed in float16 for `RUN` pairs at a
    time.
    """

    FLOAT = "float"
    PAIRED = "paired"
    WIDENED = "widened"
    WIDENED_HALVES = "widened halves"
    HALVES = "halves"

    @property
    def pairs(self) -> bool:
        """Whether both sides are pairs."""
        return self in (Terms.PAIRED, Terms.HALVES)

    @property
    def widens(self) -> bool:
        """Whether only the right-hand side is pairs."""
        return self in (Terms.WIDENED, Terms.WIDENED_HALVES)


RUN = 8
"""Pairs that are summed in float16 before these sums are added in float32."""


_DOT = {4: "llvm.aarch64.neon.bfdot.v4f32.v8bf16", 16: "llvm.x86.avx512bf16.dpbf16ps.512"}
"""The intrinsic by the lanes of a register of sums."""

_UPPER = -(1 << 16)


def add_pairs(k: Kernel, a: Val, b: Val, total: Val) -> Val:
    """`total` plus the products of two registers of pairs."""
    pairs = vec(BF16, 2 * total.lanes)
    return intrinsic(k.b, _DOT[total.lanes], total.type, total, a.bits(pairs), b.bits(pairs))


def widened(pairs: Val, terms: Terms = Terms.WIDENED) -> tuple[Val, Val]:
    """The first and the second elements of pairs in float32; `terms` says of which type they are."""
    words, t = pairs.bits(vec(I32, pairs.lanes)), vec(F32, pairs.lanes)
    if terms is Terms.WIDENED_HALVES:
        return _half(words), _half(words.lshr(words.like(16)))
    return (words << 16).bits(t), (words & _UPPER).bits(t)


def _half(words: Val) -> Val:
    """The float16 numbers in the low halves of words."""
    return words.cast(I16).bits(vec(F16, words.lanes)).cast(F32)


def one_of(pairs: Val, at: Val) -> Val:
    """The first elements of pairs in float32 if `at` is even, else the second."""
    words = pairs.bits(vec(I32, pairs.lanes)) << ((at + 1) % 2 * 16).cast(I32).splat(pairs.lanes)
    return (words & _UPPER).bits(vec(F32, pairs.lanes))


def half_sums(k: Kernel, sums: Val) -> Val:
    """The sums of adjacent pairs of lanes of a float16 register, in float32."""
    wide, numbers = sums.cast(F32), range(sums.lanes)
    return wide.shuffle(numbers[::2]) + wide.shuffle(numbers[1::2])


def rounded(k: Kernel, x: Val, half: bool = False) -> Val:
    """A register of float32 rounded to bfloat16, or to float16 with `half`, ties to even: 16 bits per lane.

    If the target has an instruction for bfloat16, numbers below 2**-126 are flushed to 0.
    """
    if half:
        return x.cast(F16).bits(vec(I16, x.lanes))
    if k.isa.bfloat:
        return x.cast(BF16).bits(vec(I16, x.lanes))
    words = x.bits(vec(I32, x.lanes))
    upper = words.lshr(words.like(16))
    nearest = (words + (upper & 1) + 0x7FFF).lshr(words.like(16))
    return x.unordered(x).select(upper | 0x40, nearest).cast(I16)
