"""Matrix products of 8-bit integers with exact sums: fully connected layers and convolutions.

On the way out the sums are requantised, or become floats again (`dynamic`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.irbuilder import I8, I32, Kernel, Val, Var, View
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, as_byte, bias, load_lanes, stored, table

from .dynamic_quantization import Dynamic
from .epilogue import row_windows
from .float_microkernel import Accumulators, accumulators
from .im2col import Patch, gather, padding_of, room
from .implicit_im2col import SLOTS as WINDOW
from .implicit_im2col import each_tap, origin, origins
from .int8_microkernel import GROUP, multiply_add_int8, narrow_shift
from .register_tile import SLOTS, Block, Row, Tile, each_block
from .scaled_results import Real, Scaled
from .zero_point_row_sums import add_row_sums, sum_of_lanes

NARROW = Requantize()
Sums = Callable[[Sequence[Var]], None]
Products = Callable[[Accumulators], None]
"""Write the code that adds to the sums of a tile's rows, or to its accumulators."""


@frozen
class GemmInt8(Value):
    """A product with the rows of A `lda` bytes apart, those of C `ldc`; `rest` is k modulo the target's group.

    `signed` says what activations and results are; weights are packed as signed bytes by `packing.pack_int8`, those
    of fewer `bits` by `pack_narrow`: `rest` is then k modulo the terms whose weights share bytes.
    """

    tile: Tile
    rest: int
    signed: bool = True
    requantize: Requantize | Dynamic | Scaled = NARROW
    bits: int = 8

    @property
    def name(self) -> str:
        return "gemm_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("a", "b", "c", *SLOTS, *self.tile.slots, "k", "lda", "ldc", *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(block: Block) -> None:
            a, depth = task.view("a", I8, task.i64("lda"), 1), task.i64("k")
            panel = k.view(block.panel, I8, block.vectors * k.isa.f32 * GROUP[k.isa.dot], 1)
            rows = block.rows(a)
            _finish(
                k,
                task,
                block,
                _Ending(self.requantize, self.signed, shift=narrow_shift(self.bits)),
                lambda sums: add_row_sums(k, sums, rows, depth, self.signed),
                lambda acc: multiply_add_int8(
                    k, acc, rows, panel, depth, self.rest, self.signed, block.fetch, self.bits
                ),
            )

        each_block(k, task, begin, end, self.tile, body)


@frozen
class ConvInt8(Value):
    """A convolution of bytes through the windows of the output's pixels; `zero` holds the input's zero point."""

    tile: Tile
    rest: int
    signed: bool = True
    requantize: Requantize | Dynamic | Scaled = NARROW

    @property
    def name(self) -> str:
        return "conv_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("b", "c", *SLOTS, *self.tile.slots, "k", "ldc", *WINDOW, *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(block: Block) -> None:
            group, depth = GROUP[k.isa.dot], task.i64("k")
            width = block.vectors * k.isa.f32 * group
            steps = (depth + group - 1) // group
            panels = k.view(block.panel, I8, steps * width, width, 1)
            windows = origins(k, task, block.first, block.count)

            def add_sums(sums: Sequence[Var]) -> None:
                with each_tap(k, task, windows, I8) as (_, pixels):
                    add_row_sums(k, sums, pixels, depth, self.signed)

            def add_products(acc: Accumulators) -> None:
                with each_tap(k, task, windows, I8) as (tap, pixels):
                    done = tap * steps
                    multiply_add_int8(
                        k, acc, pixels, panels[tap], depth, self.rest, self.signed, lambda p: block.fetch(done + p)
                    )

            _finish(k, task, block, _Ending(self.requantize, self.signed), add_sums, add_products)

        each_block(k, task, begin, end, self.tile, body)


