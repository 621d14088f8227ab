"""Transposed convolutions as convolutions.

With strides (s, t) the results form s * t images, each a convolution of the whole input with some of the filter's taps.
All of these phases are channels of one convolution, whose results are then put into their places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Window
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D, TransposeConvBias2D
from onert.ir.value import Value
from onert_llvm.command.command import Access, Slot
from onert_llvm.kernels.contraction.epilogue import ACC, Epilogue
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane
from onert_llvm.lower.contraction.epilogue import EpilogueTask
from onert_llvm.lower.elementwise.op_to_expression import activated
from onert_llvm.lower.strided_copy import move, operand, side

Transposed = TransposeConv2D | TransposeConvBias2D


@frozen
class Axis(Value):
    """One axis: the number of `inputs`, the window's `size`, the stride, the padding `before`, the number of `outputs`.

    Result y is q * stride + r - before: phase r uses every stride-th tap, starting with r.
    """

    inputs: int
    size: int
    stride: int
    before: int
    outputs: int

    @property
    def even(self) -> bool:
        """Whether all phases have the same number of taps."""
        return self.size % self.stride == 0

    @property
    def taps(self) -> int:
        """The taps of the convolution of all phases: those of the phase that has most."""
        return -(-self.size // self.stride)

    @property
    def first(self) -> int:
        """The first q of any result."""
        return self.before // self.stride

    @property
    def count(self) -> int:
        """The number of values of q."""
        return (self.outputs - 1 + self.before) // self.stride - self.first + 1

    @property
    def padding(self) -> int:
        """The leading zeros of the input for the convolution of all phases."""
        return self.taps - 1 - self.first

    @property
    def shift(self) -> int:
        """The number of elements of the first q that are before the result."""
        return self.before - self.first * self.stride

    def phases(self, filters: Array, axis: int, fill: float = 0) -> Array:
        """The filter's axis split into reversed taps and phases; `fill` pads phases with fewer taps."""
        room = self.taps * self.stride
        padded = np.full((*filters.shape[:axis], room, *filters.shape[axis + 1 :]), fill, filters.dtype)
        padded[(slice(None),) * axis + (slice(0, self.size),)] = filters
        split = padded.reshape(*filters.shape[:axis], self.taps, self.stride, *filters.shape[axis + 1 :])
        return np.flip(split, axis)


@frozen
class Phases(Value):
    """The axes of a transposed convolution of `images`, whose results have `channels`."""

    axes: tuple[Axis, ...]
    images: int
    channels: int

    @property
    def count(self) -> int:
        """The number of phases, that is of images that the results form."""
        return math.prod([axis.stride for axis in self.axes])

    @property
    def results(self) -> int:
        """The number of elements of all phases."""
        return self.images * math.prod([axis.count for axis in self.axes]) * self.count * self.channels

    @property
    def even(self) -> bool:
        """Whether all phases have the same number of taps."""
        return all(axis.even for axis in self.axes)

    def each(self, name: str) -> tuple[int, ...]:
        """An attribute of every axis."""
        return tuple(getattr(axis, name) for axis in self.axes)

    def plane(self, channels: int) -> Plane:
        """The convolution of all phases over two axes, on an input with `channels`."""
        (height, width), (rows, columns), (down, across), (top, left) = (
            self.each(name) for name in ("inputs", "count", "taps", "padding")
        )
        return Plane(
            self.images, (height, width), channels, (rows, columns), (down, across), (1, 1), (1, 1), (top, left)
        )

    def alone(self, plane: Plane, values: Array) -> Iterator[tuple[Plane, Array]]:
        """For each phase, its convolution over two axes and its filters, with their taps in reverse order."""
        for numbers in np.ndindex(*self.each("stride")):
            cut = tuple(slice(first, None, axis.stride) for first, axis in zip(numbers, self.axes, strict=True))
            taps = np.ascontiguousarray(np.flip(values[(slice(None), *cut)], (1, 2)))
            down, across = taps.shape[1:3]
            pads = down - 1 - self.axes[0].first, across - 1 - self.axes[1].first
            yield evolve(plane, window=(down, across), pads=pads), taps

    def filters(self, values: Array, fill: float = 0) -> Array:
        """Filters `[outputs, *axes, channels]` as those of all phases; `fill` pads phases with fewer taps."""
        split, rank = values, len(self.axes)
        for i, axis in reversed(list(enumerate(self.axes))):
            split = axis.phases(split, 1 + i, fill)
        taps, phases = range(1, 2 * rank, 2), range(2, 2 * rank + 1, 2)  # alternating, between outputs and channels
        ordered = split.transpose(*phases, 0, *taps, 2 * rank + 1)
        return np.ascontiguousarray(ordered.reshape(-1, *self.each("taps"), values.shape[-1]))


