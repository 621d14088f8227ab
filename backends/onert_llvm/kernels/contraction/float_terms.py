"""Products of floats, and tiles recomputed term by term if the product added terms that the operation does not have.

Zeros stand in for absent terms: pixels outside of the picture, and taps that only other columns of a panel have. They
change no sum of finite numbers, but 0 times infinity or NaN is NaN. A sum with such a term is NaN, so tiles without NaN
are right as they are; the others are recomputed without these terms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, Kernel, Val, Var, View, vec

from . import contraction
from .bfloat.terms import Terms
from .contraction import Reading, Run, Sums
from .float_microkernel import Accumulators, accumulators, add_odd, multiply_add
from .register_tile import Block, Tile

ABSENT = np.float32(-0.0)
"""The weight of a tap that a column does not have; real zero weights are positive in products that use it."""


@frozen
class FloatTerms(contraction.Terms):
    """float32 times float32. B is packed by `pack_f32`; if it is not `packed`, its rows are contiguous, and a register
    may be read beyond the last row unless loads are `masked`.

    If both sides are pairs of 16-bit numbers (`kind`), each pair counts as one term; if only B is, single terms count.

    With `exact`, non-finite values affect only sums that they are a term of, not others through pixels outside of the
    picture or packed weights that are `ABSENT`.
    """

    packed: bool = True
    exact: bool = False
    masked: bool = False
    kind: Terms = Terms.FLOAT

    name = "f32"
    element = F32

    def sums(
        self, k: Kernel, task: Task, tile: Tile, block: Block, begin: Callable[[int], Val], reading: Reading
    ) -> Sums:
        acc = accumulators(k, [begin(j) for j in range(block.vectors)], block.count)
        width = block.width if self.packed else task.i64("n")
        taps = () if reading.depth is None else (reading.depth * width,)
        panels, mask = k.view(block.panel, F32, *taps, width, 1), block.masks[-1] if self.masked else None
        with reading.each() as run:
            panel = panels if run.tap is None else panels[run.tap]
            steps = run.depth // 2 if self.kind.widens else run.depth
            fetch = block.prefetcher(run.tap, reading.depth)
            multiply_add(k, acc, run.rows, panel, steps, tile.split, mask, fetch, self.kind)
            if self.kind.widens:
                add_odd(k, acc, run.rows, panel, run.depth, self.kind)
        if self.exact:
            self._without_absent_terms(k, task, block, acc, begin, reading, panels)
        return [[x.get() for x in row] for row in acc]

    def _without_absent_terms(
        self,
        k: Kernel,
        task: Task,
        block: Block,
        acc: Accumulators,
        begin: Callable[[int], Val],
        reading: Reading,
        panels: View,
    ) -> None:
        """Recompute the sums of a tile if any of them is NaN."""
        lanes, columns = k.isa.f32, range(block.vectors)
        sums = [x.get() for row in acc for x in row]
        pairs = [a.unordered(b) for a, b in zip(sums[::2], sums[1::2] + sums[-1:], strict=False)]
        spoilt = pairs[0]
        for pair in pairs[1:]:
            spoilt = spoilt | pair
        assert reading.single is not None
        with k.when(spoilt.any()):
            room = k.view(k.scratch(F32, block.count * block.vectors * lanes), F32, block.vectors * lanes, lanes)
            starts = k.view(k.scratch(F32, block.vectors * lanes), F32, lanes)
            for j in columns:
                starts[j].store(begin(j))
            with k.loop(block.count) as row, k.loop(block.vectors) as vector:
                total = k.var(starts[vector].load(lanes))
                with reading.single(row).each() as run, k.when(run.rows[0].address.ne(task.ptr("zero"))):
                    self._add(k, run, panels, vector, total)
                room[row, vector].store(total.get())
            for i, own in enumerate(acc):
                for j, x in enumerate(own):
                    x.set(room[i, j].load(lanes))

    def _add(self, k: Kernel, run: Run, panels: View, vector: Val, total: Var) -> None:
        """Add the terms of a run of one row."""
        lanes = k.isa.f32
        assert run.tap is not None
        with k.loop(run.depth) as at:
            w = k.view(panels[run.tap, at].address, F32, lanes)[vector].load(lanes)
            found = k.fma(run.rows[0][at].load().splat(lanes), w, total.get())
            if self.packed:
                found = w.bits(vec(I32, lanes)).eq(-0x80000000).select(total.get(), found)
            total.set(found)
