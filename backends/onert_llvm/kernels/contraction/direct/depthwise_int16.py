"""Depthwise convolution of 16-bit activations with 8-bit weights, exact as long as 32 bits hold the sums."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I16, I32, Kernel, Val, View, vec
from onert_llvm.kernels.arithmetic.requantize_int16 import ShortScaling
from onert_llvm.kernels.contraction.int8_microkernel import dot_pairs

from .sliding_window import SLOTS, Finish, Slide, Sums, each_slide


@frozen
class DepthwiseInt16(Value):
    """Weights are `[register, taps, lane]` in 32 bits, the upper half 0: a product of pairs is one of numbers.

    Lanes are the channels, filled up to whole registers. Work tiles are rows of the output, through all images.
    """

    slide: Slide
    scaling: ShortScaling

    @property
    def slots(self) -> tuple[str, ...]:
        return ("w", "c", "channels", "ldc", *SLOTS, *self.scaling.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        each_slide(k, task, begin, end, self.slide, I16, [(1, partial(self._sums, k, task))])

    def _sums(self, k: Kernel, task: Task, c: Val, mask: Val | None) -> Sums:
        height, width = self.slide.window
        lanes, pairs = k.isa.f32, vec(I16, k.isa.f32 * 2)
        weights = k.view(task.view("w", I32, height * width)[c].address, I32, lanes)

        def seen(column: Sequence[View]) -> list[Val]:
            return [pixel.load(lanes, mask).cast(I32).bits(pairs) for pixel in column]

        def plus(totals: Sequence[Val], seen: Sequence[Val], tap: int) -> list[Val]:
            (total,) = totals
            for y in range(height):
                w = weights[y * width + tap].load(lanes).bits(pairs)
                total = dot_pairs(k, total, seen[y], w)
            return [total]

        def finish() -> Finish:
            factors, target = self.scaling.lanes(k, task, c), task.view("c", I16, task.i64("ldc"), 1)

            def store(totals: Sequence[Val], out: Val) -> None:
                target[out, c].store(self.scaling.stored(k, task, totals[0], factors), mask)

            return store

        return Sums([self.scaling.bias(k, task, c)], seen, plus, finish)
