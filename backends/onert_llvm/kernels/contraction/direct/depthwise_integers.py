"""Depthwise convolution of 8- and 16-bit integers with 8-bit weights; the exact sums fit in 32 bits.

The dot product adds adjacent numbers; here these are vertically adjacent pixels of the window. Such a word is combined
once from up to four loads and serves every output whose window contains the column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I16, I32, Kernel, Type, Val, View, vec
from onert_llvm.kernels.arithmetic.interleave_x86 import PAIR, REGISTERS, order, packed, paired, unpacked
from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize, as_byte
from onert_llvm.kernels.arithmetic.requantize_int16 import ShortScaling
from onert_llvm.kernels.contraction.dynamic_quantization import Dynamic
from onert_llvm.kernels.contraction.epilogue import row_windows
from onert_llvm.kernels.contraction.extremes import Extremes
from onert_llvm.kernels.contraction.int8_microkernel import dot, dot_pairs, offset
from onert_llvm.kernels.contraction.scaled_results import Real
from onert_llvm.target.isa import Isa

from .sliding_window import Body, Finish, Slide, Sums, each_slide

NARROW = Requantize()


@frozen
class DepthwiseIntegers(Value):
    """A depthwise convolution; work tiles are output rows, through all images.

    Weights are packed by `pack_depthwise`. 16-bit activations have a `ShortScaling`. If weights have a zero point, the
    sums of windows are computed along the way.
    """

    slide: Slide
    wide: int = 0
    signed: bool = True
    requantize: Requantize | Real | ShortScaling = NARROW

    @property
    def slots(self) -> tuple[str, ...]:
        return ("w", "c", "channels", "ldc", *self.slide.slots, *self.requantize.slots)

    @property
    def element(self) -> Type:
        return I16 if isinstance(self.requantize, ShortScaling) else I8

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        how = self.requantize
        one: Body
        seen = how.observer(k) if isinstance(how, Dynamic) else None
        if isinstance(how, Real):
            one = partial(self._floats, k, task, how, seen)
        elif isinstance(how, ShortScaling):
            one = partial(self._shorts, k, task, how)
        else:
            one = partial(self._narrow, k, task, how)
        bodies: list[tuple[int, Body]] = [(1, one)]
        if self.wide and isinstance(how, Requantize):
            bodies.insert(0, (self.wide, partial(self._wide, k, task, how)))
        elif self.wide and isinstance(how, Real):
            bodies.insert(0, (self.wide, partial(self._float_pair, k, task, how, seen)))
        each_slide(k, task, begin, end, self.slide, self.element, bodies)
        if seen is not None:
            seen.write(k, task, begin, end)

    def _in_pairs(self, isa: Isa) -> bool:
        """Whether words are pairs of 16-bit numbers."""
        return self.element is I16 or isa.dot.value.wide

    def _group(self, isa: Isa) -> int:
        """Rows of the window in a word."""
        return 2 if self._in_pairs(isa) else isa.group

    def _narrow(self, k: Kernel, task: Task, how: Requantize, at: Val, c: Val, mask: Val | None) -> Sums:
        """One register of channels."""

        def finish() -> Finish:
            lanes, target = how.lanes(k, task, at), task.view("c", I8, task.i64("ldc"), 1)
            final = how.table(k, task)

            def store(totals: Sequence[Val], out: Val) -> None:
                target[out, c].store(final(as_byte(how.stored(task, self.signed, totals[0], lanes))), mask)

            return store

        return self._sums(k, task, at, mask, how.bias(k, task, at), how.weight_zero_point, finish)

    def _floats(
        self, k: Kernel, task: Task, how: Real, seen: Extremes | None, at: Val, c: Val, mask: Val | None
    ) -> Sums:
        """One register of channels whose sums become floats, which may be stored as bytes."""

        def finish() -> Finish:
            write = self._floats_at(k, task, how, seen, c, mask)
            return lambda totals, out: write(totals[0], out)

        return self._sums(k, task, at, mask, how.start(k, task, c), False, finish)

    def _float_pair(
        self, k: Kernel, task: Task, how: Real, seen: Extremes | None, c: Val, _: Val, __: Val | None
    ) -> Sums:
        """The same for a pair of registers, as in `_wide`; results are brought back to the order of the channels."""
        columns, places = [c, c + k.isa.f32], order(k.isa, PAIR)
        back = sorted(range(len(places)), key=places.__getitem__)

        def finish() -> Finish:
            writes = [self._floats_at(k, task, how, seen, each, None) for each in columns]

            def store(totals: Sequence[Val], out: Val) -> None:
                for write, value in zip(writes, _arranged(totals, back), strict=True):
                    write(value, out)

            return store

        return self._interleaved(
            k, task, c, _arranged([how.start(k, task, each) for each in columns], places), None, finish
        )

    def _floats_at(
        self, k: Kernel, task: Task, how: Real, seen: Extremes | None, c: Val, mask: Val | None
    ) -> Callable[[Val, Val], None]:
        """Stores sums of the channels from `c` on as floats: (sums, row)."""
        target, given = task.view("c", how.element, task.i64("ldc"), 1), how.epilogue.given(task, k.isa.f32)
        others, real = row_windows(k, task, how.epilogue.matrices), how.real(k, task, c, mask)

        def write(sums: Val, out: Val) -> None:
            rows = {n: v[out, c] for n, v in others.items()}
            value = how.final(how.epilogue.apply(k, task, real(sums, out), c, rows, mask, given))
            target[out, c].store(value, mask)
            if seen is not None:
                seen.see(value, mask)

        return write

    def _shorts(self, k: Kernel, task: Task, how: ShortScaling, at: Val, c: Val, mask: Val | None) -> Sums:
        """One register of channels of 16-bit numbers."""

        def finish() -> Finish:
            factors, target = how.lanes(k, task, at), task.view("c", I16, task.i64("ldc"), 1)
            return lambda totals, out: target[out, c].store(how.stored(k, task, totals[0], factors), mask)

        return self._sums(k, task, at, mask, how.bias(k, task, at), False, finish)

    def _wide(self, k: Kernel, task: Task, how: Requantize, c: Val, _: Val, __: Val | None) -> Sums:
        """Four registers of channels, or a pair: registers of bytes, or of 16-bit numbers, are interleaved to words and
        back (`interleave_x86`).
        """
        starts = [c + r * k.isa.f32 for r in range(self.wide)]

        def finish() -> Finish:
            parameters = [how.lanes(k, task, at) for at in starts]
            target, final = task.view("c", I8, task.i64("ldc"), 1), how.table(k, task)

            def store(totals: Sequence[Val], out: Val) -> None:
                values = [how.with_zero_point(task, x, p) for x, p in zip(totals, parameters, strict=True)]
                target[out, c].store(final(packed(k, task, how.clamped, self.signed, values)))

            return store

        rows = PAIR if self._in_pairs(k.isa) else REGISTERS
        zero = self._zero(k, task, rows) if how.weight_zero_point else None
        return self._interleaved(k, task, c, [how.bias(k, task, at) for at in starts], zero, finish)

    def _interleaved(
        self, k: Kernel, task: Task, c: Val, start: Sequence[Val], zero: Val | None, finish: Callable[[], Finish]
    ) -> Sums:
        """Sums of several registers of channels, interleaved."""
        weights, steps, lanes = self._weights(k, task, c, self.wide), self._steps(k.isa), k.isa.f32
        pairs = self._in_pairs(k.isa)

        def seen(column: Sequence[View]) -> list[Val]:
            rows = [pixel.load(lanes * self.wide) for pixel in column]
            if pairs:
                rows = [x.cast(I16, signed=self.signed) for x in rows]
            elif offset(k.isa, self.signed):
                rows = [x ^ -128 for x in rows]
            words = [(paired if pairs else unpacked)(k, [rows[y] for y in step]) for step in steps]
            return self._with_sums(k, words, [zero] * len(steps))

        return Sums(start, seen, self._plus(k, weights, self.wide), finish)

    def _steps(self, isa: Isa) -> list[range]:
        """The window's rows, cut into those of a word each."""
        group, height = self._group(isa), self.slide.window[0]
        return [range(y, min(y + group, height)) for y in range(0, height, group)]

    def _sums(
        self,
        k: Kernel,
        task: Task,
        at: Val,
        mask: Val | None,
        start: Val,
        weight_zero: bool,
        finish: Callable[[], Finish],
    ) -> Sums:
        steps = self._steps(k.isa)
        zeros = [self._zero(k, task, len(rows)) if weight_zero else None for rows in steps]

        def seen(column: Sequence[View]) -> list[Val]:
            words = [[self._word(k, [column[y] for y in rows], mask)] for rows in steps]
            return self._with_sums(k, words, zeros)

        return Sums([start], seen, self._plus(k, self._weights(k, task, at, 1), 1), finish)

    def _weights(self, k: Kernel, task: Task, at: Val, registers: int) -> Callable[[int], list[Val]]:
        """Returns the weights at a tap across, for each group of rows and each register of channels.

        They stay in registers if there are enough.
        """
        lanes, group = k.isa.f32, self._group(k.isa)
        height, width = self.slide.window
        words = width * -(-height // group)
        stored = I16 if self.wide == PAIR else I8
        first = task.view("w", stored, words * group)[at].address
        packed = k.view(first, stored, words * lanes * group, lanes * group)

        def read(tap: int) -> list[Val]:
            found = [packed[r, t].load(lanes * group) for t in range(tap, words, width) for r in range(registers)]
            return [w.cast(I16) if self._in_pairs(k.isa) else w for w in found]

        if words * registers > k.isa.registers * 3 // 8:
            return read
        kept = [read(tap) for tap in range(width)]
        return kept.__getitem__

    def _plus(
        self, k: Kernel, weights: Callable[[int], list[Val]], registers: int
    ) -> Callable[[Sequence[Val], Sequence[Val], int], list[Val]]:
        """Add a column's products; the word sums times the weights' zero point follow the words in `seen`."""
        product = dot_pairs if self.element is I16 else dot

        def plus(totals: Sequence[Val], seen: Sequence[Val], tap: int) -> list[Val]:
            found, read = list(totals), weights(tap)
            for i, w in enumerate(read):
                found[i % registers] = product(k, found[i % registers], seen[i], w)
            rest = seen[len(read) :]
            return [a - b for a, b in zip(found, rest, strict=True)] if rest else found

        return plus

    def _with_sums(self, k: Kernel, words: Sequence[Sequence[Val]], zeros: Sequence[Val | None]) -> list[Val]:
        """The words of each group of rows, then their sums times the zero point of the weights, if there is one."""
        sums: list[Val] = []
        for step, zero in zip(words, zeros, strict=True):
            if zero is not None:
                before = sums or [k.zeros(I32, k.isa.f32)] * len(step)
                sums = [dot(k, total, word, zero) for total, word in zip(before, step, strict=True)]
        return [*(word for step in words for word in step), *sums]

    def _zero(self, k: Kernel, task: Task, rows: int) -> Val:
        """The weights' zero point in each byte (or 16 bits) of a word that is a row of the window, 0 in the others."""
        wide = k.isa.dot.value.wide
        element, bits = (I16, 16) if wide else (I8, 8)
        zero = task.i64("weight_zero").cast(element).splat(k.isa.f32 * 32 // bits)
        inside = k.const(I32, (1 << bits * rows) - 1 if bits * rows < 32 else -1).splat(k.isa.f32)
        return zero & inside.bits(zero.type)

    def _word(self, k: Kernel, column: Sequence[View], mask: Val | None) -> Val:
        """Vertically adjacent pixels, a byte (or 16 bits) of each, combined in each channel's lane."""
        lanes, pairs = k.isa.f32, self._in_pairs(k.isa)
        seen = [pixel.load(lanes, mask).cast(I32, signed=pairs and self.signed) for pixel in column]
        word = seen[0] & 0xFFFF if pairs else seen[0]
        for i, value in enumerate(seen[1:], 1):
            word = word | (value << (16 if pairs else 8) * i)
        if pairs:
            return word.bits(vec(I16, lanes * 2))
        return (word ^ -0x7F7F7F80 if offset(k.isa, self.signed) else word).bits(vec(I8, lanes * 4))


def _arranged(registers: Sequence[Val], places: Sequence[int]) -> list[Val]:
    """A pair of registers with other elements of both in each lane."""
    (first, second), lanes = registers, registers[0].lanes
    return [first.shuffle(places[r * lanes : (r + 1) * lanes], second) for r in range(PAIR)]
