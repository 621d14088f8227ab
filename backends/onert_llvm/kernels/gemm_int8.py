"""Matrix products of 8-bit integers with exact sums: fully connected layers and convolutions.

On the way out the sums are requantised, or become floats again (`dynamic`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import F32, I8, I32, Kernel, Val, Var
from onert_llvm.layout import TaskLayout

from .dot import GROUP, multiply_add_int8
from .dynamic import Dynamic
from .epilogue import row_windows
from .patch import Patch, gather, padding_of
from .product import Accumulators, accumulators
from .requantize import Requantize, as_byte, bias, load_lanes, stored
from .row_sums import add_row_sums, sum_of_lanes
from .tile import SLOTS, Block, Tile, each_block
from .window import SLOTS as WINDOW
from .window import each_tap, origins

NARROW = Requantize()
Sums = Callable[[Sequence[Var]], None]
Products = Callable[[Accumulators], None]
"""Write the code that adds to the sums of a tile's rows, or to its accumulators."""


@frozen
class GemmInt8:
    """A product with the rows of A `lda` bytes apart, those of C `ldc`; `rest` is k modulo the target's group.

    `signed` says what activations and results are; weights are packed as signed bytes by `packing.pack_int8`.
    """

    tile: Tile
    rest: int
    signed: bool = True
    requantize: Requantize | Dynamic = NARROW

    @property
    def name(self) -> str:
        return "gemm_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("a", "b", "c", *SLOTS, "k", "lda", "ldc", *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(block: Block) -> None:
            a, depth = task.view("a", I8, task.i64("lda"), 1), task.i64("k")
            panel = k.view(block.panel, I8, block.vectors * k.isa.f32 * GROUP[k.isa.dot], 1)
            rows = [a[r] for r in block.rows]
            _finish(
                k,
                task,
                block,
                _Ending(self.requantize, self.signed),
                lambda sums: add_row_sums(k, sums, rows, depth, self.signed),
                lambda acc: multiply_add_int8(k, acc, rows, panel, depth, self.rest, self.signed),
            )

        each_block(k, task, begin, end, self.tile, body)


@frozen
class ConvInt8:
    """A convolution of bytes through the windows of the output's pixels; `zero` holds the input's zero point."""

    tile: Tile
    rest: int
    signed: bool = True
    requantize: Requantize | Dynamic = NARROW

    @property
    def name(self) -> str:
        return "conv_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("b", "c", *SLOTS, "k", "ldc", *WINDOW, *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(block: Block) -> None:
            group, depth = GROUP[k.isa.dot], task.i64("k")
            width = block.vectors * k.isa.f32 * group
            panels = k.view(block.panel, I8, ((depth + group - 1) // group) * width, width, 1)
            windows = origins(k, task, block.rows[0], block.inside)

            def add_sums(sums: Sequence[Var]) -> None:
                with each_tap(k, task, windows, I8) as (_, pixels):
                    add_row_sums(k, sums, pixels, depth, self.signed)

            def add_products(acc: Accumulators) -> None:
                with each_tap(k, task, windows, I8) as (tap, pixels):
                    multiply_add_int8(k, acc, pixels, panels[tap], depth, self.rest, self.signed)

            _finish(k, task, block, _Ending(self.requantize, self.signed), add_sums, add_products)

        each_block(k, task, begin, end, self.tile, body)


@frozen
class PatchConvInt8:
    """A convolution of few channels, whose windows are copied together first; no dilation across.

    The input's pixels lie next to one another. Weights are packed as `[window, n]`: one tap of `patch.depth` bytes.
    """

    tile: Tile
    patch: Patch
    signed: bool = True
    requantize: Requantize | Dynamic = NARROW

    @property
    def name(self) -> str:
        return "patch_conv_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("b", "c", *SLOTS, "ldc", *WINDOW, *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(block: Block) -> None:
            group, size = GROUP[k.isa.dot], self.patch.depth
            rows = gather(k, task, block, self.patch, I8, padding_of(k, task, I8))
            panel = k.view(block.panel, I8, block.vectors * k.isa.f32 * group, 1)
            depth = k.index(-(-size // group) * group)
            _finish(
                k,
                task,
                block,
                _Ending(self.requantize, self.signed),
                lambda sums: add_row_sums(k, sums, rows, k.index(size), self.signed),
                lambda acc: multiply_add_int8(k, acc, rows, panel, depth, 0, self.signed),
            )

        each_block(k, task, begin, end, self.tile, body)


@frozen
class _Ending:
    """What becomes of the sums, and whether bytes are signed."""

    how: Requantize | Dynamic
    signed: bool


def _finish(k: Kernel, task: Task, block: Block, ending: _Ending, add_sums: Sums, add_products: Products) -> None:
    """One tile from its first value to memory."""
    if isinstance(ending.how, Dynamic):
        _finish_floats(k, task, block, ending.how, add_products)
        return
    how = ending.how
    columns = range(block.vectors)
    corrections = _corrections(k, task, how, block, add_sums)
    acc = accumulators(k, [bias(k, task, how, block.at(j)) for j in columns], len(block.rows))
    add_products(acc)
    places = [block.place(task.view("c", I8, task.i64("ldc"), 1), i) for i in range(len(block.rows))]
    for j in columns:
        lanes = load_lanes(k, task, how, block.at(j))
        for i, place in enumerate(places):
            total = acc[i][j].get() - corrections[i]
            place[j * k.isa.f32].store(as_byte(stored(task, how, ending.signed, total, lanes)), block.own(j))


def _finish_floats(k: Kernel, task: Task, block: Block, how: Dynamic, add_products: Products) -> None:
    columns, lanes = range(block.vectors), k.isa.f32
    acc = accumulators(k, [how.start(k, task, block.at(j)) for j in columns], len(block.rows))
    add_products(acc)
    c = task.view("c", F32, task.i64("ldc"), 1)
    for i, row in enumerate(block.rows):
        out = block.place(c, i)
        others = {n: block.place(v, i) for n, v in row_windows(k, task, how.epilogue.matrices).items()}
        for j in columns:
            value = how.real(k, task, acc[i][j].get(), row, block.at(j), block.own(j))
            value = how.epilogue.apply(k, task, value, block.at(j), j * lanes, others, block.own(j))
            out[j * lanes].store(value, block.own(j))


def _corrections(k: Kernel, task: Task, how: Requantize, block: Block, add_sums: Sums) -> list[Val | int]:
    """For each row, its sum times the weights' zero point: what its products have too much."""
    if not how.weight_zero_point:
        return [0] * len(block.rows)
    sums = [k.var(k.zeros(I32, k.isa.f32)) for _ in block.rows]
    add_sums(sums)
    zero = task.i64("weight_zero").cast(I32)
    return [sum_of_lanes(total.get()) * zero for total in sums]
