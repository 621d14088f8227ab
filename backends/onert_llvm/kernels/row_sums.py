"""Sums of stored activations, which weights with a zero point need beside their products."""

from __future__ import annotations

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import I8, I32, Kernel, Val
from onert_llvm.layout import TaskLayout

from .window import SLOTS as WINDOW
from .window import each_tap, origin


@frozen
class RowSums:
    """`out[row] = sum of x[row, :k]` in 32 bits; rows are `lda` bytes apart and the work tiles."""

    signed: bool = False

    @property
    def name(self) -> str:
        return "row_sums"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("x", "lda", "k", "out"))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        lanes, depth = k.isa.f32, task.i64("k")
        whole = depth - depth % lanes
        with k.loop(end, begin) as r:
            row = task.view("x", I8, task.i64("lda"), 1)[r]
            total = k.var(k.zeros(I32, lanes))
            with k.loop(whole, step=lanes) as at:
                total.set(total.get() + row[at].load(lanes).cast(I32, self.signed))
            with k.when(whole < depth):
                rest = row[whole].load(lanes, k.mask(lanes, depth - whole))
                total.set(total.get() + rest.cast(I32, self.signed))
            task.view("out", I32, 1)[r].store(_sum_of_lanes(total.get()))


@frozen
class WindowSums:
    """`out[pixel] = sum over the window's taps` of a picture with one 32-bit channel; work tiles are output pixels.

    From the `RowSums` of a picture's pixels it makes those of a convolution's windows; `zero` points to the sum of a
    pixel outside of the picture.
    """

    @property
    def name(self) -> str:
        return "window_sums"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("out", *WINDOW))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as pixel:
            total = k.var(k.const(I32, 0))
            with each_tap(k, task, [origin(k, task, pixel)], I32) as (_, (seen,)):
                total.set(total.get() + seen[0].load())
            task.view("out", I32, 1)[pixel].store(total.get())


def _sum_of_lanes(x: Val) -> Val:
    while x.lanes > 2:
        half = x.lanes // 2
        x = x.shuffle(list(range(half))) + x.shuffle(list(range(half, x.lanes)))
    return x.lane(0) + x.lane(1)
