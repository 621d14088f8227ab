"""Pooling over windows; pixels outside of the picture are left out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce
from itertools import product
from operator import or_

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import Kernel, Val, View
from onert_llvm.kernels.contraction.direct.depthwise_strip import Pixels, Strip, each_strip
from onert_llvm.kernels.contraction.implicit_im2col import SLOTS as WINDOW

from .elements import Elements
from .fold import unordered


def found_apart(strip: Strip, registers: int) -> bool:
    """Whether there are enough registers to track NaN separately for each column of a strip."""
    return 4 * len(strip.columns) + strip.across <= registers


@frozen
class Pool(Value):
    """Pooling with unrolled window taps, for a strip of outputs.

    The divisor of a mean is `divisors[output]`, in float32 the reciprocal of its number of pixels. The padding row
    holds the neutral element. If there are enough registers, columns with a NaN tap are tracked separately, once for
    all outputs that share them.
    """

    elements: Elements
    strip: Strip

    @property
    def slots(self) -> tuple[str, ...]:
        divisors = ("divisors",) if self.elements.mean else ()
        return ("c", "channels", "ldc", *WINDOW, *self.elements.slots, *divisors)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        s, elements = self.strip, self.elements
        memory, apart = elements.kind.memory, elements.tracks_nan and found_apart(s, k.isa.registers)
        join = elements.join_numbers if apart else elements.join

        def body(out: Val, pixels: Pixels, c: Val, mask: Val | None) -> None:
            target = task.view("c", memory, task.i64("ldc"), 1)
            values: list[Val | None] = [None] * s.across
            rows = []
            for row in range(s.window[0]):
                seen = {column: elements.load(pixels.at(row, column, c), k.isa.f32, mask) for column in s.columns}
                rows.append(seen)
                for x, t in product(range(s.across), range(s.window[1])):
                    tap, so_far = seen[x * s.stride + t * s.dilation], values[x]
                    values[x] = tap if so_far is None else join(so_far, tap)
            nan_tracker = {column: unordered([seen[column] for seen in rows]) for column in s.columns if apart}
            for x, value in enumerate(values):
                assert value is not None
                divisor = None
                if elements.mean:
                    divisor = task.view("divisors", elements.divisors, 1)[pixels.position + x].load()
                elif apart:
                    taps = (nan_tracker[x * s.stride + t * s.dilation] for t in range(s.window[1]))
                    value = reduce(or_, taps).select(float("nan"), value)
                target[out + x, c].store(elements.finish(k, task, value, divisor), mask)

        each_strip(k, task, begin, end, s, memory, lambda out, pixels: partial(body, out, pixels))


@frozen
class WindowPool(Value):
    """Pooling with a window of any size, its taps in loops; work tiles are output rows, through all images.

    Pixels outside of the picture are ignored; if they are `counted`, a mean includes them as zeros.
    """

    elements: Elements
    counted: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        return ("c", "channels", *WINDOW, *self.elements.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        channels, memory = task.i64("channels"), self.elements.kind.memory
        with k.loop(end, begin) as line:
            image, y = line // task.i64("out_h"), line % task.i64("out_h")
            top = y * task.i64("stride_h") - task.i64("pad_h")
            rows = (top.max(0), (top + task.i64("kernel_h")).min(task.i64("in_h")))
            source = task.view("input", memory, task.i64("image"), task.i64("row"), task.i64("pixel"), 1)[image]
            with k.loop(task.i64("out_w"), nonempty=True) as x:
                left = x * task.i64("stride_w") - task.i64("pad_w")
                columns = (left.max(0), (left + task.i64("kernel_w")).min(task.i64("in_w")))
                count = (rows[1] - rows[0]) * (columns[1] - columns[0])
                if self.counted:
                    count = task.i64("kernel_h") * task.i64("kernel_w")
                divisor = self.elements.divisor(k, count) if self.elements.mean else None
                out = task.view("c", memory, task.i64("out_w") * channels, channels, 1)[line, x]
                for c, lanes, mask in self._registers(k, channels):
                    total = self._total(k, source, rows, columns, (c, lanes, mask))
                    out[c].store(self.elements.finish(k, task, total, divisor), mask)

    def _registers(self, k: Kernel, channels: Val) -> Iterator[tuple[Val, int, Val | None]]:
        """The first channel, lanes and mask of each register of channels, the widest first."""
        wide, lanes = self.elements.lanes(k), k.isa.f32
        if wide <= lanes:
            yield from ((c, lanes, mask) for c, mask in k.registers(channels))
            return
        whole = channels - channels % wide
        with k.loop(whole, step=wide) as c:
            yield c, wide, None
        with k.loop(channels, whole, step=lanes) as c:
            yield c, lanes, k.mask(lanes, channels - c)

    def _total(
        self,
        k: Kernel,
        source: View,
        rows: tuple[Val, Val],
        columns: tuple[Val, Val],
        some: tuple[Val, int, Val | None],
    ) -> Val:
        """Fold the pixels of a window, for a register of channels."""
        elements, (c, lanes, mask) = self.elements, some
        total, nan_tracker = k.var(elements.start(k, lanes)), elements.nan_tracker(k)

        def add(x: Val, count: int) -> None:
            taps = [elements.load(source[y, x + i, c], lanes, mask) for i in range(count)]
            for tap in taps:
                total.set(elements.join_numbers(total.get(), tap))
            nan_tracker.see(taps)

        ways = 2 if elements.tracks_nan else 1
        with k.loop(rows[1], rows[0]) as y:
            whole = columns[1] - (columns[1] - columns[0]) % ways
            with k.loop(whole, columns[0], step=ways) as x:
                add(x, ways)
            if ways > 1:
                with k.when(whole < columns[1]):
                    add(whole, 1)
        return nan_tracker.with_nan(total.get())
