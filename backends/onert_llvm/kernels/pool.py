"""Pooling through a window: the greatest or the mean of the pixels, those outside of the picture left out."""

from __future__ import annotations

from functools import reduce

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import F32, I8, I32, Kernel, Val
from onert_llvm.layout import TaskLayout

from .epilogue import ACC
from .expression import Expr, evaluate
from .reduce_int8 import average
from .strip import Pixels, Strip, each_strip
from .window import SLOTS as WINDOW

_SLOTS = ("c", "channels", "ldc", *WINDOW)


def _taps(pixels: Pixels, output: int) -> list[tuple[int, int]]:
    """Row and column of each pixel that one of the strip's outputs sees."""
    s = pixels.strip
    across = [output * s.stride + t * s.dilation for t in range(s.window[1])]
    return [(row, column) for row in range(s.window[0]) for column in across]


@frozen
class PoolF32:
    """Float32 pooling; `mean` adds and multiplies with `scale[output]`, one over the pixels each output has.

    Without `mean` the greatest is taken, and the row of padding holds minus infinity; with it, zeros. `tree` follows.
    """

    strip: Strip
    mean: bool
    tree: Expr = ACC

    @property
    def name(self) -> str:
        return "pool_f32"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout((*_SLOTS, *(("scale",) if self.mean else ())))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(out: Val, pixels: Pixels, c: Val, mask: Val | None) -> None:
            target = task.view("c", F32, task.i64("ldc"), 1)
            for x in range(self.strip.across):
                seen = [pixels.at(row, column, c).load(k.isa.f32, mask) for row, column in _taps(pixels, x)]
                value = reduce(lambda a, b: a + b if self.mean else a.max(b), seen)
                if self.mean:
                    value = value * task.view("scale", F32, 1)[pixels.position + x].load()
                target[out + x, c].store(_followed(k, self.tree, value), mask)

        each_strip(k, task, begin, end, self.strip, F32, body)


def _followed(k: Kernel, tree: Expr, value: Val) -> Val:
    return evaluate(k, tree, lambda _: value, value)


@frozen
class PoolInt8:
    """Pooling of bytes that keep their quantisation, clamped to [`low`, `high`].

    The mean rounds halves away from zero as TFLite does: `count[output]` (int32, below 2**16) is how many pixels an
    output has; the row of padding holds zeros for a mean (they add nothing) and the least value for the greatest. The
    quotient in float32 is exact enough to truncate: numerators stay below 2**24.
    """

    strip: Strip
    mean: bool
    signed: bool = True

    @property
    def name(self) -> str:
        return "pool_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout((*_SLOTS, "low", "high", *(("count",) if self.mean else ())))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        def body(out: Val, pixels: Pixels, c: Val, mask: Val | None) -> None:
            target = task.view("c", I8, task.i64("ldc"), 1)
            low, high = task.i64("low").cast(I32), task.i64("high").cast(I32)
            for x in range(self.strip.across):
                taps = [pixels.at(row, column, c).load(k.isa.f32, mask) for row, column in _taps(pixels, x)]
                if self.mean:
                    wide = [t.cast(I32, signed=self.signed) for t in taps]
                    count = task.view("count", I32, 1)[pixels.position + x].load().splat(k.isa.f32)
                    value = average(reduce(lambda a, b: a + b, wide), count)
                else:
                    best = reduce(lambda a, b: a.max(b) if self.signed else a.umax(b), taps)
                    value = best.cast(I32, signed=self.signed)
                kept = value.clamp(low.splat(k.isa.f32), high.splat(k.isa.f32))
                target[out + x, c].store(kept.cast(I8), mask)

        each_strip(k, task, begin, end, self.strip, I8, body)
