"""Products of bytes summed exactly in 32 bits, by the target's instruction for it.

Weights are signed. Each instruction expects activations in its own domain: `offset` is added to the stored ones. The
sums then differ from those of the true zero points by terms that depend on the weights alone;
`weight_packing.folded_bias` adds these to the bias.

Weights of 4 or 2 bits stay packed in memory (`pack_narrow`): a byte holds those of two or four consecutive groups along
k. A shift and a mask bring each to the top of its byte, which multiplies it by a power of two; `narrow_shift` is the
right shift that corrects the sums at the end. If sums of two products must fit in 16 bits (`Dot.SHORT`), a shuffle
looks up the signed number instead, and the sums of two groups are added before they are widened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from onert_llvm.irbuilder import I8, I16, I32, Kernel, Val, View, intrinsic, vec
from onert_llvm.irbuilder.text import vector_constant
from onert_llvm.kernels.arithmetic.byte_table import SHUFFLES
from onert_llvm.target.isa import Isa

from .float_microkernel import Accumulators

_AVX2_LANES = 8
"""32-bit lanes of an AVX2 register."""

MOST_TERMS = (1 << 31) // (255 * 128)
"""The most products of two bytes whose sum fits in 32 bits."""


def step_terms(isa: Isa, bits: int = 8) -> int:
    """The terms of a sum that one step of the inner loop processes."""
    return isa.group * (8 // bits)


def groups_at_once(isa: Isa) -> int:
    """How many of the groups of narrow weights that share bytes `dots` adds together."""
    return 2 if isa.dot.value.short else 1


def narrow_shift(isa: Isa, bits: int) -> int:
    """The left shift of the sums of products with weights of `bits` bits."""
    return 0 if isa.dot.value.short else 8 - bits


def offset(isa: Isa, signed: bool) -> int:
    """The offset added to activations before they are multiplied."""
    return isa.dot.value.moved[signed]


def multiply_add_int8(
    k: Kernel,
    acc: Accumulators,
    rows: Sequence[View],
    panel: View,
    depth: Val,
    rest: int,
    signed: bool,
    at_step: Callable[[Val], None] | None = None,
    bits: int = 8,
) -> None:
    """`acc[i][j] += (rows[i][p] + offset) * panel[p, j]` for p below `depth`.

    `rows` are views of bytes, or of the same numbers in 16 bits on targets that widen them; `panel` is a view of the
    bytes of one register group (strides: group of k, byte). `rest` is depth modulo the terms of a step, known at code
    generation, so that no byte beyond a row is read. `at_step(p)` is emitted before whole step `p`. A step is a group,
    or for weights of fewer `bits` the groups that share a byte; sums are then scaled by `1 << narrow_shift(bits)`.
    """
    group, together, terms = k.isa.group, 8 // bits, step_terms(k.isa, bits)
    at_once = groups_at_once(k.isa)
    lanes = k.isa.f32 * group
    steps, begin = depth // terms, k.index(0)
    if _widens_pairs(k) and bits == 8 and steps.constant is None and rows[0].element is I8:
        begin = _two_at_once(k, acc, rows, panel, steps, signed, at_step)
    with k.loop(steps, begin) as p:
        if at_step is not None:
            at_step(p)
        b = [panel[p, j * lanes].load(lanes) for j in range(len(acc[0]))]
        for first in range(0, together, at_once):
            groups = range(first, first + at_once)
            a = [[_whole(k, row[p * terms + i * group], group, signed) for row in rows] for i in groups]
            _steps(k, acc, a, [[_own(k, x, i, bits) for x in b] for i in groups])
    if rest:
        p = depth // terms
        b = [panel[p, j * lanes].load(lanes) for j in range(len(acc[0]))]
        for i, first in enumerate(range(0, rest, group)):
            own, count = [_own(k, x, i, bits) for x in b], min(group, rest - first)
            add_words(k, acc, [row[p * terms + first] for row in rows], own, count, signed)


def _widens_pairs(k: Kernel) -> bool:
    """Whether the target widens bytes to 16 bits and multiplies them in pairs, with AVX2's shuffles."""
    return k.isa.dot.value.wide and k.isa.triple.startswith("x86_64") and k.isa.f32 == _AVX2_LANES


