"""Products of bytes with weights that have a scale for each run of terms: whole sums become floats run by run.

The arithmetic is that of `onert.ir.ops.arithmetic.dynamic_range.blockwise`, operation by operation.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I16, I32, Kernel, Val, View, vec
from onert_llvm.kernels.contraction.contraction import store
from onert_llvm.kernels.contraction.int8_microkernel import dot, offset, step_terms
from onert_llvm.kernels.contraction.register_tile import SLOTS, Block, Tile, each_block
from onert_llvm.kernels.contraction.scaled_results import BlockScaled
from onert_llvm.target.isa import Isa

_MOST_UNROLLED = 8
"""Steps of a run that are written out."""


def lift(isa: Isa, bits: int) -> int:
    """What is added to each weight of so many bits.

    Narrow ones are stored as positive numbers, and bytes are moved where an instruction multiplies positive by signed
    ones.
    """
    return 1 << bits - 1 if bits < 8 or offset(isa, True) else 0


@frozen
class GemmBlocks(Value):
    """A product with the rows of A `k` bytes apart, whose weights of `bits` have a scale for each `run` of terms.

    `b` has panels as `packing.pack_narrow` makes them of the weights and `lift`, `scales` for each panel the scales of
    each run, whole registers of columns, in float16 where they are `short`: then all of them are positive and normal.
    `run_sums` are those of A's rows, run by run. A run is a multiple of the terms of a step.
    """

    tile: Tile
    run: int
    bits: int
    how: BlockScaled
    short: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        return ("a", "b", "c", *SLOTS, "runs", "ldc", "scales", "run_sums", *self.how.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        each_block(k, task, begin, end, self.tile, lambda block: self._block(k, task, block))

    def _block(self, k: Kernel, task: Task, block: Block) -> None:
        lanes, runs = k.isa.f32, task.i64("runs")
        steps, width = self.run // step_terms(k.isa, self.bits), block.vectors * lanes
        panel = k.view(block.panel, I8, width * k.isa.group, 1)
        columns = self.tile.columns.widest * lanes
        element = I16 if self.short else F32
        scales = k.view(task.view("scales", element, runs * columns)[block.columns.number].address, element, width, 1)
        rows = block.rows(task.view("a", I8, runs * self.run, 1))
        sums = block.rows(task.view("run_sums", I32, runs, 1))
        total = [[k.var(k.zeros(F32, lanes)) for _ in range(block.vectors)] for _ in rows]
        with k.loop(runs, nonempty=True) as number:
            start = [own[number].load() * -lift(k.isa, self.bits) for own in sums]
            acc = [[k.var(x.splat(lanes)) for _ in range(block.vectors)] for x in start]
            first = number * steps

            def step(at: Val) -> None:
                weights = [panel[first + at, j * lanes * k.isa.group] for j in range(block.vectors)]
                places = [row[number * self.run + at * step_terms(k.isa, self.bits)] for row in rows]
                found = self._step(k, [[x.get() for x in own] for own in acc], places, weights)
                for own, values in zip(acc, found, strict=True):
                    for x, value in zip(own, values, strict=True):
                        x.set(value)

            if steps <= _MOST_UNROLLED:
                for number_of_step in range(steps):
                    step(k.index(number_of_step))
            else:
                with k.loop(k.index(steps), nonempty=True) as at:
                    step(at)
            for j in range(block.vectors):
                scale = scales[number, j * lanes].load(lanes)
                scale = _as_float32(scale) if self.short else scale
                for own, out in zip(acc, total, strict=True):
                    out[j].set(out[j].get() + own[j].get().cast(F32) * scale)
        store(k, task, block, self.how, [[x.get() for x in own] for own in total])

    def _step(
        self, k: Kernel, acc: list[list[Val]], places: Sequence[View], weights: Sequence[View]
    ) -> list[list[Val]]:
        """The sums after the terms whose weights share bytes."""
        group = k.isa.group
        packed = [w.load(k.isa.f32 * group) for w in weights]
        for number in range(8 // self.bits):
            own = [self._own(k, x, number) for x in packed]
            for i, place in enumerate(places):
                a = _spread(k, place.after(number * group), group)
                acc[i] = [dot(k, x, w, a) for x, w in zip(acc[i], own, strict=True)]
        return acc

    def _own(self, k: Kernel, packed: Val, number: int) -> Val:
        """The weights of one of the groups that share bytes, in the domain of the dot product."""
        if self.bits < 8:
            packed = packed.lshr(self.bits * number) & ((1 << self.bits) - 1)
        elif lift(k.isa, 8):
            packed = packed ^ -128
        return packed.cast(I16) if k.isa.dot.value.wide else packed


def _as_float32(half: Val) -> Val:
    """Positive normal numbers of 16 bits: five bits of exponent around 15 become eight around 127."""
    moved = (half.cast(I32, signed=False) << 13) + ((127 - 15) << 23)
    return moved.bits(vec(F32, half.lanes))


def _spread(k: Kernel, place: View, group: int) -> Val:
    """A group of a row's signed bytes in every column's lane."""
    word = k.view(place.address, I32 if group == 4 else I16, 1).load(align=1)
    spread = word.splat(k.isa.f32).bits(vec(I8, k.isa.f32 * group))
    return spread.cast(I16) if k.isa.dot.value.wide else spread
