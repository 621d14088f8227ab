"""Pooling through a window: the greatest or the mean of the pixels, those outside of the picture left out."""

from __future__ import annotations

from enum import Enum
from functools import partial, reduce
from itertools import product
from operator import or_

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I1, I8, I32, Kernel, Val, View
from onert_llvm.kernels.arithmetic.expression import Expr, evaluate
from onert_llvm.kernels.contraction.direct.depthwise_strip import Pixels, Strip, each_strip
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.contraction.implicit_im2col import SLOTS as WINDOW

from .reduce_int8 import average
from .softmax_norm import each_register

_SLOTS = ("c", "channels", "ldc", *WINDOW)


def _taps(pixels: Pixels, output: int) -> list[tuple[int, int]]:
    """Row and column of each pixel that one of the strip's outputs sees."""
    s = pixels.strip
    across = [output * s.stride + t * s.dilation for t in range(s.window[1])]
    return [(row, column) for row in range(s.window[0]) for column in across]


@frozen
class PoolF32(Value):
    """Float32 pooling; `mean` adds and multiplies with `scale[output]`, one over the pixels each output has.

    Without `mean` the greatest is taken, and the row of padding holds minus infinity; with it, zeros. `tree` follows.
    Which columns have a tap that is not a number is found apart, for all outputs that share them, where there are
    registers for that.
    """

    strip: Strip
    mean: bool
    tree: Expr = ACC

    @property
    def slots(self) -> tuple[str, ...]:
        return (*_SLOTS, *(("scale",) if self.mean else ()))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        s = self.strip

        def body(out: Val, pixels: Pixels, c: Val, mask: Val | None) -> None:
            target = task.view("c", F32, task.i64("ldc"), 1)
            values: list[Val | None] = [None] * s.across
            apart = not self.mean and 4 * len(s.columns) + s.across <= k.isa.registers
            join = Val.__add__ if self.mean else Val.max if apart else Val.maximum
            rows = []
            for row in range(s.window[0]):
                seen = {column: pixels.at(row, column, c).load(k.isa.f32, mask) for column in s.columns}
                rows.append(seen)
                for x, t in product(range(s.across), range(s.window[1])):
                    tap, so_far = seen[x * s.stride + t * s.dilation], values[x]
                    values[x] = tap if so_far is None else join(so_far, tap)
            spoilt = {column: _spoilt([seen[column] for seen in rows]) for column in s.columns if apart}
            for x, value in enumerate(values):
                assert value is not None
                if self.mean:
                    value = value * task.view("scale", F32, 1)[pixels.position + x].load()
                elif apart:
                    taps = (spoilt[x * s.stride + t * s.dilation] for t in range(s.window[1]))
                    value = reduce(or_, taps).select(float("nan"), value)
                target[out + x, c].store(_followed(k, self.tree, value), mask)

        each_strip(k, task, begin, end, self.strip, F32, body)


def _spoilt(elements: list[Val]) -> Val:
    """Where any of some elements is not a number; two take one comparison."""
    return reduce(or_, (a.unordered(b) for a, b in zip(elements[::2], elements[1::2] + elements[-1:], strict=False)))


def _followed(k: Kernel, tree: Expr, value: Val) -> Val:
    return evaluate(k, tree, lambda _: value, value)


class Gathering(Enum):
    """What the elements of a window become."""

    MEAN = "mean"
    GREATEST = "greatest"
    ROOT_MEAN_SQUARE = "root mean square"


@frozen
class WindowPoolF32(Value):
    """Float32 pooling with a window of any size, its taps in loops; `tree` follows.

    Work tiles are rows of the output, through all images. Pixels outside of the picture take no part; where they are
    `counted`, a mean has them as zeros.
    """

    gathering: Gathering
    tree: Expr = ACC
    counted: bool = False

    slots = ("c", "channels", *WINDOW)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        channels = task.i64("channels")
        with k.loop(end, begin) as line:
            image, y = line // task.i64("out_h"), line % task.i64("out_h")
            top = y * task.i64("stride_h") - task.i64("pad_h")
            rows = (top.max(0), (top + task.i64("kernel_h")).min(task.i64("in_h")))
            source = task.view("input", F32, task.i64("image"), task.i64("row"), task.i64("pixel"), 1)[image]
            with k.loop(task.i64("out_w"), nonempty=True) as x:
                left = x * task.i64("stride_w") - task.i64("pad_w")
                columns = (left.max(0), (left + task.i64("kernel_w")).min(task.i64("in_w")))
                count = (rows[1] - rows[0]) * (columns[1] - columns[0])
                if self.counted:
                    count = task.i64("kernel_h") * task.i64("kernel_w")
                share = (k.f32(1.0) / count.cast(F32)).splat(k.isa.f32)
                out = task.view("c", F32, task.i64("out_w") * channels, channels, 1)[line, x]
                each_register(k, channels, partial(self._register, k, source, rows, columns, share, out))

    def _register(
        self,
        k: Kernel,
        source: View,
        rows: tuple[Val, Val],
        columns: tuple[Val, Val],
        share: Val,
        out: View,
        c: Val,
        mask: Val | None,
    ) -> None:
        greatest, lanes = self.gathering is Gathering.GREATEST, k.isa.f32
        total = k.var(k.const(k.zeros(F32, lanes).type, float("-inf") if greatest else 0.0))
        spoilt = k.var(k.zeros(I1, lanes))  # apart, so that no tap waits for two instructions

        def add(taps: list[Val]) -> None:
            for tap in taps:
                if greatest:
                    total.set(total.get().max(tap))
                else:
                    total.set(total.get() + (tap if self.gathering is Gathering.MEAN else tap * tap))
            if greatest:
                spoilt.set(spoilt.get() | _spoilt(taps))

        ways = 2 if greatest else 1
        with k.loop(rows[1], rows[0]) as y:
            whole = columns[1] - (columns[1] - columns[0]) % ways
            with k.loop(whole, columns[0], step=ways) as x:
                add([source[y, x + i, c].load(lanes, mask) for i in range(ways)])
            if ways > 1:
                with k.when(whole < columns[1]):
                    add([source[y, whole, c].load(lanes, mask)])
        value = spoilt.get().select(float("nan"), total.get()) if greatest else total.get() * share
        value = value.call("sqrt") if self.gathering is Gathering.ROOT_MEAN_SQUARE else value
        out[c].store(_followed(k, self.tree, value), mask)


@frozen
class PoolInt8(Value):
    """Pooling of bytes that keep their quantisation, clamped to [`low`, `high`].

    The mean rounds halves away from zero as TFLite does: `count[output]` (int32, below 2**16) is how many pixels an
    output has; the row of padding holds zeros for a mean (they add nothing) and the least value for the greatest. The
    quotient in float32 is exact enough to truncate: numerators stay below 2**24.
    """

    strip: Strip
    mean: bool
    signed: bool = True

    @property
    def slots(self) -> tuple[str, ...]:
        return (*_SLOTS, "low", "high", *(("count",) if self.mean else ()))

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
