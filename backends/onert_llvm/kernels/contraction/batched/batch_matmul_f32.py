"""Products of matrices in batches, both sides read as they lie."""

from __future__ import annotations

from functools import partial

from attrs import evolve, frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import F32, I64, Kernel, Val, View
from onert_llvm.kernels.contraction.epilogue import PLAIN, Epilogue
from onert_llvm.kernels.contraction.float_microkernel import Accumulators, multiply_add
from onert_llvm.kernels.contraction.register_tile import SLOTS, Block, Tile, each_block
from onert_llvm.kernels.contraction.store_tile_f32 import finish


@frozen
class MatMulF32(Value):
    """`C[batch, m, n] = epilogue(Σ A[batch, m, k] · B[batch, k, n])`.

    A has `a_row` elements from row to row and `a_step` along k; the rows of B are `ldb` elements apart, its columns
    neighbours. `offsets` has two 64-bit integers for each batch: where its A and its B begin, in elements. C is dense.
    Without `masked` a register's bytes behind the last row of B may be read. Work tiles are those of a product, for one
    batch after the other, `per_batch` each.
    """

    tile: Tile
    epilogue: Epilogue = PLAIN
    masked: bool = True

    name = "matmul_f32"

    @property
    def layout(self) -> TaskLayout:
        own = ("a", "b", "c", "offsets", "per_batch", "k", "a_row", "a_step", "ldb", "ldc")
        return TaskLayout((*own, *SLOTS, *self.tile.slots, *self.epilogue.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        offsets = task.view("offsets", I64, 2, 1)
        with k.loop(end, begin) as t:
            batch, local = t // task.i64("per_batch"), t % task.i64("per_batch")
            starts = [task.view(side, F32, 1)[offsets[batch, i].load()].address for i, side in enumerate("ab")]
            a = k.view(starts[0], F32, task.i64("a_row"), task.i64("a_step"))
            b = k.view(starts[1], F32, 1)
            above = batch * task.i64("m")
            each_block(k, task, local, local + 1, self.tile, partial(self._block, k, task, a, b, above))

    def _block(self, k: Kernel, task: Task, a: View, b: View, above: Val, block: Block) -> None:
        panel = k.view(b[block.column].address, F32, task.i64("ldb"), 1)
        mask = block.masks[-1] if self.masked else None
        rows = block.rows(a)

        def product(_: Block, acc: Accumulators) -> None:
            multiply_add(k, acc, rows, panel, task.i64("k"), self.tile.split, mask)

        below = evolve(block, first=above + block.first)
        finish(k, task, below, self.epilogue, product)
