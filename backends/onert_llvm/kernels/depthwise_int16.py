"""Depthwise convolution of 16-bit activations with 8-bit weights, exact as long as 32 bits hold the sums."""

from __future__ import annotations

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import I16, I32, Kernel, Val, vec
from onert_llvm.layout import TaskLayout

from .gemm_int16 import dot_pairs
from .short_scaling import ShortScaling
from .strip import Pixels, Strip, each_strip
from .window import SLOTS as WINDOW


@frozen
class DepthwiseInt16:
    """Weights are `[taps, lane]` in 32 bits, the upper half zero, so that a product of pairs is one of numbers.

    Lanes are the channels, filled up to whole registers. Work tiles are rows of the output, through all images.
    """

    strip: Strip
    scaling: ShortScaling

    @property
    def name(self) -> str:
        return "depthwise_int16"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("w", "c", "channels", "ldc", "padded", *WINDOW, *self.scaling.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(out: Val, pixels: Pixels, c: Val, mask: Val | None) -> None:
            target = task.view("c", I16, task.i64("ldc"), 1)
            lanes = self.scaling.lanes(k, task, c)
            for x, total in enumerate(self._sums(k, task, pixels, c, mask)):
                target[out + x, c].store(self.scaling.stored(k, task, total, lanes), mask)

        each_strip(k, task, begin, end, self.strip, I16, body)

    def _sums(self, k: Kernel, task: Task, pixels: Pixels, c: Val, mask: Val | None) -> list[Val]:
        lanes, strip = k.isa.f32, self.strip
        weights = task.view("w", I32, task.i64("padded"), 1)
        acc = [self.scaling.bias(k, task, c)] * strip.across
        pairs = vec(I16, lanes * 2)
        for ty in range(strip.window[0]):
            seen = {at: pixels.at(ty, at, c).load(lanes, mask).cast(I32).bits(pairs) for at in strip.columns}
            for tx in range(strip.window[1]):
                w = weights[ty * strip.window[1] + tx, c].load(lanes).bits(pairs)
                for x in range(strip.across):
                    acc[x] = dot_pairs(k, acc[x], seen[x * strip.stride + tx * strip.dilation], w)
        return acc
