"""Depthwise convolution of bytes, four channels at a time."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import I8, I32, PTR, Kernel, Val, Var, intrinsic
from onert_llvm.kernels.contraction.implicit_im2col import SLOTS as WINDOW
from onert_llvm.target.isa import Products

from .requantize import FIELDS, OneByOne, fields_of
from .steps import halves
from .windows import each_tap, number

TOGETHER = 4
"""Channels of a group: their bytes form a word."""

MOST_UNROLLED = 9
"""The most taps that are unrolled; more are a loop."""


@frozen
class SmallDepthwise(Value):
    """A depthwise convolution; work tiles are output pixels, through all images. Weights are packed by `pack_taps`.

    `groups`: there are groups of four channels; `rest` channels follow them. `words`: pixels are word-aligned. With a
    `multiplier`, each input channel has that many filters. `room` is memory for the addresses of a window's pixels.
    """

    taps: int
    groups: bool
    rest: int
    words: bool
    multiplier: int
    how: OneByOne

    @property
    def slots(self) -> tuple[str, ...]:
        return ("w", "c", "channels", "ldc", "room", *WINDOW, *self.how.slots)

    def emit(self, k: Kernel, task: Task, begin: Val, end: Val) -> None:
        with k.loop(end, begin) as tile:
            at = tile.cast(I32)
            self._see(k, task, at)
            channel = k.var(k.const(I32, 0))
            weights, fields = k.var(task.ptr("w")), k.var(task.ptr("columns"))
            out = k.var(k.view(task.ptr("c"), I8, 1)[at * number(task, "ldc")].address)
            self._channels(k, task, _Channels(k, task, self, (channel, weights, fields, out)), channel)

    def _channels(self, k: Kernel, task: Task, some: _Channels, channel: Var) -> None:
        """Emit all channels of a pixel."""
        if self.multiplier > 1:
            with k.times(number(task, "pixel")):
                for _ in range(self.multiplier):
                    some.write(1)
                channel.set(channel.get() + 1)
            return
        if self.groups:
            with k.times(number(task, "channels").lshr(2)):
                some.write(TOGETHER)
                channel.set(channel.get() + TOGETHER)
        for _ in range(self.rest):
            some.write(1)
            channel.set(channel.get() + 1)

    def _see(self, k: Kernel, task: Task, pixel: Val) -> None:
        """Store the addresses of a window's pixels."""
        place = k.var(task.ptr("room"))
        with each_tap(k, task, pixel) as source:
            here = k.view(place.get(), PTR, 1)
            here.store(source, align=4)
            place.set(here[1].address)


class _Channels:
    """Code generation for some channels of a pixel."""

    def __init__(self, k: Kernel, task: Task, layer: SmallDepthwise, at: tuple[Var, Var, Var, Var]) -> None:
        self.k, self.task, self.layer = k, task, layer
        self.channel, self.weights, self.fields, self.out = at

    def write(self, count: int) -> None:
        k, layer = self.k, self.layer
        fields = [fields_of(k, k.view(self.fields.get(), I32, FIELDS)[j].address) for j in range(count)]
        sums = [k.var(own[0].load()) for own in fields]
        if layer.taps <= MOST_UNROLLED:
            room = self.task.view("room", PTR, 1)
            for tap in range(layer.taps):
                self._tap(sums, room[tap].load(align=4), self.weights.get(), tap)
            self._move(layer.taps * count)
        else:
            place = k.var(self.task.ptr("room"))
            with k.times(k.const(I32, layer.taps)):
                here = k.view(place.get(), PTR, 1)
                self._tap(sums, here.load(align=4), self.weights.get(), 0)
                self._move(count)
                place.set(here[1].address)
        out = k.view(self.out.get(), I8, 1)
        for j, total in enumerate(sums):
            out[j].store(layer.how.byte(self.task, total.get(), fields[j]))
        self.fields.set(k.view(self.fields.get(), I32, FIELDS)[count].address)
        self.out.set(out[count].address)

    def _move(self, nbytes: int) -> None:
        self.weights.set(self.k.view(self.weights.get(), I8, 1)[nbytes].address)

    def _tap(self, sums: Sequence[Var], pixel: Val, weights: Val, tap: int) -> None:
        k, count = self.k, len(sums)
        source = k.view(pixel, I8, 1)[self.channel.get()]
        own = k.view(weights, I8, 1)[tap * count]
        if count == TOGETHER and self.layer.words and k.isa.products in (Products.SMLAD, Products.HELIUM):
            x = halves(k, k.view(source.address, I32, 1).load(), self.layer.how.signed)
            w = halves(k, k.view(own.address, I32, 1).load())
            for j, total in enumerate(sums):
                name = "llvm.arm.smlatt" if j >= 2 else "llvm.arm.smlabb"
                total.set(intrinsic(k.b, name, I32, x[j % 2], w[j % 2], total.get()))
            return
        bytes_, others = k.view(source.address, I8, 1), k.view(own.address, I8, 1)
        for j, total in enumerate(sums):
            x_j = bytes_[j].load().cast(I32, signed=self.layer.how.signed)
            total.set(total.get() + x_j * others[j].load().cast(I32))
