"""Transposed convolutions as convolutions.

With strides (s, t) the results form s * t pictures, each the convolution of the whole input with some of the filter's
taps. All of them are channels of one convolution, then put into their places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.ops.arithmetic.window import Window
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D, TransposeConvBias2D
from onert.ir.value import Value
from onert_llvm.command.command import Pointer
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane
from onert_llvm.lower.strided_copy import move, operand, side

Transposed = TransposeConv2D | TransposeConvBias2D


@frozen
class Axis(Value):
    """One axis: `inputs` elements, a window of `size`, a stride, zeros `before` the result, its `outputs` elements.

    Result y is q * stride + r - before: phase r takes every stride-th tap from r on.
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
        """Taps of the convolution of all phases: those of the phase that has most."""
        return -(-self.size // self.stride)

    @property
    def first(self) -> int:
        """The first q that any result has."""
        return self.before // self.stride

    @property
    def count(self) -> int:
        """How many q there are."""
        return (self.outputs - 1 + self.before) // self.stride - self.first + 1

    @property
    def padding(self) -> int:
        """Zeros in front of the input for the convolution of all phases."""
        return self.taps - 1 - self.first

    @property
    def shift(self) -> int:
        """Elements of the first q that lie before the result."""
        return self.before - self.first * self.stride

    def phases(self, filters: Array, axis: int, fill: float = 0) -> Array:
        """The filter's axis as two, of taps from the last to the first and of phases; `fill` where one has fewer."""
        room = self.taps * self.stride
        padded = np.full((*filters.shape[:axis], room, *filters.shape[axis + 1 :]), fill, filters.dtype)
        padded[(slice(None),) * axis + (slice(0, self.size),)] = filters
        split = padded.reshape(*filters.shape[:axis], self.taps, self.stride, *filters.shape[axis + 1 :])
        return np.flip(split, axis)


@frozen
class Phases(Value):
    """Both axes of a transposed convolution of so many `images`, each result of `channels`."""

    down: Axis
    across: Axis
    images: int
    channels: int

    @property
    def count(self) -> int:
        """How many pictures the results form."""
        return self.down.stride * self.across.stride

    @property
    def results(self) -> int:
        """Elements of all of them."""
        return self.images * self.down.count * self.across.count * self.count * self.channels

    def plane(self, channels: int) -> Plane:
        """The convolution of all phases, of so many channels."""
        axes = (self.down, self.across)
        (height, width), counts, window = (tuple(getattr(a, n) for a in axes) for n in ("inputs", "count", "taps"))
        pads = (self.down.padding, self.across.padding)
        return Plane(self.images, (height, width), channels, counts, window, (1, 1), (1, 1), pads)

    def filters(self, values: Array, fill: float = 0) -> Array:
        """Filters `[outputs, height, width, channels]` as those of all phases; `fill` where a phase has fewer taps."""
        split = self.across.phases(self.down.phases(values, 1, fill), 3, fill)
        ordered = split.transpose(2, 4, 0, 1, 3, 5)  # from [outputs, taps, phases, taps, phases, channels]
        return np.ascontiguousarray(ordered.reshape(-1, self.down.taps, self.across.taps, values.shape[3]))


def phases(op: Transposed, x: Sequence[int], weight: Sequence[int], out: Sequence[int]) -> Phases:
    """The phases of an operation, by the shapes of its operands and its result."""
    found = []
    for i, stride in enumerate((op.stride_height, op.stride_width)):
        inputs, size, outputs = x[1 + i], weight[1 + i], out[1 + i]
        if isinstance(op, TransposeConv2D):
            before = Window(size, stride, 1, op.padding.along(i)).before(outputs)
        else:
            before = op.before(inputs, size, stride)
        found.append(Axis(inputs, size, stride, before, outputs))
    return Phases(found[0], found[1], out[0], out[3])


def put(lowering: Lowering, at: int, found: Phases, made: Pointer) -> None:
    """Phase by phase from scratch memory into the result; all at once where the phases fill it evenly."""
    down, across = found.down, found.across
    result = operand(lowering, lowering.operation(at).outputs[0])
    itemsize = result.view.itemsize
    shape = (found.images, down.count, across.count, down.stride, across.stride, found.channels)
    source = side(made, shape, itemsize)
    if all(a.shift == 0 and a.count * a.stride == a.outputs for a in (down, across)):
        order = source.view.transpose(0, 1, 3, 2, 4, 5)
        move(lowering, at, source.at(order), side(result.pointer, order.shape, itemsize))
        return
    for r, s in np.ndindex(down.stride, across.stride):
        (near_y, far_y), (near_x, far_x) = span(down, r), span(across, s)
        taken = source.view[:, near_y, near_x, r, s]
        move(lowering, at, source.at(taken), result.at(result.view[:, far_y, far_x]))


def span(axis: Axis, phase: int) -> tuple[slice, slice]:
    """Which q of a phase have a result, and these."""
    start = phase - axis.shift
    first = 1 if start < 0 else 0
    count = max(0, min(axis.count, -(-(axis.outputs - start) // axis.stride)) - first)
    begin = first * axis.stride + start
    return slice(first, first + count), slice(begin, begin + count * axis.stride, axis.stride)
