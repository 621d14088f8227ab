"""Sums of the rows that a product multiplies: weights with a zero point subtract so many times this from each row.

The bytes are added in the domain of the dot product, whole registers at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from onert_llvm.irbuilder import I8, I16, I32, Kernel, Val, Var, View
from onert_llvm.target.isa import Dot

from .int8_microkernel import GROUP, dot, offset


def add_row_sums(k: Kernel, sums: Sequence[Var], rows: Sequence[View], depth: Val, signed: bool) -> None:
    """`sums[i] += rows[i][:depth]` in 32-bit lanes whose sum is meant; no byte beyond a row is read."""
    width = k.isa.f32 * GROUP[k.isa.dot]
    whole = depth - depth % width
    ones = k.const(I8, 1).splat(width)
    with k.loop(whole, step=width) as p:
        for total, row in zip(sums, rows, strict=True):
            total.set(_added(k, total.get(), row[p].load(width), ones, signed))
    if k.isa.vector_bytes == 64:  # AVX-512: part of a register of bytes is read in one go
        with k.when(whole < depth):
            mask = k.iota(I8, width) < (depth - whole).cast(I8).splat(width)
            for total, row in zip(sums, rows, strict=True):
                part = row[whole].load(width, mask)
                total.set(_added(k, total.get(), part, mask.select(ones, 0), signed))
        return
    with k.loop(depth, whole) as p:
        for total, row in zip(sums, rows, strict=True):
            one = row[p].load().cast(I32, signed=signed) + offset(k.isa, signed)
            total.set(total.get() + (k.iota(I32, k.isa.f32) < 1).select(one.splat(k.isa.f32), 0))


def _added(k: Kernel, total: Val, values: Val, ones: Val, signed: bool) -> Val:
    if k.isa.dot is Dot.MADD:
        return dot(k, total, values.cast(I16, signed=signed), ones.cast(I16))
    return dot(k, total, values ^ -128 if offset(k.isa, signed) else values, ones)


def sum_of_lanes(x: Val) -> Val:
    """One sum from all lanes, halves onto halves."""
    while x.lanes > 2:
        half = x.lanes // 2
        x = x.shuffle(list(range(half))) + x.shuffle(list(range(half, x.lanes)))
    return x.lane(0) + x.lane(1)