@frozen
class PatchConvInt8(Value):
    """A convolution of few channels, so that a row of a window is one segment in memory; no dilation across.

    The input's pixels lie next to one another. Weights are packed as `[rows of the window, segment, n]`: each of these
    rows a tap. Tiles whose windows lie inside of the picture, one after the other, are multiplied where they are;
    others are copied together first.
    """

    tile: Tile
    patch: Patch
    signed: bool = True
    requantize: Requantize | Dynamic | Scaled = NARROW

    @property
    def name(self) -> str:
        return "patch_conv_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("b", "c", *SLOTS, "ldc", *WINDOW, *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        group, segment = GROUP[k.isa.dot], self.patch.segment
        pitch = -(-segment // group) * group
        height = k.index(self.patch.height)

        def body(block: Block) -> None:
            width = block.vectors * k.isa.f32 * group
            panels = k.view(block.panel, I8, pitch // group * width, width, 1)
            windows = self._windows(k, task, block, pitch)

            def add_sums(sums: Sequence[Var]) -> None:
                with k.loop(height, nonempty=True) as ky:
                    add_row_sums(k, sums, windows.rows(ky), k.index(segment), self.signed)

            def add_products(acc: Accumulators) -> None:
                with k.loop(height, nonempty=True) as ky:
                    multiply_add_int8(k, acc, windows.rows(ky), panels[ky], k.index(pitch), 0, self.signed)

            _finish(k, task, block, _Ending(self.requantize, self.signed), add_sums, add_products)

        each_block(k, task, begin, end, self.tile, body)

    def _windows(self, k: Kernel, task: Task, block: Block, pitch: int) -> _Windows:
        """Where they lie: in the picture, if no byte outside of it is read, else where they are copied to."""
        at, pixel = origin(k, task, block.first), task.i64("pixel")
        step, down = task.i64("stride_w") * pixel, task.i64("dilation_h") * task.i64("row")
        left = at.x * pixel
        across = (at.x >= 0) & (left + step * (block.count - 1) + pitch <= task.i64("in_w") * pixel)
        across = across & (block.first % task.i64("out_w") + block.count <= task.i64("out_w"))
        lowest = at.y + task.i64("dilation_h") * (self.patch.height - 1)
        found = [k.var(x) for x in (task.ptr("input"), step, down)]
        with k.either(across & (at.y >= 0) & (lowest < task.i64("in_h"))) as (inside, outside):
            with inside:
                found[0].set(task.view("input", I8, 1)[at.image + at.y * task.i64("row") + left].address)
            with outside:
                copies = gather(k, task, block, self.patch, padding_of(k, task, I8), pitch)
                apart = k.index(room(k, self.patch, pitch))
                for variable, value in zip(found, (copies.address, apart, k.index(pitch)), strict=True):
                    variable.set(value)
        first, step, down = (x.get() for x in found)
        return _Windows(k, block.count, first, step, down)


@frozen(eq=False)
class _Windows:
    """Windows of bytes `step` apart, whose rows are `down` apart."""

    k: Kernel
    count: int
    first: Val
    step: Val
    down: Val

    def rows(self, number: Val) -> list[View]:
        """A row of each window."""
        row = self.k.view(self.first, I8, 1).after(number * self.down)
        return [row.after(self.step * i) for i in range(self.count)]


@frozen
class _Ending(Value):
    """What becomes of the sums, and whether bytes are signed; whether that is written out for every row.

    Sums of products are shifted down by `shift` bits before that.
    """

    how: Requantize | Dynamic | Scaled
    signed: bool
    little: bool = True
    shift: int = 0

    def sums(self, k: Kernel, block: Block, start: Sequence[Val], add_products: Products) -> list[list[Val]]:
        """The sums of each row by register of columns, those of the products and `start`."""
        if not self.shift:
            acc = accumulators(k, start, block.count)
            add_products(acc)
            return [[x.get() for x in row] for row in acc]
        acc = accumulators(k, [k.zeros(I32, k.isa.f32)] * len(start), block.count)
        add_products(acc)
        return [[(x.get() >> self.shift) + first for x, first in zip(row, start, strict=True)] for row in acc]


def _finish(k: Kernel, task: Task, block: Block, ending: _Ending, add_sums: Sums, add_products: Products) -> None:
    """One tile from its first value to memory."""
    if isinstance(ending.how, Dynamic | Scaled):
        _finish_floats(k, task, block, ending, ending.how, add_products)
        return
    how = ending.how
    columns = range(block.vectors)
    corrections = _corrections(k, task, how, block, add_sums)
    sums = ending.sums(k, block, [bias(k, task, how, block.at(j)) for j in columns], add_products)
    c = task.view("c", I8, task.i64("ldc"), 1)

    def column(j: int) -> Callable[[Row, Val], None]:
        lanes, final = load_lanes(k, task, how, block.at(j)), table(k, task, how)

        def write(row: Row, value: Val) -> None:
            total = value - row.more[0] if how.weight_zero_point else value
            byte = as_byte(stored(task, how, ending.signed, total, lanes))
            row.place(c, j).store(final(byte), block.own(j))

        return write

    block.finish(sums, column, ending.little, corrections)


def _finish_floats(
    k: Kernel, task: Task, block: Block, ending: _Ending, how: Dynamic | Scaled, add_products: Products
) -> None:
    start = [how.start(k, task, block.at(j)) for j in range(block.vectors)]
    store_floats(k, task, block, how, ending.sums(k, block, start, add_products))


def store_floats(k: Kernel, task: Task, block: Block, how: Real, sums: Sequence[Sequence[Val]]) -> None:
    """The sums of a tile's rows, by register of columns, on their way to memory as real numbers."""
    c = task.view("c", how.element, task.i64("ldc"), 1)
    given = how.epilogue.given(task, k.isa.f32)
    matrices = row_windows(k, task, how.epilogue.matrices)

    def column(j: int) -> Callable[[Row, Val], None]:
        def write(row: Row, value: Val) -> None:
            others = {n: row.place(v, j) for n, v in matrices.items()}
            real = how.real(k, task, value, row.number, block.at(j), block.own(j))
            out = how.epilogue.apply(k, task, real, block.at(j), others, block.own(j), given)
            row.place(c, j).store(how.final(out), block.own(j))

        return write

    block.finish(sums, column, False)


def _corrections(k: Kernel, task: Task, how: Requantize, block: Block, add_sums: Sums) -> list[list[Val]]:
    """For each row, its sum times the weights' zero point: what its products have too much; nothing where that is 0."""
    if not how.weight_zero_point:
        return [[] for _ in range(block.count)]
    sums = [k.var(k.zeros(I32, k.isa.f32)) for _ in range(block.count)]
    add_sums(sums)
    zero = task.i64("weight_zero").cast(I32)
    return [[sum_of_lanes(total.get()) * zero] for total in sums]