def phases(op: Transposed, x: Sequence[int], weight: Sequence[int], out: Sequence[int]) -> Phases:
    """The phases of an operation over two axes, from the shapes of its operands and its result."""
    found = []
    for i, stride in enumerate((op.stride_height, op.stride_width)):
        inputs, size, outputs = x[1 + i], weight[1 + i], out[1 + i]
        if isinstance(op, TransposeConv2D):
            before = Window(size, stride, 1, op.padding.along(i)).before(outputs)
        else:
            before = op.before(inputs, size, stride)
        found.append(Axis(inputs, size, stride, before, outputs))
    return Phases(tuple(found), out[0], out[3])


def after_sums(
    lowering: Lowering, found: Phases, activation: Activation, bias: int | None, result: int, room: tuple[Access, ...]
) -> EpilogueTask:
    """Bias and activation in float32; results are stored to `room` if they must be rearranged."""
    tree = activated(ACC, activation)
    assert tree is not None
    slots: dict[str, Slot] = {}
    if bias is not None:
        slots["bias"] = lowering.constant(np.tile(lowering.elements(bias).reshape(-1), found.count))
    epilogue = Epilogue(tree, bias is not None)
    if not room:
        return EpilogueTask(epilogue, slots, (), lowering.operand(result), (result,))
    return EpilogueTask(epilogue, slots, (), room[0].pointer, (), room)


def rooms(found: Phases, itemsize: int = 4) -> tuple[int, ...]:
    """The bytes of scratch memory for the results of all phases, if there are several."""
    return () if found.count == 1 else (found.results * itemsize,)


def put(lowering: Lowering, at: int, found: Phases, room: tuple[Access, ...], *, phases_first: bool = False) -> None:
    """Move the results from scratch memory into place, phase by phase, or all at once if phases are even. With
    `phases_first`, those of a phase are adjacent in scratch memory."""
    if not room:
        return
    result, rank = operand(lowering, lowering.operation(at).outputs[0]), len(found.axes)
    itemsize = result.view.itemsize
    sizes, strides = (found.images, *found.each("count")), found.each("stride")
    if phases_first:
        source = side(room[0].pointer, (*strides, *sizes, found.channels), itemsize)
        source = source.at(source.view.transpose((*range(rank, 2 * rank + 1), *range(rank), 2 * rank + 1)))
    else:
        source = side(room[0].pointer, (*sizes, *strides, found.channels), itemsize)
    if all(a.shift == 0 and a.count * a.stride == a.outputs for a in found.axes):
        pairs = (i for axis in range(1, rank + 1) for i in (axis, rank + axis))
        order = source.view.transpose(0, *pairs, 2 * rank + 1)
        move(lowering, at, source.at(order), side(result.pointer, order.shape, itemsize))
        return
    for numbers in np.ndindex(*found.each("stride")):
        near, far = zip(*(_span(axis, number) for axis, number in zip(found.axes, numbers, strict=True)), strict=True)
        taken = source.view[(slice(None), *near, *numbers)]
        move(lowering, at, source.at(taken), result.at(result.view[(slice(None), *far)]))


def _span(axis: Axis, phase: int) -> tuple[slice, slice]:
    """The values of q for which a phase has results, and these results."""
    start = phase - axis.shift
    first = 1 if start < 0 else 0
    count = max(0, min(axis.count, -(-(axis.outputs - start) // axis.stride)) - first)
    begin = first * axis.stride + start
    return slice(first, first + count), slice(begin, begin + count * axis.stride, axis.stride)
