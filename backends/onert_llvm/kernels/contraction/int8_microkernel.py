"""Products of bytes summed exactly in 32 bits, by whatever instruction a target has for it.

Weights are signed. Each instruction wants the other side in a domain of its own: `offset` is what is added to the
stored activations to get there. The sums then differ from those of the true zero points by terms that depend on the
weights alone; `packing.pack_int8` folds these into the bias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onert_llvm.irbuilder import I8, I16, I32, Kernel, Val, View, intrinsic, vec
from onert_llvm.target.isa import Dot, Isa

from .float_microkernel import Accumulators

GROUP = {Dot.VNNI: 4, Dot.AVX_VNNI: 4, Dot.SDOT: 4, Dot.MADD: 2}
"""How many neighbours along k lie together for each column of a packed panel."""


def offset(isa: Isa, signed: bool) -> int:
    """What the activations are shifted by before they are multiplied."""
    if isa.dot in (Dot.VNNI, Dot.AVX_VNNI):
        return 128 if signed else 0
    if isa.dot is Dot.SDOT:
        return 0 if signed else -128
    return 0


def multiply_add_int8(
    k: Kernel,
    acc: Accumulators,
    rows: Sequence[View],
    panel: View,
    depth: Val,
    rest: int,
    signed: bool,
    at_step: Callable[[Val], None] | None = None,
) -> None:
    """`acc[i][j] += (rows[i][p] + offset) * panel[p, j]` for p below `depth`.

    `rows` are windows on bytes, `panel` on the bytes of one register group (strides: group of k, byte). `rest` is depth
    modulo the target's group, known when the code is made so that no byte beyond a row is read. `at_step(p)` is written
    before the step of whole group `p`.
    """
    group = GROUP[k.isa.dot]
    with k.loop(depth // group) as p:
        if at_step is not None:
            at_step(p)
        b = [panel[p, j * k.isa.f32 * group].load(k.isa.f32 * group) for j in range(len(acc[0]))]
        _step(k, acc, [_whole(k, row[p * group], group, signed) for row in rows], b)
    if rest:
        p = depth // group
        b = [panel[p, j * k.isa.f32 * group].load(k.isa.f32 * group) for j in range(len(acc[0]))]
        _step(k, acc, [_part(k, row[p * group], rest, group, signed) for row in rows], b)


def _step(k: Kernel, acc: Accumulators, a: Sequence[Val], b: Sequence[Val]) -> None:
    wide = [x.cast(I16) if k.isa.dot is Dot.MADD else x for x in b]
    for ai, sums in zip(a, acc, strict=True):
        for bj, x in zip(wide, sums, strict=True):
            x.set(dot(k, x.get(), ai, bj))


def _whole(k: Kernel, place: View, group: int, signed: bool) -> Val:
    """A group of a row's bytes in every column's lane, in the domain that the instruction wants."""
    word = I32 if group == 4 else I16
    return _domain(k, k.view(place.address, word, 1).load(align=1), group, signed)


def _part(k: Kernel, place: View, count: int, group: int, signed: bool) -> Val:
    """The same from fewer bytes; those that are missing are zero and meet zeros in the panel."""
    word = I32 if group == 4 else I16
    bytes_ = k.view(place.address, I8, 1)
    value = bytes_[0].load().cast(word, signed=False)
    for i in range(1, count):
        value = value | (bytes_[i].load().cast(word, signed=False) << 8 * i)
    return _domain(k, value, group, signed)


def _domain(k: Kernel, value: Val, group: int, signed: bool) -> Val:
    lanes = k.isa.f32
    spread = value.splat(lanes).bits(vec(I8, lanes * group))
    if k.isa.dot is Dot.MADD:
        return spread.cast(I16, signed=signed)
    return spread ^ -128 if offset(k.isa, signed) else spread


MADD = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}


def dot(k: Kernel, acc: Val, a: Val, b: Val) -> Val:
    """Lane by lane: `acc` plus the products of a group's activations `a` and weights `b`."""
    lanes = acc.lanes
    if k.isa.dot in (Dot.VNNI, Dot.AVX_VNNI):
        return intrinsic(k.b, f"llvm.x86.avx512.vpdpbusd.{lanes * 32}", acc.type, acc, a, b)
    if k.isa.dot is Dot.SDOT:
        return intrinsic(k.b, f"llvm.aarch64.neon.sdot.v{lanes}i32.v{lanes * 4}i8", acc.type, acc, a, b)
    if k.isa.triple.startswith("x86_64"):
        return acc + intrinsic(k.b, MADD[lanes], acc.type, a, b)
    products = a.cast(I32) * b.cast(I32)
    even, odd = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
    return acc + products.shuffle(list(even)) + products.shuffle(list(odd))
