"""RoI align: regions of pictures resampled to a fixed size, with an adaptive number of samples."""

from __future__ import annotations

from typing import NamedTuple

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, F64, I32, I64, Kernel, Val
from onert_llvm.irbuilder.math import ceil, floor

MOST_SAMPLES = 1 << 12
"""The most samples of a cell along one side: a region that needs more is rejected."""


class _Side(NamedTuple):
    """A side of a region, in pixels: its start, its length, and the number of samples along each cell."""

    start: Val
    length: Val
    samples: Val


@frozen
class AlignRegions(Value):
    """`out[region, channel, row, column]`: the mean of a cell's samples, or the `largest` product of a pixel and its
    share in a sample. A work tile is a region.

    A region has `rows` by `columns` cells, and in each as many samples along a side as the cell is long. Its corners
    are multiplied by `scale`. `wide`: `batches` has 64-bit integers. The number of a region that is in none of the
    `pictures`, is not finite or needs too many samples is written to `report`; its cells are 0.
    """

    rows: int
    columns: int
    scale: float
    half_pixel: bool
    largest: bool
    wide: bool

    slots = ("x", "regions", "batches", "out", "report", "pictures", "channels", "height", "width")

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as region:
            corners = [task.view("regions", F32, 4, 1)[region, at].load_once().cast(F64) for at in range(4)]
            picture = task.view("batches", I64 if self.wide else I32, 1)[region].load_once().cast(I64)
            offset = 0.5 if self.half_pixel else 0.0
            left, top, right, bottom = (corner * self.scale - offset for corner in corners)
            high, wide = bottom - top, right - left
            if not self.half_pixel:
                high, wide = high.max(1.0), wide.max(1.0)
            tall, long = high / float(self.rows), wide / float(self.columns)
            good = (picture >= 0) & (picture < task.i64("pictures"))
            for each in corners:
                good = good & (each.call("fabs") < float("inf"))
            for each in (tall, long):
                good = good & (each <= float(MOST_SAMPLES))
            counts = [ceil(k, each.max(0.0).min(float(MOST_SAMPLES))) for each in (tall, long)]
            some = good & (counts[0] > 0.0) & (counts[1] > 0.0)
            self._clear(k, task, region, some)
            with k.either(good) as (whole, broken):
                with whole, k.when(some):
                    sides = _Side(top, high, counts[0]), _Side(left, wide, counts[1])
                    self._samples(k, task, region, picture, sides)
                with broken:
                    task.report(region)

    def _clear(self, k: Kernel, task: Task, region: Val, some: Val) -> None:
        """Store the neutral element for samples, or the result of a region without samples."""
        size = task.i64("channels") * (self.rows * self.columns)
        out = task.view("out", F32, size, 1)[region]
        start = some.select(k.f32(float("-inf")), 0.0) if self.largest else k.f32(0.0)
        with k.loop(size) as at:
            out[at].store(start)

    def _samples(self, k: Kernel, task: Task, region: Val, picture: Val, sides: tuple[_Side, _Side]) -> None:
        cells, sizes = (self.rows, self.columns), [task.i64(name) for name in ("height", "width")]
        plane = sizes[0] * sizes[1]
        share = k.const(F64, 1.0) / (sides[0].samples * sides[1].samples)

        def beside(axis: int, cell: Val, sample: Val) -> list[tuple[Val, Val]]:
            """The two pixels beside a sample along a side, with weights; more than a pixel outside, these are 0."""
            start, length, samples = sides[axis]
            within = (sample.cast(F64) + 0.5) / samples
            at = start + (cell.cast(F64) + within) * length / float(cells[axis])
            size = sizes[axis].cast(F64)
            kept, inside = (at >= -1.0) & (at <= size), at.max(0.0).min(size - 1.0)
            low = floor(k, inside)
            first, far = low.cast(I64), inside - low
            both = ((first, far.like(1.0) - far), ((first + 1).min(sizes[axis] - 1), far))
            return [(pixel, kept.select(part, 0.0)) for pixel, part in both]

        with k.loop(self.rows) as row, k.loop(sides[0].samples.cast(I64)) as line:
            down = beside(0, row, line)
            with k.loop(self.columns) as column, k.loop(sides[1].samples.cast(I64)) as step:
                taps = [(y * sizes[1] + x, a * b) for y, a in down for x, b in beside(1, column, step)]
                if not self.largest:
                    taps = [(at, part * share) for at, part in taps]
                parts = [(at, part.cast(F32)) for at, part in taps]
                with k.loop(task.i64("channels")) as channel:
                    pixels = task.view("x", F32, task.i64("channels") * plane, plane, 1)[picture, channel]
                    size = self.rows * self.columns
                    out = task.view("out", F32, task.i64("channels") * size, size, self.columns, 1)
                    total = out[region, channel, row, column].load()
                    for at, part in parts:
                        product = pixels[at].load() * part
                        total = total.maximum(product) if self.largest else total + product
                    out[region, channel, row, column].store(total)
