"""Strips: a few adjacent outputs of a row whose windows slide over the same pixels, channels in the lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import and_

from attrs import field, frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, Var, View


@frozen
class Strip(Value):
    """`across` outputs are computed together; `window` is (height, width); `stride` and `dilation` are horizontal.

    The output has at least `across` columns: the last strip of a row overlaps the previous one. So does the last
    register of channels, unless there are fewer channels than lanes (`masked`). If they are `chunked`, some channels
    are computed for a block of rows before the next chunk, so that what adjacent rows read stays in the core's cache.
    `near`: a window extends outside of the picture by at most half its width on either side.

    With `together`, an output is that many adjacent pixels in the lanes, as in memory, so that few channels fill
    registers; `stride` is then the same number. `lanes` are the lanes of a register that outputs use, if not all.
    """

    window: tuple[int, int]
    stride: int
    dilation: int
    across: int
    masked: bool
    chunked: bool = False
    near: bool = False
    together: int = 1
    lanes: int = 0

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that chunks add: output rows through all images, rows per block, channels per chunk, and work tiles
        per block.
        """
        return ("lines", "block", "chunk", "block_tiles") if self.chunked else ()

    @property
    def columns(self) -> tuple[int, ...]:
        """The offsets, in input pixels, of the pixels that a strip reads in one row."""
        seen = {x * self.stride + t * self.dilation for x in range(self.across) for t in range(self.window[1])}
        return tuple(sorted(seen))

    @property
    def outer(self) -> tuple[int, ...]:
        """The positions of columns that may be outside of the picture."""
        last, half = self.columns[-1], ((self.window[1] - 1) * self.dilation + 1) // 2
        return tuple(i for i, c in enumerate(self.columns) if not self.near or c < half or c > last - half)


_MOST_UNROLLED = 3
"""The most window rows that are unrolled: a loop is shorter code but slower."""


@frozen(eq=False)
class Row:
    """One row of a strip's windows: a channel of its first pixel, and of the padding outside of the picture."""

    strip: Strip
    pixels: View
    beside: View
    across: Mapping[int, Val]
    in_w: Val

    def __getitem__(self, column: int) -> View:
        """The channel of the pixel at offset `column`."""
        place, x = self.pixels[column], self.across.get(column)
        if x is None:
            return place
        found = x.ult(self.in_w).select(place.address, self.beside.address)
        return View(place.b, found.v, place.element, (1,))


@frozen(eq=False)
class Pixels:
    """The pixels that a strip's windows contain.

    `top` and `left` locate the first one in its image and may be outside of it; `position` is the strip's first output
    within its image, in row-major order. `across` has the positions of columns that may be outside of the picture.
    """

    k: Kernel
    task: Task
    strip: Strip
    image: View
    top: Val
    left: Val
    position: Val
    across: Mapping[int, Val]

    def each_row(self, channel: Val, body: Callable[[Val, Row], None]) -> None:
        """Emit `body` for each window row inside of the picture, with its tap and its pixels from a channel on:
        unrolled for low windows, else in a loop.
        """
        k, height = self.k, self.strip.window[0]
        y, place = k.var(self.top), k.var(self.image[self.top, self.left, channel].address)
        if height <= _MOST_UNROLLED:
            for row in range(height):
                self._visit(y, place, k.index(row), channel, body)
        else:
            with k.loop(height) as tap:
                self._visit(y, place, tap, channel, body)

    def _visit(self, y: Var, place: Var, tap: Val, channel: Val, body: Callable[[Val, Row], None]) -> None:
        k, apart, element = self.k, self.task.i64("dilation_h"), self.image.element
        at, pixels = y.get(), k.view(place.get(), element, self.task.i64("pixel"), 1)
        y.set(at + apart)
        place.set(k.view(place.get(), element, 1)[self.image.strides[0] * apart].address)
        with k.when(at.ult(self.task.i64("in_h"))):
            body(tap, self._row(pixels, channel))

    def at(self, row: int, column: int, channel: Val) -> View:
        """A channel of the pixel at offset `column`; a row outside of the picture repeats the padding pixel."""
        k, task = self.k, self.task
        y = self.top + task.i64("dilation_h") * row
        inside = y.ult(task.i64("in_h"))
        place = inside.select(self.image[y, self.left].address, task.ptr("zero"))
        pixel = inside.select(task.i64("pixel"), 0)
        pixels = k.view(k.view(place, self.image.element, 1)[channel].address, self.image.element, pixel, 1)
        return self._row(pixels, channel)[column]

    def _row(self, pixels: View, channel: Val) -> Row:
        beside = self.k.view(self.task.ptr("zero"), pixels.element, 1)[channel]
        return Row(self.strip, pixels, beside, self.across, self.task.i64("in_w"))


