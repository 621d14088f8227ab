"""Depthwise convolution in float32: every channel with a filter of its own."""

from __future__ import annotations

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import F32, Kernel, Val, View
from onert_llvm.layout import TaskLayout

from .epilogue import PLAIN, Epilogue, row_windows
from .strip import Pixels, Strip, each_strip
from .window import SLOTS as WINDOW


@frozen
class DepthwiseF32:
    """Weights are `[taps, channels]`; work tiles are rows of the output, through all images.

    A filter is read once for a strip of outputs, and so is a pixel that several of their windows see.
    """

    strip: Strip
    epilogue: Epilogue = PLAIN

    @property
    def name(self) -> str:
        return "depthwise_f32"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("w", "c", "channels", "ldc", *self.strip.slots, *WINDOW, *self.epilogue.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(out: Val, pixels: Pixels, c: Val, mask: Val | None) -> None:
            self._store(k, task, self._sums(k, task, pixels, c, mask), out, c, mask)

        each_strip(k, task, begin, end, self.strip, F32, body)

    def _sums(self, k: Kernel, task: Task, pixels: Pixels, c: Val, mask: Val | None) -> list[Val]:
        lanes, strip = k.isa.f32, self.strip
        weights = task.view("w", F32, task.i64("channels"), 1)
        acc = [self.epilogue.start(k, task, c, lanes, mask)] * strip.across
        for ty in range(strip.window[0]):
            seen = {column: pixels.at(ty, column, c).load(lanes, mask) for column in strip.columns}
            for tx in range(strip.window[1]):
                w = weights[ty * strip.window[1] + tx, c].load(lanes, mask)
                for x in range(strip.across):
                    acc[x] = k.fma(seen[x * strip.stride + tx * strip.dilation], w, acc[x])
        return acc

    def _store(self, k: Kernel, task: Task, acc: list[Val], out: Val, c: Val, mask: Val | None) -> None:
        target = task.view("c", F32, task.i64("ldc"), 1)
        others = row_windows(k, task, self.epilogue.matrices)
        for x, value in enumerate(acc):
            rows = {n: View(k.b, v[out + x, c].base, F32, (1,)) for n, v in others.items()}
            target[out + x, c].store(self.epilogue.apply(k, task, value, c, 0, rows, mask), mask)
