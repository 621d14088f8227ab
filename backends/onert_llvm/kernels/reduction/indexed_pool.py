"""Max pooling that records where the largest element was, and its inverse."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, I32, I64, Kernel, Val

_PICTURE = ("height", "width", "channels", "out_height", "out_width")
_WINDOW = ("filter_height", "filter_width", "stride_height", "stride_width", "top", "left")


class Place(Enum):
    """How positions are encoded: within the window, or among all elements, in 32 or 64 bits."""

    WINDOW = "window"
    NARROW = "narrow"
    WIDE = "wide"


@frozen
class IndexedMaxPool(Value):
    """`out` = the largest of each window of one channel, between `low` and `high`; `places` = the first one's position.

    A window begins `top` rows and `left` columns before its stride position. Within a window a position is
    `row * filter_width + column + 0.1`; else it is the element's index plus `item` times its image's number (`item` is
    0 for indices within an image). Work tiles are rows of output pixels.
    """

    place: Place

    slots = ("x", "out", "places", "item", "low", "high", *_PICTURE, *_WINDOW)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        channels, lanes = task.i64("channels"), k.isa.f32
        with k.loop(end, begin) as row, k.loop(task.i64("out_width"), nonempty=True) as column:
            for channel, count in k.pieces(channels, lanes):
                self._one(k, task, row, column, channel, count)

    def _one(self, k: Kernel, task: Task, row: Val, column: Val, channel: Val, lanes: int) -> None:
        image, down = row // task.i64("out_height"), row % task.i64("out_height")
        height, width, channels = (task.i64(n) for n in _PICTURE[:3])
        first_row = down * task.i64("stride_height") - task.i64("top")
        first_column = column * task.i64("stride_width") - task.i64("left")
        x = k.view(task.view("x", F32, height * width * channels)[image].address, F32, width * channels, channels, 1)
        best = k.var(k.f32(float("-inf")).splat(lanes))
        place = k.var(k.zeros(I32, lanes))
        bottom = (first_row + task.i64("filter_height")).min(height)
        right = (first_column + task.i64("filter_width")).min(width)
        with k.loop(bottom, first_row.max(0)) as y, k.loop(right, first_column.max(0)) as at:
            seen = k.view(x[y, at, channel].address, F32, 1).load(lanes)
            better = seen > best.get()
            best.set(better.select(seen, best.get()))
            if self.place is Place.WINDOW:
                here = (y - first_row) * task.i64("filter_width") + at - first_column
            else:
                here = y * width + at
            place.set(better.select(here.cast(I32).splat(lanes), place.get()))
        there = (row * task.i64("out_width") + column) * channels + channel
        found = best.get()
        task.view("out", F32, 1)[there].store(
            found.maximum(found.like(task.f32("low"))).minimum(found.like(task.f32("high")))
        )
        self._store(k, task, there, place.get(), best.get(), image * task.i64("item"), channel)

    def _store(self, k: Kernel, task: Task, there: Val, place: Val, best: Val, before: Val, channel: Val) -> None:
        lanes = place.lanes
        if self.place is Place.WINDOW:
            task.view("places", F32, 1)[there].store((place.cast(F64) + 0.1).cast(F32))
            return
        wide = place.cast(I64) * task.i64("channels").splat(lanes)
        wide = wide + k.iota(I64, lanes) if lanes > 1 else wide
        wide = wide + (before + channel).splat(lanes)
        wide = (best > float("-inf")).select(wide, 0)  # no element is larger, so there is no position
        element = I64 if self.place is Place.WIDE else I32
        task.view("places", element, 1)[there].store(wide.cast(element))


@frozen
class MaxUnpool(Value):
    """`out[row, column, channel]` = the element of `x` whose `places` point there, the last of several; others are
    unchanged.

    Positions are within a window, as in `IndexedMaxPool`; those outside of the picture are ignored. Work tiles are
    images.
    """

    slots = ("x", "places", "out", *_PICTURE, *_WINDOW)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        height, width, channels, out_height, out_width = (task.i64(n) for n in _PICTURE)
        pixels = height * width * channels
        x, places = (task.view(n, F32, pixels, width * channels, channels, 1) for n in ("x", "places"))
        out = task.view("out", F32, out_height * out_width * channels, out_width * channels, channels, 1)
        with (
            k.loop(end, begin) as image,
            k.loop(height) as row,
            k.loop(width) as column,
            k.loop(channels) as channel,
        ):
            real = places[image, row, column, channel].load()
            # NaN becomes 0 and is skipped below; numbers beyond 32 bits saturate
            place = real.saturated(I32).cast(I64)
            y = row * task.i64("stride_height") - task.i64("top") + place // task.i64("filter_width")
            at = column * task.i64("stride_width") - task.i64("left") + place % task.i64("filter_width")
            inside = (place >= 0) & real.eq(real) & y.ult(out_height) & at.ult(out_width)
            with k.when(inside):
                out[image, y, at, channel].store(x[image, row, column, channel].load())
