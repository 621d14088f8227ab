"""Exact products of 16-bit activations and 8-bit weights.

Pairs of neighbours along k are multiplied and added in 32 bits. If the whole sum could overflow 32 bits, partial sums
move to float64 every `step` terms; float64 is exact while sums stay below 2**37 (`int16_filters.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F64, I8, I16, I32, Kernel, Val, Var, View, vec
from onert_llvm.kernels.arithmetic.requantize_int16 import ShortScaling

from .contraction import Ending, Finish, Reading, Sums, Terms
from .float_microkernel import Accumulators, accumulators
from .int8_microkernel import dot_pairs
from .register_tile import Block, Tile

GROUP = 2
"""Neighbours along k that are adjacent for each column of a packed panel."""


@frozen
class ShortTerms(Terms):
    """16-bit numbers times bytes packed in pairs.

    `odd`: a run has an odd number of terms. `split`: sums move to float64 every `step` terms.
    """

    odd: bool
    split: bool

    name = "int16"
    element = I16

    @property
    def slots(self) -> tuple[str, ...]:
        return ("step",) if self.split else ()

    def group(self, k: Kernel) -> int:
        return GROUP

    def sums(
        self, k: Kernel, task: Task, tile: Tile, block: Block, begin: Callable[[int], Val], reading: Reading
    ) -> Sums:
        starts, zero = [begin(j) for j in range(block.vectors)], k.zeros(I32, k.isa.f32)
        acc = accumulators(k, [zero] * len(starts) if self.split else starts, block.count)
        totals = [[k.var(s.cast(F64)) for s in starts] for _ in range(block.count)] if self.split else []
        sums, width = _Sums(k, task, self, acc, totals), block.vectors * k.isa.f32 * GROUP
        apart = None if reading.depth is None else ((reading.depth + 1) // GROUP) * width
        with reading.each() as run:
            panel = block.panel
            if run.tap is not None and apart is not None:
                panel = k.view(panel, I8, apart)[run.tap].address
            sums.add(run.rows, k.view(panel, I8, width, GROUP), run.depth)
        return [[x.get() for x in row] for row in (totals if self.split else acc)]


@frozen
class Shorts(Ending):
    """Sums requantised to 16-bit numbers."""

    scaling: ShortScaling

    element = I16

    @property
    def slots(self) -> tuple[str, ...]:
        return self.scaling.slots

    def begin(self, k: Kernel, task: Task, block: Block, vector: int) -> Val:
        return self.scaling.bias(k, task, block.at(vector))

    def finisher(self, k: Kernel, task: Task, block: Block) -> Callable[[int], Finish]:
        def column(j: int) -> Finish:
            lanes = self.scaling.lanes(k, task, block.at(j))
            return lambda _, total: self.scaling.stored(k, task, total, lanes)

        return column


@frozen(eq=False)
class _Sums:
    """The sums of a tile in 32 bits, and in float64 as well if they are `split`."""

    k: Kernel
    task: Task
    terms: ShortTerms
    acc: Accumulators
    totals: Sequence[Sequence[Var]]

    def add(self, rows: Sequence[View], panel: View, depth: Val) -> None:
        """Add the products of `depth` adjacent terms of each row with a panel."""
        pairs = depth // GROUP
        if self.terms.split:
            step = self.task.i64("step") // GROUP
            with self.k.loop(pairs, step=step) as first:
                self._pairs(rows, panel, first, (first + step).min(pairs))
                self.move()
        else:
            self._pairs(rows, panel, self.k.index(0), pairs)
        if self.terms.odd:
            last = [row[pairs * GROUP].load().cast(I32, signed=False) for row in rows]
            self._step(last, panel, pairs)
            if self.terms.split:
                self.move()

    def _pairs(self, rows: Sequence[View], panel: View, first: Val, last: Val) -> None:
        with self.k.loop(last, first) as p:
            both = [self.k.view(row[p * GROUP].address, I32, 1).load(align=2) for row in rows]
            self._step(both, panel, p)

    def _step(self, rows: Sequence[Val], panel: View, pair: Val) -> None:
        lanes = self.k.isa.f32
        columns = [panel[pair, j * lanes].load(lanes * GROUP).cast(I16) for j in range(len(self.acc[0]))]
        for row, sums in zip(rows, self.acc, strict=True):
            spread = row.splat(lanes).bits(vec(I16, lanes * GROUP))
            for column, total in zip(columns, sums, strict=True):
                total.set(dot_pairs(self.k, total.get(), spread, column))

    def move(self) -> None:
        """Move the 32-bit sums to the float64 sums."""
        for sums, totals in zip(self.acc, self.totals, strict=True):
            for x, total in zip(sums, totals, strict=True):
                total.set(total.get() + x.get().cast(F64))
                x.set(self.k.zeros(I32, self.k.isa.f32))
