"""Matrix products of 8-bit integers with exact sums:

fully connected layers and convolutions, requantised on the way out.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import I8, I32, Kernel, Val
from onert_llvm.layout import TaskLayout

from .dot import GROUP, multiply_add_int8
from .patch import Patch, gather, padding_of
from .product import Accumulators, accumulators
from .requantize import SHRINKING, Requantize, bias, load_lanes, requantize, store_bytes
from .tile import SLOTS, Block, Tile, each_block
from .window import SLOTS as WINDOW
from .window import each_tap, origins


@frozen
class GemmInt8:
    """A product with the rows of A `lda` bytes apart, those of C `ldc`; `rest` is k modulo the target's group.

    `signed` says what activations and results are; weights are packed as signed bytes by `packing.pack_int8`.
    """

    tile: Tile
    rest: int
    signed: bool = True
    requantize: Requantize = SHRINKING

    @property
    def name(self) -> str:
        return "gemm_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("a", "b", "c", *SLOTS, "k", "lda", "ldc", *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def product(block: Block, acc: Accumulators) -> None:
            a = task.view("a", I8, task.i64("lda"), 1)
            panel = k.view(block.panel, I8, block.vectors * k.isa.f32 * GROUP[k.isa.dot], 1)
            rows = [a[r] for r in block.rows]
            multiply_add_int8(k, acc, rows, panel, task.i64("k"), self.rest, self.signed)

        each_block(k, task, begin, end, self.tile, lambda block: _finish(k, task, block, self.requantize, product))


@frozen
class ConvInt8:
    """A convolution of bytes through the windows of the output's pixels; `zero` holds the input's zero point."""

    tile: Tile
    rest: int
    signed: bool = True
    requantize: Requantize = SHRINKING

    @property
    def name(self) -> str:
        return "conv_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("b", "c", *SLOTS, "k", "ldc", *WINDOW, *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def product(block: Block, acc: Accumulators) -> None:
            group, depth = GROUP[k.isa.dot], task.i64("k")
            width = block.vectors * k.isa.f32 * group
            panels = k.view(block.panel, I8, ((depth + group - 1) // group) * width, width, 1)
            windows = origins(k, task, block.rows[0], block.inside)
            with each_tap(k, task, windows, I8) as (tap, pixels):
                multiply_add_int8(k, acc, pixels, panels[tap], depth, self.rest, self.signed)

        each_block(k, task, begin, end, self.tile, lambda block: _finish(k, task, block, self.requantize, product))


def _finish(
    k: Kernel, task: Task, block: Block, how: Requantize, product: Callable[[Block, Accumulators], None]
) -> None:
    """One tile from its first value to memory."""
    columns = range(block.vectors)
    acc = accumulators(k, [bias(k, task, block.at(j)) for j in columns], len(block.rows))
    product(block, acc)
    places = [block.place(task.view("c", I8, task.i64("ldc"), 1), i) for i in range(len(block.rows))]
    corrections = [_correction(k, task, how, row) for row in block.rows]
    for j in columns:
        lanes = load_lanes(k, task, block.at(j))
        for i, place in enumerate(places):
            total = acc[i][j].get() - corrections[i]
            store_bytes(task, place[j * k.isa.f32], requantize(how, total, lanes), block.own(j))


def _correction(k: Kernel, task: Task, how: Requantize, row: Val) -> Val | int:
    """What a row's sum times the weights' zero point adds to its products."""
    if not how.weight_zero_point:
        return 0
    return task.view("row_sums", I32, 1)[row].load() * task.i64("weight_zero").cast(I32)


@frozen
class PatchConvInt8:
    """A convolution of few channels, whose windows are copied together first; no dilation across.

    The input's pixels lie next to one another. Weights are packed as `[window, n]`: one tap of `patch.depth` bytes.
    """

    tile: Tile
    patch: Patch
    signed: bool = True
    requantize: Requantize = SHRINKING

    @property
    def name(self) -> str:
        return "patch_conv_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("b", "c", *SLOTS, "ldc", *WINDOW, *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        group = GROUP[k.isa.dot]

        def product(block: Block, acc: Accumulators) -> None:
            rows = gather(k, task, block, self.patch, I8, padding_of(k, task, I8))
            panel = k.view(block.panel, I8, block.vectors * k.isa.f32 * group, 1)
            depth = k.index(-(-self.patch.depth // group) * group)
            multiply_add_int8(k, acc, rows, panel, depth, 0, self.signed)

        each_block(k, task, begin, end, self.tile, lambda block: _finish(k, task, block, self.requantize, product))
