"""Pictures assembled from overlapping blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I32, Kernel, Val, View


@frozen
class OverlappingColumns(Value):
    """`out[plane, y, :width]`: the sum of `x[plane, tap, step, row]` over the `down` taps and `across` steps of blocks,
    with y = row * stride + tap * tap_size - above, each moved by step * step_size - left.

    There are `rows` of blocks, and `columns` in a row. Work tiles are rows of `height` in each plane. If the target has
    masks, `together` registers of a row are summed at a time, otherwise rows are added to the result one by one.
    """

    together: int = 1

    slots: ClassVar[tuple[str, ...]] = (
        *("x", "out", "height", "width", "rows", "columns", "down", "across"),
        *("stride", "tap_size", "step_size", "above", "left"),
    )

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        height, width, rows, columns, down, across = (task.i64(name) for name in self.slots[2:8])
        block = rows * columns
        x = task.view("x", F32, down * across * block, across * block, block, columns, 1)
        with k.loop(end, begin) as tile:
            plane, y = tile // height, tile % height
            out, taps = task.view("out", F32, width, 1)[tile], x[plane]
            if not k.isa.masks:
                self._add(k, task, taps, y, out)
            else:
                with k.loop(width, step=self.together * k.isa.f32, nonempty=True) as at:
                    self._sum(k, task, taps, y, out, at)

    @contextmanager
    def _lines(self, k: Kernel, task: Task, taps: View, y: Val) -> Iterator[tuple[View, Val]]:
        """A loop over all rows of blocks that meet row `y` of the picture, and how far each is moved."""
        with k.loop(task.i64("down")) as tap:
            place = y + task.i64("above") - tap * task.i64("tap_size")
            row = place // task.i64("stride")
            meets = (place >= 0) & (row < task.i64("rows")) & (row * task.i64("stride")).eq(place)
            with k.when(meets), k.loop(task.i64("across")) as step:
                yield taps[tap, step, row], step * task.i64("step_size") - task.i64("left")

    def _sum(self, k: Kernel, task: Task, taps: View, y: Val, out: View, at: Val) -> None:
        """Sum a few registers of the picture."""
        lanes, columns = k.isa.f32, task.i64("columns").cast(I32).splat(k.isa.f32)
        places = [at + i * lanes for i in range(self.together)]
        totals = [k.var(k.zeros(F32, lanes)) for _ in places]
        with self._lines(k, task, taps, y) as (line, moved):
            for place, total in zip(places, totals, strict=True):
                inside = (k.iota(I32, lanes) + (place - moved).cast(I32).splat(lanes)).ult(columns)
                total.set(total.get() + line[place - moved].load(lanes, inside))
        for place, total in zip(places, totals, strict=True):
            out[place].store(total.get(), k.mask(lanes, task.i64("width") - place))

    def _add(self, k: Kernel, task: Task, taps: View, y: Val, out: View) -> None:
        """Add row by row to a row of the picture."""
        lanes, width = k.isa.f32, task.i64("width")
        for at, mask in k.registers(width):
            out[at].store(k.zeros(F32, lanes), mask)
        with self._lines(k, task, taps, y) as (line, moved):
            first = moved.max(0).min(width)
            for at, mask in k.registers((moved + task.i64("columns")).min(width).max(first), first, free=False):
                out[at].store(out[at].load(lanes, mask) + line[at - moved].load(lanes, mask), mask)
