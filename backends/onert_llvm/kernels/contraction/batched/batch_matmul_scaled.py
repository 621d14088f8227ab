"""Batched matrix products of bytes, both sides computed at run time, whose sums are scaled to real numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import evolve, frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Val, View
from onert_llvm.kernels.contraction.batched.byte_columns import TOGETHER, RowMajorBytes, has_words, words
from onert_llvm.kernels.contraction.byte_terms import ByteTerms
from onert_llvm.kernels.contraction.contraction import store
from onert_llvm.kernels.contraction.int8_microkernel import dot
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
            first = panel * (widest * lanes)
            source = k.view(task.view("y", I8, 1)[matrix * depth * n + first].address, I8, n, 1)
            start = task.view("start", I32, task.i64("columns"), 1)[matrix].after(first)
            target = k.view(
                task.view("b", I8, task.i64("panel_bytes"))[t].address, I8, width * (lanes * k.isa.group), 1
            )

            def keep(column: Val, total: Val) -> None:
                start.after(column).store(total * times + plus)

            if not has_words(k.isa):
                self._one_by_one(k, source, target, depth, n - first, width, keep)
                return
            read = widest if k.isa.free_masks else -(-widest // TOGETHER) * TOGETHER
            with k.either(first + read * lanes <= n) as (then, otherwise):
                with then:
                    self._by_fours(k, source, target, depth, n - first, keep)
                with otherwise:
                    self._one_by_one(k, source, target, depth, n - first, width, keep)

    def _by_fours(
        self, k: Kernel, source: View, target: View, depth: Val, left: Val, keep: Callable[[Val, Val], None]
    ) -> None:
        """Pack a panel of the usual width, four registers of columns at a time."""
        lanes, widest = k.isa.f32, self.columns.widest
        for j in range(0, widest, TOGETHER):
            count = min(widest - j, TOGETHER)
            mask = k.mask(TOGETHER * lanes, left - j * lanes) if count < TOGETHER and k.isa.free_masks else None
            place = target.after(j * lanes * k.isa.group)
            for number, total in enumerate(self._registers(k, source.after(j * lanes), place, depth, count, mask)):
                keep(k.index((j + number) * lanes), total)

    def _one_by_one(
        self, k: Kernel, source: View, target: View, depth: Val, left: Val, width: Val, keep: Callable[[Val, Val], None]
    ) -> None:
        """Pack a panel register by register, up to the last column that there is."""
        lanes, size = k.isa.f32, k.isa.f32 * k.isa.group
        with k.loop(width, nonempty=True) as j:
            column = j * lanes
            with k.when(column < left):
                place = k.view(target.after(j * size).address, I32 if k.isa.group == 4 else I16, width * lanes)
                keep(column, self._register(k, source.after(column), place, depth, k.mask(lanes, left - column)))

    def _registers(self, k: Kernel, source: View, target: View, depth: Val, count: int, mask: Val | None) -> list[Val]:
        """Pack up to four registers of columns, group by group along k; returns the sums of the columns."""
        size = k.isa.f32 * k.isa.group
        totals, ones = [k.var(k.zeros(I32, k.isa.f32)) for _ in range(count)], k.const(I8, 1).splat(size)

        def step(at: Val, rows: int) -> None:
            found = words(k, [source[at * k.isa.group + r] for r in range(rows)], self.signed, mask)
            for number, (word, total) in enumerate(zip(found, totals, strict=False)):
                target[at, number * size].store(word)
                total.set(dot(k, total.get(), ones, word))

        with k.loop(depth // k.isa.group) as at:
            step(at, k.isa.group)
        if self.rest:
            step(depth // k.isa.group, self.rest)
        return [total.get() for total in totals]

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

    `unpacked` are the terms if B is not packed but has rows `ldb` apart, and the sums begin at `plus`.

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
    unpacked: RowMajorBytes | None = None

    @property
    def slots(self) -> tuple[str, ...]:
        own = ("a", "b", "c", "offsets", "per_batch", "k", "lda", "ldc", "columns", "weight_zero")
        more = (*self.how.slots, *(() if self.unpacked is None else ("ldb", "plus", *self.unpacked.slots)))
        return (*own, *SLOTS, *(slot for slot in more if slot != "start" or self.unpacked is None))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        offsets = task.view("offsets", I64, 2, 1)
        with k.loop(end, begin) as t:
            batch, local = t // task.i64("per_batch"), t % task.i64("per_batch")
            place, matrix = (offsets[batch, i].load() for i in (0, 1))
            a = k.view(task.view("a", I8, 1)[place].address, I8, task.i64("lda"), 1)
            each_block(k, task, local, local + 1, self.tile, partial(self._block, k, task, a, batch, matrix))

    def _block(self, k: Kernel, task: Task, a: View, batch: Val, matrix: Val, block: Block) -> None:
        reading = straight(block.rows(a), task.i64("k"))
        below = evolve(block, first=batch * task.i64("m") + block.first)
        row_sums = ByteTerms(self.rest, self.signed)
        more = row_sums.corrections(k, task, below, reading) if self.corrected else ()
        terms = row_sums if self.unpacked is None else self.unpacked
        if self.unpacked is None:
            size = task.i64("panels") * task.i64("panel_bytes")
            start = task.view("start", I32, task.i64("columns"), 1)[matrix]
        else:
            size, plus = task.i64("k") * task.i64("ldb"), task.i64("plus").cast(I32).splat(k.isa.f32)

        def begin(vector: int) -> Val:
            return start.after(below.at(vector)).load(k.isa.f32) if self.unpacked is None else plus

        address = k.view(block.panel, I8, 1)[matrix * size].address
        below = evolve(below, columns=evolve(block.columns, address=address))
        sums = terms.sums(k, task, self.tile, below, begin, reading)
        store(k, task, below, self.how, sums, more)
