"""Products of bytes whose weights have a scale for each run of terms: integer sums are converted to floats run by run.

The arithmetic is that of `onert.ir.ops.arithmetic.dynamic_range.blockwise`, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I16, I32, Kernel, Type, Val, Var, View, vec
from onert_llvm.kernels.contraction.contraction import Ending, store
from onert_llvm.kernels.contraction.int8_microkernel import dots, groups_at_once, offset, step_terms
from onert_llvm.kernels.contraction.register_tile import LINE, SLOTS, Block, Panel, Tile, each_block
from onert_llvm.target.isa import Isa

_MOST_UNROLLED = 8
"""The most steps of a run that are unrolled."""


def lift(isa: Isa, bits: int) -> int:
    """What is added to each weight of `bits` bits before it is packed.

    Narrow weights become non-negative, and so do bytes if the dot product multiplies unsigned by signed bytes.
    """
    return 1 << bits - 1 if bits < 8 or offset(isa, True) else 0


@frozen
class GemmBlocks(Value):
    """A product with rows of A `k` bytes apart, whose weights of `bits` bits have a scale for each `run` of terms.

    `b` has panels made by `weight_packing.pack_narrow` from the weights plus `lift`; `scales` has each panel's scales
    by run, padded to whole registers, in float16 if they are `short` (then all are positive and normal). `starts` has,
    for each run of each row of A, the initial sums: the run's sum times the offset that corrects for `lift`. A run is a
    multiple of the terms of a step. With several rows, each run prefetches a line of the next panel.

    With `zeros`, the slot of that name has 16-bit numbers beside the scales, which the initial sums are multiplied by.
    If runs are `apart`, each run of a row has its own scale in `row_scales`, `[m, runs]`.

    A run's sums are converted between the products of the next run, which keeps the multipliers busy during the latency
    of the sums. On a processor whose multiplications and dot products share units (Zen 5) this takes 54 cycles instead
    of 58 for four rows by three registers of columns by 32 terms; the lower bound is 48.
    """

    tile: Tile
    run: int
    bits: int
    how: Ending
    short: bool = False
    zeros: bool = False
    apart: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        more = (*(("zeros",) if self.zeros else ()), *(("row_scales",) if self.apart else ()))
        return ("a", "b", "c", *SLOTS, "runs", "ldc", "scales", "starts", *more, *self.how.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        each_block(k, task, begin, end, self.tile, lambda block: self._block(k, task, block))

    def _block(self, k: Kernel, task: Task, block: Block) -> None:
        lanes, runs = k.isa.f32, task.i64("runs")
        terms = step_terms(k.isa, self.bits)
        steps, width = self.run // terms, block.vectors * lanes
        panel = k.view(block.panel, I8, width * k.isa.group, 1)
        scales = beside(k, task, block.columns, self.tile, "scales", I16 if self.short else F32)
        zeros = beside(k, task, block.columns, self.tile, "zeros", I16) if self.zeros else None
        own_scales = block.rows(task.view("row_scales", F32, runs, 1)) if self.apart else None
        rows = block.rows(task.view("a", I8, runs * self.run, 1))
        starts = block.rows(task.view("starts", I32, runs, 1))
        total, before = self._zeros(k, block, F32), self._zeros(k, block, I32)

        def finish(number: Val) -> None:
            for j in range(block.vectors):
                scale = scales[number, j * lanes].load(lanes)
                scale = as_float32(scale) if self.short else scale
                for i, (own, out) in enumerate(zip(before, total, strict=True)):
                    both = scale * own_scales[i][number].load().splat(lanes) if own_scales else scale
                    out[j].set(out[j].get() + own[j].get().cast(F32) * both)

        ahead = self._ahead(k, task, block, scales) if block.count > 1 else None
        with k.loop(runs, nonempty=True) as number:
            if ahead is not None:
                k.prefetch(ahead[number])
            begun = [own[number].load().splat(lanes) for own in starts]
            acc = [[k.var(x) for _ in range(block.vectors)] for x in begun]
            if zeros is not None:
                for j in range(block.vectors):
                    zero = zeros[number, j * lanes].load(lanes).cast(I32)
                    for row, start in zip(acc, begun, strict=True):
                        row[j].set(start * zero)
            first = number * steps

            def step(at: Val) -> None:
                weights = [panel[first + at, j * lanes * k.isa.group] for j in range(block.vectors)]
                places = [row[number * self.run + at * terms] for row in rows]
                self._step(k, acc, places, weights)

            each_step(k, steps, step)
            finish((number - 1).max(0))  # the sums before the first run are zeros
            for old, own in zip(before, acc, strict=True):
                for x, value in zip(old, own, strict=True):
                    x.set(value.get())
        finish(runs - 1)
        store(k, task, block, self.how, [[x.get() for x in own] for own in total])

    def _ahead(self, k: Kernel, task: Task, block: Block, scales: View) -> View:
        """A line of the next panel for each run: those of its weights, then of its scales, then the last one again."""
        runs, weights = task.i64("runs"), task.i64("panel_bytes")
        more = runs * (block.vectors * k.isa.f32 * (2 if self.short else 4))
        done = (block.first % task.i64("mc")) // self.tile.mr * runs * LINE
        beside = k.view(block.panel, I8, 1)[weights + done].address
        behind = k.view(scales.address, I8, 1)[more + done - weights].address
        line = (done < weights + more).select(k.index(LINE), 0)
        return k.view((done < weights).select(beside, behind), I8, line)

    def _zeros(self, k: Kernel, block: Block, element: Type) -> list[list[Var]]:
        return [[k.var(k.zeros(element, k.isa.f32)) for _ in range(block.vectors)] for _ in range(block.count)]

    def _step(self, k: Kernel, acc: Sequence[Sequence[Var]], places: Sequence[View], weights: Sequence[View]) -> None:
        """Add the terms whose weights share bytes."""
        group = k.isa.group
        packed = [w.load(k.isa.f32 * group) for w in weights]
        at_once = groups_at_once(k.isa)
        for first in range(0, 8 // self.bits, at_once):
            numbers = range(first, first + at_once)
            own = [[self._own(k, x, number) for number in numbers] for x in packed]
            for sums, place in zip(acc, places, strict=True):
                a = [_spread(k, place.after(number * group), group) for number in numbers]
                for x, w in zip(sums, own, strict=True):
                    x.set(dots(k, x.get(), w, a))

    def _own(self, k: Kernel, packed: Val, number: int) -> Val:
        """One of the groups of weights that share bytes, in the domain of the dot product."""
        if self.bits < 8:
            packed = packed.lshr(self.bits * number) & ((1 << self.bits) - 1)
        return packed.cast(I16) if k.isa.dot.value.wide else packed


def each_step(k: Kernel, steps: int, step: Callable[[Val], None]) -> None:
    """Emit the steps of a run, unrolled if they are few."""
    if steps <= _MOST_UNROLLED:
        for number in range(steps):
            step(k.index(number))
        return
    with k.loop(k.index(steps), nonempty=True) as at:
        step(at)


def beside(k: Kernel, task: Task, panel: Panel, tile: Tile, name: str, element: Type) -> View:
    """The panel `[runs, width]` of the values that accompany each run of a column's weights."""
    lanes = k.isa.f32
    whole = task.view(name, element, task.i64("runs") * (tile.columns.widest * lanes))
    return k.view(whole[panel.number].address, element, panel.vectors * lanes, 1)


def as_float32(half: Val) -> Val:
    """Float16 bits of positive normal numbers as float32: the exponent's bias of 15 becomes 127."""
    moved = (half.cast(I32, signed=False) << 13) + ((127 - 15) << 23)
    return moved.bits(vec(F32, half.lanes))


def _spread(k: Kernel, place: View, group: int) -> Val:
    """A group of a row's signed bytes, broadcast to every column's lane."""
    word = k.view(place.address, I32 if group == 4 else I16, 1).load(align=1)
    spread = word.splat(k.isa.f32).bits(vec(I8, k.isa.f32 * group))
    return spread.cast(I16) if k.isa.dot.value.wide else spread