def _two_at_once(
    k: Kernel,
    acc: Accumulators,
    rows: Sequence[View],
    panel: View,
    steps: Val,
    signed: bool,
    at_step: Callable[[Val], None] | None,
) -> Val:
    """Emit two pairs of terms per iteration, and return the number of steps done.

    Broadcasting and widening a pair takes two shuffles; four bytes are broadcast by the load and widened together, and
    one shuffle each then selects a pair.
    """
    lanes, done = k.isa.f32, steps // 2 * 2
    with k.loop(done, step=2) as p:
        for i in range(2):
            if at_step is not None:
                at_step(p + i)
        both = []
        for row in rows:
            four = k.view(row[p * 2].address, I32, 1).load(align=1).splat(lanes // 2).bits(vec(I8, lanes * 2))
            both.append(four.cast(I16, signed=signed).bits(vec(I32, lanes)))
        for i in range(2):
            b = [panel[p + i, j * lanes * 2].load(lanes * 2) for j in range(len(acc[0]))]
            pair = [lane - lane % 2 + i for lane in range(lanes)]
            _step(k, acc, [x.shuffle(pair).bits(vec(I16, lanes * 2)) for x in both], b)
    return done


def add_group(k: Kernel, acc: Accumulators, rows: Sequence[View], weights: View, signed: bool) -> None:
    """`acc[i][j] += (rows[i][p] + offset) * weights[j, p]` for the terms p of one whole group."""
    lanes = k.isa.f32 * k.isa.group
    b = [weights[j * lanes].load(lanes) for j in range(len(acc[0]))]
    add_words(k, acc, rows, b, k.isa.group, signed)


def add_words(
    k: Kernel, acc: Accumulators, rows: Sequence[View], words: Sequence[Val], count: int, signed: bool
) -> None:
    """The same for `count` terms, at most a group, whose weights are in registers; those of missing terms are 0."""
    _step(k, acc, [_some(k, row, count, signed) for row in rows], words)


def _some(k: Kernel, place: View, count: int, signed: bool) -> Val:
    group = k.isa.group
    return _whole(k, place, group, signed) if count == group else _part(k, place, count, group, signed)


def _own(k: Kernel, packed: Val, number: int, bits: int) -> Val:
    """The weights of one of the groups that share bytes, at the top of each byte unless that is `short` of room."""
    if bits == 8:
        return packed
    if k.isa.dot.value.short:
        return _signed(k, packed.lshr(bits * number) & ((1 << bits) - 1), bits)
    return (packed << (8 - bits * (number + 1))) & (-1 << narrow_shift(k.isa, bits))


def _signed(k: Kernel, codes: Val, bits: int) -> Val:
    """The signed numbers whose lowest bits are `codes`: an entry of a table of sixteen."""
    half = 1 << bits - 1
    numbers = tuple((code + half) % (2 * half) - half for code in range(16)) * (codes.lanes // 16)
    table = Val(k.b, vector_constant(codes.type, numbers))
    return intrinsic(k.b, SHUFFLES[codes.lanes], codes.type, table, codes)


def _step(k: Kernel, acc: Accumulators, a: Sequence[Val], b: Sequence[Val]) -> None:
    _steps(k, acc, [a], [b])


def _steps(k: Kernel, acc: Accumulators, a: Sequence[Sequence[Val]], b: Sequence[Sequence[Val]]) -> None:
    """Add the products of some groups: `a[group][row]` and `b[group][vector]`."""
    wide = [[x.cast(I16) if k.isa.dot.value.wide else x for x in each] for each in b]
    for i, sums in enumerate(acc):
        for j, x in enumerate(sums):
            x.set(dots(k, x.get(), [each[i] for each in a], [each[j] for each in wide]))


def _whole(k: Kernel, place: View, group: int, signed: bool) -> Val:
    """A group of a row's numbers, broadcast to every column's lane, in the domain of the instruction."""
    if place.element is I16:
        both = k.view(place.address, I32, 1).load(align=4)
        return both.splat(k.isa.f32).bits(vec(I16, k.isa.f32 * group))
    word = I32 if group == 4 else I16
    return _domain(k, k.view(place.address, word, 1).load(align=1), group, signed)


def _part(k: Kernel, place: View, count: int, group: int, signed: bool) -> Val:
    """The same for a partial group; missing bytes are zero and are multiplied by zeros of the panel."""
    word = I32 if group == 4 else I16
    bytes_ = k.view(place.address, I8, 1)
    value = bytes_[0].load().cast(word, signed=False)
    for i in range(1, count):
        value = value | (bytes_[i].load().cast(word, signed=False) << 8 * i)
    return _domain(k, value, group, signed)


def _domain(k: Kernel, value: Val, group: int, signed: bool) -> Val:
    lanes = k.isa.f32
    spread = value.splat(lanes).bits(vec(I8, lanes * group))
    if k.isa.dot.value.wide:
        return spread.cast(I16, signed=signed)
    return spread ^ -128 if offset(k.isa, signed) else spread


MADD = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
_SHORT = {8: "llvm.x86.avx2.pmadd.ub.sw", 16: "llvm.x86.avx512.pmaddubs.w.512"}


def dots(k: Kernel, acc: Val, a: Sequence[Val], b: Sequence[Val]) -> Val:
    """Per lane: `acc` plus the products of at most two groups' activations and weights."""
    if not k.isa.dot.value.short:
        return reduce(lambda total, pair: dot(k, total, *pair), zip(a, b, strict=True), acc)
    lanes = acc.lanes
    pairs = [intrinsic(k.b, _SHORT[lanes], vec(I16, 2 * lanes), x, y) for x, y in zip(a, b, strict=True)]
    return _dot_widened(k, acc, reduce(Val.__add__, pairs), k.const(I16, 1).splat(2 * lanes))


def dot(k: Kernel, acc: Val, a: Val, b: Val) -> Val:
    """Per lane: `acc` plus the products of a group's activations `a` and weights `b`."""
    lanes = acc.lanes
    if k.isa.dot.value.short:
        return dots(k, acc, [a], [b])
    if k.isa.dot.value.wide:
        return _dot_widened(k, acc, a, b)
    return intrinsic(k.b, k.isa.dot.value.named(k.isa.dot.value.intrinsic, lanes), acc.type, acc, a, b)


def dot_pairs(k: Kernel, acc: Val, a: Val, b: Val) -> Val:
    """Per lane: `acc` plus the products of two pairs of 16-bit numbers, modulo 2**32."""
    name = k.isa.dot.value.named(k.isa.dot.value.pairs, acc.lanes)
    if not name:
        both = vec(I16, 2 * acc.lanes)
        return _dot_widened(k, acc, a.bits(both), b.bits(both))
    return intrinsic(k.b, name, acc.type, acc, a.bits(acc.type), b.bits(acc.type))


def _dot_widened(k: Kernel, acc: Val, a: Val, b: Val) -> Val:
    lanes = acc.lanes
    if k.isa.triple.startswith("x86_64"):
        return acc + intrinsic(k.b, MADD[lanes], acc.type, a, b)
    products = a.cast(I32) * b.cast(I32)
    even, odd = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
    return acc + products.shuffle(even) + products.shuffle(odd)
