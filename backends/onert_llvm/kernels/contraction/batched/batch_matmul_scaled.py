"""Batched matrix products of bytes, both sides computed at run time, whose sums are scaled to real numbers."""

from __future__ import annotations

from functools import partial

from attrs import evolve, frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Val, View
from onert_llvm.kernels.contraction.byte_terms import ByteTerms
from onert_llvm.kernels.contraction.contraction import store
from onert_llvm.kernels.contraction.operands import straight
from onert_llvm.kernels.contraction.register_tile import SLOTS, Block, Columns, Tile, each_block
from onert_llvm.kernels.contraction.scaled_results import Scaled


@frozen
class PackBytes(Value):
    """Packs matrices `y[batch, k, n]` of bytes into `b` as panels of signed bytes, as `weight_packing.pack_int8` does.

    `start` gets for each column `times` the sum of its signed bytes, plus `plus`: `columns` elements for each matrix.
    `rest` is k modulo the target's group. Work tiles are panels, matrix by matrix.
    """

    columns: Columns
    rest: int
    signed: bool

    slots = ("y", "b", "start", "k", "n", "columns", "panels", "panel_bytes", "times", "plus")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes = k.isa.f32
        panels, depth, n = task.i64("panels"), task.i64("k"), task.i64("n")
        widest, tail = self.columns.widest, self.columns.tail
        times, plus = (task.i64(name).cast(I32).splat(lanes) for name in ("times", "plus"))
        with k.loop(end, begin) as t:
            matrix, panel = t // panels, t % panels
            width = k.index(widest)
            if self.columns.open:
                width = ((n + lanes - 1) // lanes - panel * widest).min(widest)
            elif self.columns.vectors and tail:
                width = (panel + 1).eq(panels).select(k.index(tail), width)
            source = k.view(task.view("y", I8, 1)[matrix * depth * n].address, I8, n, 1)
            start = task.view("start", I32, task.i64("columns"), 1)[matrix]
            with k.loop(width, nonempty=True) as j:
                column = (panel * widest + j) * lanes
                with k.when(column < n):
                    target = k.view(task.view("b", I8, task.i64("panel_bytes"))[t].address, I8, 1)
                    word = I32 if k.isa.group == 4 else I16
                    places = k.view(target[j * (lanes * k.isa.group)].address, word, width * lanes)
                    total = self._register(k, source.after(column), places, depth, k.mask(lanes, n - column))
                    start.after(column).store(total * times + plus)

    def _register(self, k: Kernel, source: View, places: View, depth: Val, mask: Val) -> Val:
        """Pack one register of columns, group by group along k; returns the sums of the columns."""
        lanes, group = k.isa.f32, k.isa.group
        total = k.var(k.zeros(I32, lanes))

        def step(at: Val, rows: int) -> None:
            word = k.zeros(I32, lanes)
            for r in range(rows):
                value = source[at * group + r].load(lanes, mask)
                value = mask.select(value if self.signed else value ^ -128, 0)
                total.set(total.get() + value.cast(I32))
                word = word | (value.cast(I32, signed=False) << 8 * r)
            places[at].store(word.cast(places.element))

        with k.loop(depth // group) as at:
            step(at, group)
        if self.rest:
            step(depth // group, self.rest)
        return total.get()


@frozen
class MatMulScaled(Value):
    """`C[batch, m, n] = epilogue(factor * Σ A[batch, m, k] · B[batch, k, n])`, B packed by `PackBytes`.

    A is bytes, `signed` or not, with rows `lda` apart. `offsets` has for each batch the byte offset of its A and the
    number of its B; `start` was written by `PackBytes`, `columns` elements for each B. If B has a zero point
    (`corrected`), the row sums of A times `weight_zero` are subtracted. `rest` is k modulo the target's group. Work
    tiles are those of the products, batch by batch, `per_batch` each.
    """

    tile: Tile
    rest: int
    signed: bool
    corrected: bool
    how: Scaled

    @property
    def slots(self) -> tuple[str, ...]:
        own = ("a", "b", "c", "offsets", "per_batch", "k", "lda", "ldc", "columns", "weight_zero")
        return (*own, *SLOTS, *self.how.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        offsets = task.view("offsets", I64, 2, 1)
        with k.loop(end, begin) as t:
            batch, local = t // task.i64("per_batch"), t % task.i64("per_batch")
            place, matrix = (offsets[batch, i].load() for i in (0, 1))
            a = k.view(task.view("a", I8, 1)[place].address, I8, task.i64("lda"), 1)
            each_block(k, task, local, local + 1, self.tile, partial(self._block, k, task, a, batch, matrix))

    def _block(self, k: Kernel, task: Task, a: View, batch: Val, matrix: Val, block: Block) -> None:
        terms, reading = ByteTerms(self.rest, self.signed), straight(block.rows(a), task.i64("k"))
        above = k.view(block.panel, I8, 1)[matrix * task.i64("panels") * task.i64("panel_bytes")]
        start = task.view("start", I32, task.i64("columns"), 1)[matrix]
        columns = evolve(block.columns, address=above.address)
        below = evolve(block, first=batch * task.i64("m") + block.first, columns=columns)
        more = terms.corrections(k, task, below, reading) if self.corrected else ()
        sums = terms.sums(k, task, self.tile, below, lambda j: start.after(below.at(j)).load(k.isa.f32), reading)
        store(k, task, below, self.how, sums, more)
