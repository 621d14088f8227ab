"""Batched matrix products whose sides are both read unpacked."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I64, Kernel, Type, Val
from onert_llvm.kernels.contraction.contraction import Ending, Terms, multiply
from onert_llvm.kernels.contraction.operands import straight
from onert_llvm.kernels.contraction.register_tile import SLOTS, Block, Tile, each_block


@frozen
class BatchedContraction(Value):
    """`C[batch, m, n] = ending(Σ A[batch, m, k] · B[batch, k, n])`.

    A has `a_row` elements from row to row and, if it is `strided`, `a_step` along k. B has contiguous rows, `ldb`
    elements apart, or contiguous columns with `rows`. `offsets` has two 64-bit integers for each batch: where its A and
    its B begin, in elements. C is dense. Work tiles are those of the products, batch by batch, `per_batch` each.
    """

    tile: Tile
    terms: Terms
    ending: Ending
    strided: bool = False
    rows: bool = False

    @property
    def name(self) -> str:
        return f"matmul_{self.terms.name}"

    @property
    def slots(self) -> tuple[str, ...]:
        own = (
            "a",
            "b",
            "c",
            "offsets",
            "per_batch",
            "k",
            "a_row",
            *(("a_step",) if self.strided else ()),
            "ldb",
            "ldc",
        )
        return (*own, *SLOTS, *self.tile.slots, *self.terms.slots, *self.ending.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def product(batch: Val, left: Val, right: Val) -> Callable[[Block], None]:
            step, apart = task.i64("a_step") if self.strided else 1, task.i64("ldb") if self.rows else 1
            a, b = k.view(left, self.terms.element, task.i64("a_row"), step), k.view(right, self.terms.other, apart)
            above = batch * task.i64("m")

            def body(block: Block) -> None:
                columns = evolve(block.columns, address=b[block.column].address, width=task.i64("ldb"))
                below = evolve(block, first=above + block.first, columns=columns)
                reading = straight(block.rows(a), task.i64("k"))
                multiply(k, task, self.tile, below, self.terms, self.ending, reading)

            return body

        each_batch(k, task, (begin, end), self.tile, (self.terms.element, self.terms.other), product)


def each_batch(
    k: Kernel,
    task: Task,
    tiles: tuple[Val, Val],
    tile: Tile,
    elements: tuple[Type, Type],
    product: Callable[[Val, Val, Val], Callable[[Block], None]],
) -> None:
    """Emit the loop over the batches' tiles; `product` returns the body for a batch and its two matrices."""
    offsets = task.view("offsets", I64, 2, 1)
    with k.loop(tiles[1], tiles[0]) as t:
        batch, local = t // task.i64("per_batch"), t % task.i64("per_batch")
        sides = enumerate(zip("ab", elements, strict=True))
        starts = [task.view(name, e, 1)[offsets[batch, i].load()].address for i, (name, e) in sides]
        each_block(k, task, local, local + 1, tile, product(batch, *starts))