@frozen(eq=False)
class InnerPixels(Pixels):
    """Pixels that are all inside of the picture."""

    _rows: View = field(init=False)

    @_rows.default
    def _from_the_first(self) -> View:
        """Their places, computed once for all channels."""
        first, apart = self.image[self.top, self.left].address, self.image.strides[0] * self.task.i64("dilation_h")
        return self.k.view(first, self.image.element, apart, self.task.i64("pixel"), 1)

    def each_row(self, channel: Val, body: Callable[[Val, Row], None]) -> None:
        k, height = self.k, self.strip.window[0]
        rows = k.view(self._rows[0, 0, channel].address, self.image.element, *self._rows.strides)
        if height <= _MOST_UNROLLED:
            for row in range(height):
                body(k.index(row), self._row(rows[row], channel))
        else:
            with k.loop(height) as tap:
                body(tap, self._row(rows[tap], channel))


Each = Callable[[Val, Val | None], None]
"""Emits a strip's outputs for a register of channels: (first channel, mask)."""
Body = Callable[[Val, Pixels], Each]
"""Prepares the outputs from a number on."""


def each_strip(
    k: Kernel, task: Task, begin: Val, end: Val, strip: Strip, element: Type, body: Body, apart: bool = False
) -> None:
    """Emit the loops around `body`; work tiles are output rows through all images, chunk by chunk. If set `apart`,
    strips inside of the picture have code of their own, without tests.
    """
    width = task.i64("out_w")
    with k.loop(end, begin) as tile:
        line, span = _span(k, task, strip, tile)
        image, y = line // task.i64("out_h"), line % task.i64("out_h")
        top = y * task.i64("stride_h") - task.i64("pad_h")
        rows = task.view("input", element, task.i64("image"), task.i64("row"), task.i64("pixel"), 1)[image]
        with k.loop(width, step=strip.across, nonempty=True) as group:
            x = group.min(width - strip.across)
            left = x * strip.stride - task.i64("pad_w")
            across = {strip.columns[i]: left + strip.columns[i] for i in strip.outer}
            channels = partial(_channels, k, strip, span, line * width + x, body)
            at = (rows, top, left, y * width + x)
            if not apart:
                channels(Pixels(k, task, strip, *at, across))
                return
            bottom = top + task.i64("dilation_h") * (strip.window[0] - 1)
            right = left + (strip.columns[-1] + strip.together - 1)
            ends = ((top, "in_h"), (bottom, "in_h"), (left, "in_w"), (right, "in_w"))
            with k.either(reduce(and_, (at.ult(task.i64(size)) for at, size in ends))) as (inner, outer):
                with inner, task.read_before():
                    channels(InnerPixels(k, task, strip, *at, {}))
                with outer, task.read_before():
                    channels(Pixels(k, task, strip, *at, across))


def _span(k: Kernel, task: Task, strip: Strip, tile: Val) -> tuple[Val, tuple[Val, Val]]:
    """The row of a work tile, and its range of channels."""
    if not strip.chunked:
        return tile, (k.index(0), task.i64("channels"))
    number, rest = tile // task.i64("block_tiles"), tile % task.i64("block_tiles")
    begin = number * task.i64("block")
    lines = (task.i64("lines") - begin).min(task.i64("block"))
    first = (rest // lines) * task.i64("chunk")
    return begin + rest % lines, (first, (first + task.i64("chunk")).min(task.i64("channels")))


def _channels(k: Kernel, strip: Strip, span: tuple[Val, Val], out: Val, body: Body, pixels: Pixels) -> None:
    (start, channels), lanes, each = span, strip.lanes or k.isa.f32, body(out, pixels)
    if strip.masked:
        each(start, k.mask(k.isa.f32, channels))
        return
    mask = None if lanes == k.isa.f32 else k.mask(k.isa.f32, k.index(lanes))
    with k.loop(channels, start, step=lanes) as c:
        each(c.min(channels - lanes), mask)
