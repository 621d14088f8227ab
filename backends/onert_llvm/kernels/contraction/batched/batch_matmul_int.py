"""Products of matrices of integers in batches, both sides known at run time only, exact."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import I8, I16, I32, I64, Kernel, Type, Val, Var, View, vec
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, as_byte, load_lanes, stored
from onert_llvm.kernels.contraction.gemm_int16 import GROUP, dot_pairs
from onert_llvm.kernels.contraction.register_tile import SLOTS, Block, Row, Tile, each_block
from onert_llvm.kernels.elementwise.quantize_dequantize import each_register

_SLOTS = ("a", "b", "c", "offsets", "per_batch", "k", "lda", "ldb", "ldc", *SLOTS)


@frozen
class CentreBytes(Value):
    """`out = x - zero` in 16 bits; work tiles are rows of `width` bytes, those of the result `out_step` elements apart.

    Between the rows of the result there are zeros: what pairs up with the last of an odd number.
    """

    name = "centre_bytes"
    layout = TaskLayout(("x", "out", "width", "out_step", "zero"))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        width, lanes, step = task.i64("width"), k.isa.f32, task.i64("out_step")
        zero = task.i64("zero").cast(I16).splat(lanes)
        x, out = task.view("x", I8, width, 1), task.view("out", I16, step, 1)

        def vector(row: Val, at: Val, mask: Val | None) -> None:
            out[row, at].store(x[row, at].load(lanes, mask).cast(I16) - zero, mask)

        each_register(k, begin, end, width, vector)
        with k.loop(end, begin) as row, k.loop(step, width) as at:
            out[row, at].store(k.const(I16, 0))


@frozen
class MatMulBytes(Value):
    """`C[batch, m, n]` from A, 16-bit numbers of an even width `lda`, and B[batch, k, n], bytes less `zero`.

    `k` is A's width in pairs less one where B has an `odd` number of rows. The rows of B are `ldb` bytes apart, as many
    as there are registers of columns. `offsets` says for each batch where its A and B begin, in elements. Work tiles
    are those of a product, for one batch after the other, `per_batch` each.
    """

    tile: Tile
    odd: bool
    requantize: Requantize

    name = "matmul_bytes"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout((*_SLOTS, "zero", *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        parameters = load_lanes(k, task, self.requantize, k.index(0))

        def finish(total: Val) -> Val:
            return as_byte(stored(task, self.requantize, True, parameters["bias"] + total, parameters))

        def product(block: Block, a: View, b: View) -> list[list[Var]]:
            return self._sums(k, task, block, a, b)

        _each_batch(k, task, (begin, end), self.tile, (I16, I8, I8), product, finish)

    def _sums(self, k: Kernel, task: Task, block: Block, a: View, b: View) -> list[list[Var]]:
        lanes, columns = k.isa.f32, range(block.vectors)
        acc = [[k.var(k.zeros(I32, lanes)) for _ in columns] for _ in range(block.count)]
        left = block.rows(a)
        zero = task.i64("zero").cast(I32).splat(lanes)

        def step(pair: Val, rows: int) -> None:
            lines = [b[pair * GROUP + r] for r in range(rows)]
            for j in columns:
                seen = [line[block.at(j)].load(lanes).cast(I32) - zero for line in lines]
                word = seen[0] & 0xFFFF if rows == 1 else (seen[0] & 0xFFFF) | (seen[1] << 16)
                for i, row in enumerate(left):
                    both = k.view(row[pair * GROUP].address, I32, 1).load(align=2).splat(lanes)
                    pairs = vec(I16, lanes * GROUP)
                    acc[i][j].set(dot_pairs(k, acc[i][j].get(), both.bits(pairs), word.bits(pairs)))

        with k.loop(task.i64("k")) as pair:
            step(pair, GROUP)
        if self.odd:
            step(task.i64("k"), 1)
        return acc


@frozen
class MatMulShorts(Value):
    """`C[batch, m, n]` from 16-bit A and 16-bit B (8-bit without `wide`), zero points 0, summed up in 64 bits.

    Sums are multiplied by `mantissa` and shifted right by `right` (at least 1), halves up. Slots as `MatMulBytes` has
    them.
    """

    tile: Tile
    wide: bool

    name = "matmul_shorts"
    layout = TaskLayout((*_SLOTS, "mantissa", "right"))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes = k.isa.f32
        mantissa, right = (task.i64(name) for name in ("mantissa", "right"))
        half = (k.index(1) << (right - 1)).splat(lanes)

        def finish(total: Val) -> Val:
            scaled = (total * mantissa.splat(lanes) + half) >> right.splat(lanes)
            return scaled.clamp(-(1 << 15), (1 << 15) - 1).cast(I16)

        def product(block: Block, a: View, b: View) -> list[list[Var]]:
            acc = [[k.var(k.zeros(I64, lanes)) for _ in range(block.vectors)] for _ in range(block.count)]
            rows = block.rows(a)
            with k.loop(task.i64("k")) as p:
                seen = [b[p, block.at(j)].load(lanes).cast(I64) for j in range(block.vectors)]
                for sums, row in zip(acc, rows, strict=True):
                    left = row[p].load().cast(I64).splat(lanes)
                    for total, right_side in zip(sums, seen, strict=True):
                        total.set(total.get() + left * right_side)
            return acc

        _each_batch(k, task, (begin, end), self.tile, (I16, I16 if self.wide else I8, I16), product, finish)


Product = Callable[[Block, View, View], list[list[Var]]]
"""Writes the code for the sums of a tile."""


def _each_batch(
    k: Kernel,
    task: Task,
    tiles: tuple[Val, Val],
    tile: Tile,
    elements: tuple[Type, Type, Type],
    product: Product,
    finish: Callable[[Val], Val],
) -> None:
    """Write the loop over the batches' tiles: sums, what becomes of them, and where they go."""
    offsets = task.view("offsets", I64, 2, 1)
    left, right, result = elements
    with k.loop(tiles[1], tiles[0]) as t:
        batch, local = t // task.i64("per_batch"), t % task.i64("per_batch")
        starts = [
            task.view(name, element, 1)[offsets[batch, i].load()].address
            for i, (name, element) in enumerate((("a", left), ("b", right)))
        ]
        a, b = (k.view(at, e, task.i64(f"ld{n}"), 1) for at, e, n in zip(starts, (left, right), "ab", strict=True))
        above = batch * task.i64("m")

        def body(block: Block, a: View = a, b: View = b, above: Val = above) -> None:
            acc = product(block, a, b)
            c = k.view(task.view("c", result, task.i64("ldc"), 1)[above].address, result, task.i64("ldc"), 1)

            def column(j: int) -> Callable[[Row, Val], None]:
                return lambda row, total: row.place(c, j).store(finish(total), block.own(j))

            block.finish([[x.get() for x in row] for row in acc], column, False)

        each_block(k, task, local, local + 1, tile, body)
