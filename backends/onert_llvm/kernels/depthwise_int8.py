"""Depthwise convolution of 8-bit integers with exact sums.

The dot product adds neighbouring bytes; here these are pixels above one another in the window. Such a word is made once
from up to four loads and serves every output whose window sees the column.
"""

from __future__ import annotations

from functools import reduce

from attrs import frozen

from onert_llvm.abi import Task
from onert_llvm.build import F32, I8, I16, I32, Kernel, Val, View, vec
from onert_llvm.layout import TaskLayout
from onert_llvm.target import Dot

from .dot import GROUP, dot, offset
from .dynamic import Dynamic
from .epilogue import row_windows
from .requantize import Requantize, as_byte, bias, load_lanes, stored, with_zero_point
from .strip import Body, Pixels, Strip, each_strip
from .weave import REGISTERS, packed, unpacked
from .window import SLOTS as WINDOW

NARROW = Requantize()


@frozen
class DepthwiseInt8:
    """Weights as `packing.pack_depthwise_int8` makes them; work tiles are rows of the output, through all images.

    Where weights have a zero point, the sums of the windows are made on the way.
    """

    strip: Strip
    signed: bool = True
    requantize: Requantize | Dynamic = NARROW

    @property
    def name(self) -> str:
        return "depthwise_int8"

    @property
    def layout(self) -> TaskLayout:
        return TaskLayout(("w", "c", "channels", "ldc", *WINDOW, *self.requantize.slots))

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        how = self.requantize
        if isinstance(how, Dynamic):
            each_strip(k, task, begin, end, self.strip, I8, self._floats(k, task, how))
        else:
            narrow, wide = self._narrow(k, task, how), self._wide(k, task, how)
            each_strip(k, task, begin, end, self.strip, I8, narrow, wide)

    def _narrow(self, k: Kernel, task: Task, how: Requantize) -> Body:
        """One register of channels."""

        def body(out: Val, pixels: Pixels, c: Val, mask: Val | None) -> None:
            sums = self._sums(k, task, pixels, c, mask, bias(k, task, how, c), how.weight_zero_point)
            lanes = load_lanes(k, task, how, c)
            target = task.view("c", I8, task.i64("ldc"), 1)
            for x, total in enumerate(sums):
                target[out + x, c].store(as_byte(stored(task, how, self.signed, total, lanes)), mask)

        return body

    def _floats(self, k: Kernel, task: Task, how: Dynamic) -> Body:
        """One register of channels, its sums as floats."""

        def body(out: Val, pixels: Pixels, c: Val, mask: Val | None) -> None:
            sums = self._sums(k, task, pixels, c, mask, how.start(k, task, c), False)
            target = task.view("c", F32, task.i64("ldc"), 1)
            others = row_windows(k, task, how.epilogue.matrices)
            for x, total in enumerate(sums):
                rows = {n: View(k.b, v[out + x, c].base, F32, (1,)) for n, v in others.items()}
                value = how.real(k, task, total, out + x, c, mask)
                target[out + x, c].store(how.epilogue.apply(k, task, value, c, 0, rows, mask), mask)

        return body

    def _wide(self, k: Kernel, task: Task, how: Requantize) -> Body:
        return lambda out, pixels, c, _: self._four(k, task, how, out, pixels, c)

    def _four(self, k: Kernel, task: Task, how: Requantize, out: Val, pixels: Pixels, c: Val) -> None:
        """Four registers of channels: whole rows of bytes become words, and these bytes again (`weave`)."""
        lanes, strip = k.isa.f32, self.strip
        starts = [c + r * lanes for r in range(REGISTERS)]
        acc = [[bias(k, task, how, at) for at in starts] for _ in range(strip.across)]
        weights = self._weights(k, task)
        minus_zero = (-task.i64("weight_zero")).cast(I8).splat(lanes * 4) if how.weight_zero_point else None
        for step, ty in enumerate(range(0, strip.window[0], 4)):
            rows = range(ty, min(ty + 4, strip.window[0]))
            for column in strip.columns:
                seen = [pixels.at(row, column, c).load(lanes * 4) for row in rows]
                words = unpacked(k, [x ^ -128 if offset(k.isa, self.signed) else x for x in seen])
                for x, tx in strip.reached(column):
                    for r, word in enumerate(words):
                        w = weights[step * strip.window[1] + tx, starts[r]].load(lanes * 4)
                        total = dot(k, acc[x][r], word, w)
                        acc[x][r] = total if minus_zero is None else dot(k, total, word, minus_zero)
        for r, at in enumerate(starts):
            parameters = load_lanes(k, task, how, at)
            for sums in acc:
                sums[r] = with_zero_point(task, how, sums[r], parameters)
        target = task.view("c", I8, task.i64("ldc"), 1)
        for x, values in enumerate(acc):
            target[out + x, c].store(packed(k, task, how.clamped, self.signed, values))

    def _weights(self, k: Kernel, task: Task) -> View:
        """The packed weights by tap (counted in groups of rows), channel, and byte of a group."""
        lanes, group = k.isa.f32, GROUP[k.isa.dot]
        padded = (task.i64("channels") + (lanes - 1)) // lanes * lanes
        return task.view("w", I8, padded * group, group)

    def _sums(
        self, k: Kernel, task: Task, pixels: Pixels, c: Val, mask: Val | None, start: Val, weight_zero: bool
    ) -> list[Val]:
        """For each output of a strip, the sum of its products, begun with `start`."""
        lanes, strip, group = k.isa.f32, self.strip, GROUP[k.isa.dot]
        height, width = strip.window
        weights = self._weights(k, task)
        acc = [start] * strip.across
        seen = {column: k.zeros(I32, lanes) for column in strip.columns}
        for step, ty in enumerate(range(0, height, group)):
            rows = range(ty, min(ty + group, height))
            words = {column: self._word(k, pixels, rows, column, c, mask) for column in strip.columns}
            if weight_zero:
                ones = self._ones(k, len(rows))
                seen = {column: dot(k, seen[column], word, ones) for column, word in words.items()}
            for tx in range(width):
                w = weights[step * width + tx, c].load(lanes * group)
                w = w.cast(I16) if k.isa.dot is Dot.MADD else w
                for x in range(strip.across):
                    acc[x] = dot(k, acc[x], words[x * strip.stride + tx * strip.dilation], w)
        if not weight_zero:
            return acc
        zero = task.i64("weight_zero").cast(I32).splat(lanes)
        reach = [[seen[x * strip.stride + tx * strip.dilation] for tx in range(width)] for x in range(strip.across)]
        return [total - reduce(Val.__add__, sums) * zero for total, sums in zip(acc, reach, strict=True)]

    def _ones(self, k: Kernel, rows: int) -> Val:
        """One for each byte (or 16 bits) of a word that is a row of the window, zero for the others."""
        wide = k.isa.dot is Dot.MADD
        word = k.const(I32, sum(1 << (16 if wide else 8) * i for i in range(rows))).splat(k.isa.f32)
        return word.bits(vec(I16, k.isa.f32 * 2) if wide else vec(I8, k.isa.f32 * 4))

    def _word(self, k: Kernel, pixels: Pixels, rows: range, column: int, c: Val, mask: Val | None) -> Val:
        """A column of the window, a byte (or 16 bits) for each row, in each channel's lane."""
        lanes = k.isa.f32
        wide = k.isa.dot is Dot.MADD
        seen = [pixels.at(row, column, c).load(lanes, mask).cast(I32, signed=wide and self.signed) for row in rows]
        word = seen[0] & 0xFFFF if wide else seen[0]
        for i, value in enumerate(seen[1:], 1):
            word = word | (value << (16 if wide else 8) * i)
        if wide:
            return word.bits(vec(I16, lanes * 2))
        return (word ^ -0x7F7F7F80 if offset(k.isa, self.signed) else word).bits(vec(I8, lanes * 4))
