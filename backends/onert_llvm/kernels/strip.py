"""Strips: a few neighbouring outputs of one row that slide a window over the same pixels, channels in the lanes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import PTR, Kernel, Type, Val, View


@frozen
class Strip:
    """`across` outputs are computed together; `window` is (height, width), `stride` and `dilation` are across.

    The output has at least `across` columns: the last strip of a row overlaps the one before. `masked`: the channels
    end inside a register. `wide`: as many registers of channels are computed together as long as there are so many.
    Where they are `chunked`, some channels are computed for all rows before the next ones, so that what neighbouring
    rows see stays near the core. `near` says that a window reaches out of the picture by half of its width at most, to
    either side.
    """

    window: tuple[int, int]
    stride: int
    dilation: int
    across: int
    masked: bool
    wide: int = 0
    chunked: bool = False
    near: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        """What chunks add to a task: rows of the output through all images, and channels of a chunk."""
        return ("lines", "chunk") if self.chunked else ()

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

    def reached(self, column: int) -> list[tuple[int, int]]:
        """The outputs whose windows see a column, and the tap across at which they do."""
        places = product(range(self.across), range(self.window[1]))
        return [(x, t) for x, t in places if x * self.stride + t * self.dilation == column]


@frozen(eq=False)
class Pixels:
    """Where a strip's pixels are: by their row, at the edge of the picture some columns by a table of pointers.

    `position` is the strip's first output within its image, rows after one another.
    """

    k: Kernel
    strip: Strip
    element: Type
    rows: tuple[View, ...]
    table: View | None
    position: Val

    def at(self, row: int, column: int, channel: Val) -> View:
        """The channel of the pixel in a row of the window, `column` pixels from the first."""
        index = self.strip.columns.index(column)
        if self.table is None or index not in self.strip.outer:
            return self.rows[row][column, channel]
        place = self.table[row, index].load(align=4)
        return self.k.view(place, self.element, 1)[channel]


Body = Callable[[Val, Pixels, Val, Val | None], None]
"""Writes the code for the outputs from number `out` on: (out, pixels, channel, mask)."""


def each_strip(
    k: Kernel,
    task: Task,
    begin: Val,
    end: Val,
    strip: Strip,
    element: Type,
    body: Body,
    wide: Body | None = None,
) -> None:
    """Write the loops around `body`; work tiles are rows of the output through all images, chunk by chunk.

    `wide` is the body for as many registers of channels as the strip says.
    """
    height, width = strip.window[0], task.i64("out_w")
    table = k.view(k.scratch(PTR, height * len(strip.columns)), PTR, len(strip.columns), 1)
    with k.loop(end, begin) as tile:
        line, span = _span(k, task, strip, tile)
        image, y = line // task.i64("out_h"), line % task.i64("out_h")
        top = y * task.i64("stride_h") - task.i64("pad_h")
        with k.loop(width, step=strip.across, nonempty=True) as group:
            x = group.min(width - strip.across)
            left = x * strip.stride - task.i64("pad_w")
            rows = _rows(k, task, strip, element, image, top, left)
            bottom = top + task.i64("dilation_h") * (height - 1)
            inner = (top >= 0) & (bottom < task.i64("in_h")) & (left >= 0)
            inner = inner & (left + strip.columns[-1] < task.i64("in_w"))
            out, position = line * width + x, y * width + x
            with k.either(inner) as (then, otherwise):
                with then:
                    _channels(k, task, strip, out, Pixels(k, strip, element, rows, None, position), span, body, wide)
                with otherwise:
                    seen = _fill(k, task, strip, table, rows, top, left)
                    _channels(k, task, strip, out, Pixels(k, strip, element, seen, table, position), span, body, wide)


def _rows(k: Kernel, task: Task, strip: Strip, element: Type, image: Val, top: Val, left: Val) -> tuple[View, ...]:
    """The window's rows from the strip's first pixel on; outside of the picture they are not to be read."""
    pixel = task.i64("pixel")
    first = image * task.i64("image") + left * pixel
    down = [(top + task.i64("dilation_h") * t) * task.i64("row") for t in range(strip.window[0])]
    return tuple(k.view(task.view("input", element, 1)[first + d].address, element, pixel, 1) for d in down)


def _fill(
    k: Kernel, task: Task, strip: Strip, table: View, rows: tuple[View, ...], top: Val, left: Val
) -> tuple[View, ...]:
    """Write down where the outer pixels lie, in the picture or the pixel of padding; give the rows of the others.

    A row outside of the picture is that pixel again and again.
    """
    zero, found = task.ptr("zero"), []
    across = {j: (left + strip.columns[j]).ult(task.i64("in_w")) for j in strip.outer}
    for i, row in enumerate(rows):
        seen = (top + task.i64("dilation_h") * i).ult(task.i64("in_h"))
        for j, inside in across.items():
            table[i, j].store((seen & inside).select(row[strip.columns[j]].address, zero), align=4)
        pixel = seen.select(task.i64("pixel"), k.index(0))
        found.append(k.view(seen.select(row.address, zero), row.element, pixel, 1))
    return tuple(found)


def _span(k: Kernel, task: Task, strip: Strip, tile: Val) -> tuple[Val, tuple[Val, Val]]:
    """The row of a work tile, and its channels."""
    if not strip.chunked:
        return tile, (k.index(0), task.i64("channels"))
    lines, size = task.i64("lines"), task.i64("chunk")
    first = (tile // lines) * size
    return tile % lines, (first, (first + size).min(task.i64("channels")))


def _channels(
    k: Kernel,
    task: Task,
    strip: Strip,
    out: Val,
    pixels: Pixels,
    span: tuple[Val, Val],
    body: Body,
    wide: Body | None,
) -> None:
    lanes, (start, channels) = k.isa.f32, span
    if wide is not None and strip.wide:
        step = lanes * strip.wide
        first, start = start, channels - channels % step
        with k.loop(start, first, step=step) as c:
            wide(out, pixels, c, None)
    whole = channels - channels % lanes if strip.masked else channels
    with k.loop(whole, start, step=lanes) as c:
        body(out, pixels, c, None)
    if strip.masked:
        if strip.chunked:
            with k.when(whole < channels):
                body(out, pixels, whole, k.mask(lanes, channels - whole))
        else:
            body(out, pixels, whole, k.mask(lanes, channels - whole))
