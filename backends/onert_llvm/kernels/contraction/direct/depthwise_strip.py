"""Strips: a few neighbouring outputs of one row that slide a window over the same pixels, channels in the lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Type, Val, Var, View


@frozen
class Strip(Value):
    """`across` outputs are computed together; `window` is (height, width), `stride` and `dilation` are across.

    The output has at least `across` columns: the last strip of a row overlaps the one before. So does the last register
    of channels, but if there are fewer channels than it has (`masked`). If they are `chunked`, some channels are
    computed for a block of rows before the next, so that what neighbouring rows see stays near the core. `near` says
    that a window reaches out of the picture by half of its width at most, to either side.

    Outputs may be so many pixels `together`, side by side in the lanes as they are in memory: then few channels fill
    registers. `stride` is as many. `lanes` are those of a register that outputs take, if not all.
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
        """What chunks add to a task: rows of the output through all images, those of a block, channels of a chunk, and
        the work tiles of a block.
        """
        return ("lines", "block", "chunk", "block_tiles") if self.chunked else ()

    @property
    def columns(self) -> tuple[int, ...]:
        """Distances, in input pixels from the first, of the pixels that a strip sees in one row."""
        seen = {x * self.stride + t * self.dilation for x in range(self.across) for t in range(self.window[1])}
        return tuple(sorted(seen))

    @property
    def outer(self) -> tuple[int, ...]:
        """Which of the columns may lie beside the picture, by their position."""
        last, half = self.columns[-1], ((self.window[1] - 1) * self.dilation + 1) // 2
        return tuple(i for i, c in enumerate(self.columns) if not self.near or c < half or c > last - half)


_WRITTEN_OUT = 3
"""Rows of a window whose code is written one after the other: a loop has shorter code and is slower."""


@frozen(eq=False)
class Row:
    """One row of a strip's windows: some channel of its first pixel, and of the padding beside the picture."""

    strip: Strip
    pixels: View
    beside: View
    across: Mapping[int, Val]
    in_w: Val

    def __getitem__(self, column: int) -> View:
        """The channel of the pixel `column` pixels from the first."""
        place, x = self.pixels[column], self.across.get(column)
        if x is None:
            return place
        found = x.ult(self.in_w).select(place.address, self.beside.address)
        return View(place.b, found.v, place.element, (1,))


@frozen(eq=False)
class Pixels:
    """The pixels that a strip's windows see.

    `top` and `left` are the first in its image, which may lie outside of it; `position` is the strip's first output
    within its image, rows after one another. `across` is where those columns are that may lie beside the picture.
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
        """Write what happens for each row of the windows inside of the picture: its tap, and its pixels from a channel
        on. It is written for each row of a low window, else in a loop.
        """
        k, height = self.k, self.strip.window[0]
        y, place = k.var(self.top), k.var(self.image[self.top, self.left, channel].address)
        if height <= _WRITTEN_OUT:
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
        """A channel of a pixel, `column` pixels from the first; a row outside is the pixel of padding repeated."""
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


Body = Callable[[Val, Pixels, Val, Val | None], None]
"""Writes the code for the outputs from number `out` on: (out, pixels, channel, mask)."""


def each_strip(k: Kernel, task: Task, begin: Val, end: Val, strip: Strip, element: Type, body: Body) -> None:
    """Write the loops around `body`; work tiles are rows of the output through all images, chunk by chunk."""
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
            pixels = Pixels(k, task, strip, rows, top, left, y * width + x, across)
            _channels(k, strip, line * width + x, pixels, span, body)


def _span(k: Kernel, task: Task, strip: Strip, tile: Val) -> tuple[Val, tuple[Val, Val]]:
    """The row of a work tile, and its channels."""
    if not strip.chunked:
        return tile, (k.index(0), task.i64("channels"))
    number, rest = tile // task.i64("block_tiles"), tile % task.i64("block_tiles")
    begin = number * task.i64("block")
    lines = (task.i64("lines") - begin).min(task.i64("block"))
    first = (rest // lines) * task.i64("chunk")
    return begin + rest % lines, (first, (first + task.i64("chunk")).min(task.i64("channels")))


def _channels(k: Kernel, strip: Strip, out: Val, pixels: Pixels, span: tuple[Val, Val], body: Body) -> None:
    (start, channels), lanes = span, strip.lanes or k.isa.f32
    if strip.masked:
        body(out, pixels, start, k.mask(k.isa.f32, channels))
        return
    mask = None if lanes == k.isa.f32 else k.mask(k.isa.f32, k.index(lanes))
    with k.loop(channels, start, step=lanes) as c:
        body(out, pixels, c.min(channels - lanes), mask)
