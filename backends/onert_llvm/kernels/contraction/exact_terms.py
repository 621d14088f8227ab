"""Tiles of a product computed again term by term, for products that add terms which the operation does not have.

Zeros stand for what is not there: pixels outside of the picture, and taps that only other columns of a panel have. They
change no sum of finite numbers, but 0 times infinity or NaN is NaN. A sum that such a term reached is NaN, so tiles
without any are right as they are; the others leave these terms out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, Kernel, Val, Var, vec

from .epilogue import Epilogue
from .float_microkernel import Accumulators
from .register_tile import Block

ABSENT = np.float32(-0.0)
"""The weight of a tap that a column does not have; real weights of zero are positive in products that use it."""

Terms = Callable[[Val, Callable[[Val, Val], None]], None]
"""`terms(row, add)` writes `add(x, weights)` for each term of a row of the tile: the element of the row, and where the
panel's columns of that term begin."""


def without_absent_terms(
    k: Kernel, task: Task, block: Block, acc: Accumulators, epilogue: Epilogue, holes: bool, terms: Terms
) -> None:
    """Replace the sums of a tile where any of them is NaN; with `holes`, weights that are `ABSENT` are left out."""
    lanes, columns = k.isa.f32, range(block.vectors)
    sums = [x.get() for row in acc for x in row]
    pairs = [a.unordered(b) for a, b in zip(sums[::2], sums[1::2] + sums[-1:], strict=False)]
    spoilt = pairs[0]
    for pair in pairs[1:]:
        spoilt = spoilt | pair
    with k.when(spoilt.any()):
        room = k.view(k.scratch(F32, block.count * block.vectors * lanes), F32, block.vectors * lanes, lanes)
        starts = k.view(k.scratch(F32, block.vectors * lanes), F32, lanes)
        for j in columns:
            starts[j].store(epilogue.start(k, task, block.at(j), lanes, block.own(j)))
        with k.loop(block.count) as row, k.loop(block.vectors) as vector:
            total = k.var(starts[vector].load(lanes))
            terms(row, partial(_add, k, vector, total, holes))
            room[row, vector].store(total.get())
        for i, own in enumerate(acc):
            for j, x in enumerate(own):
                x.set(room[i, j].load(lanes))


def _add(k: Kernel, vector: Val, total: Var, holes: bool, x: Val, weights: Val) -> None:
    lanes = k.isa.f32
    w = k.view(weights, F32, lanes)[vector].load(lanes)
    found = k.fma(x.splat(lanes), w, total.get())
    if holes:
        found = w.bits(vec(I32, lanes)).eq(-0x80000000).select(total.get(), found)
    total.set(found)
