"""Float32 convolutions over three axes with constant weights, and their transposes, as convolutions over two axes.

The planes that a window covers become channels of a single plane; copying them costs little compared with the products.
A window of one plane, or of one line of planes, needs no copy. A transposed convolution is one convolution for all its
phases, as over two axes (`phases`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.arithmetic.window import Padding, Window, taps
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import Value
from onert_llvm.command.command import Access, Pointer
from onert_llvm.kernels.contraction.epilogue import ACC
from onert_llvm.kernels.contraction.float_terms import ABSENT
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import Plane
from onert_llvm.lower.contraction.epilogue import EpilogueTask, epilogue_task
from onert_llvm.lower.contraction.float_conv_fc import all_finite, convolve_constant, present
from onert_llvm.lower.elementwise.op_to_expression import activated
from onert_llvm.lower.strided_copy import move, side

from .phases import Axis, Phases, after_sums, put, rooms

Triple = tuple[int, int, int]
_MOST_BYTES = 1 << 26
"""The most memory for gathered planes; larger volumes are convolved part by part."""


def why_not(op: Conv3D | TransposeConv3D, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None if it does."""
    weight = types.input(1)
    bias_at = 3 if isinstance(op, TransposeConv3D) else 2
    bias = types.inputs[bias_at] if len(types.inputs) > bias_at else None
    present = [t for t in (types.input(2 if isinstance(op, TransposeConv3D) else 0), weight, bias, types.output) if t]
    if any(t.dtype is not DType.FLOAT32 for t in present):
        return "only float32 is native"
    if weight.value is None or (bias is not None and bias.value is None):
        return "the weights or the bias are not constant"
    if any(0 in t.shape for t in present):
        return "a tensor has no elements"
    if activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    if not all_finite(weight.value):
        return "the weights are not all finite, and padding is multiplied by them"
    dilated = any(dilation > 1 for _, dilation in op.steps)
    return "a dilated transpose has no native form" if dilated and isinstance(op, TransposeConv3D) else None


@frozen
class _Space(Value):
    """The geometry of windows over `images`, along depth, height and width."""

    images: int
    size: Triple
    out: Triple
    window: Triple
    stride: Triple
    dilation: Triple
    pads: Triple

    def plane(self, channels: int) -> Plane:
        """Windows along height and width, over one image with these channels for each plane of the results."""
        each = (self.size, self.out, self.window, self.stride, self.dilation, self.pads)
        size, out, window, stride, dilation, pads = ((values[1], values[2]) for values in each)
        return Plane(self.images * self.out[0], size, channels, out, window, stride, dilation, pads)

    def lines(self, channels: int) -> Plane:
        """Windows along the depth, over images in which each plane is a line."""
        each = (self.window, self.stride, self.dilation)
        window, stride, dilation = ((values[0], 1) for values in each)
        line = self.size[1] * self.size[2]
        size, out = (self.size[0], line), (self.out[0], line)
        return Plane(self.images, size, channels, out, window, stride, dilation, (self.pads[0], 0))

    @property
    def flat(self) -> bool:
        """Whether windows cover a single plane each, and the planes are those of the results."""
        return self.window[0] == self.stride[0] == 1 and self.pads[0] == 0 and self.size[0] == self.out[0]

    @property
    def deep(self) -> bool:
        """Whether windows cover one pixel of each plane, and the pixels are those of the results."""
        single = self.window[1:] == self.stride[1:] == (1, 1)
        return single and self.pads[1:] == (0, 0) and self.size[1:] == self.out[1:]


def _triple(values: Sequence[int]) -> Triple:
    first, second, third = values
    return first, second, third


def lower_convolution(lowering: Lowering, operations: Sequence[int]) -> None:
    """A convolution and its epilogue."""
    _, operation, op = lowering.first(operations, Conv3D)
    x, weight, bias = lowering.layer(operations[0])
    filters = lowering.elements(weight)
    sizes, out = lowering.shape(x), lowering.shape(operation.outputs[0])
    each = enumerate(zip(filters.shape[:3], op.steps, strict=True))
    windows = [Window(n, *step, op.padding.along(i)) for i, (n, step) in each]
    space = _Space(
        sizes[0],
        _triple(sizes[1:4]),
        _triple(out[1:4]),
        _triple(filters.shape[:3]),
        _triple([stride for stride, _ in op.steps]),
        _triple([dilation for _, dilation in op.steps]),
        _triple([w.before(n) for w, n in zip(windows, sizes[1:4], strict=True)]),
    )
    after = epilogue_task(lowering, operations, op.activation, bias, filters.shape[4])
    _convolve(lowering, operations[0], space, filters, after, x)


def _convolve(
    lowering: Lowering, at: int, space: _Space, filters: Array, after: EpilogueTask, x: int, holes: bool = False
) -> None:
    """Convolve `x` with filters `[depth, height, width, channels, n]`; with `holes`, some are `ABSENT`."""
    depth, height, width, channels, n = filters.shape
    ordered, source = np.moveaxis(filters, 4, 0), lowering.operand(x)
    if space.flat or space.deep:
        plane = space.plane(channels) if space.flat else space.lines(channels)
        ordered = np.ascontiguousarray(ordered[:, 0] if space.flat else ordered[:, :, 0])
        convolve_constant(lowering, at, plane, ordered, after, n, source, (x,), holes)
        return
    ordered = np.ascontiguousarray(ordered.transpose(0, 2, 3, 1, 4).reshape(n, height, width, depth * channels))
    for first, part in _parts(space, 4 * depth * channels):
        own = _from_row(after, first * space.out[1] * space.out[2], 4 * n)
        image = first // space.out[0] * math.prod(space.size) * channels * 4
        made = _planes(lowering, at, part, own, (x, image), depth, channels)
        own = evolve(own, accesses=(*own.accesses, evolve(made, write=False)))
        convolve_constant(lowering, at, part.plane(depth * channels), ordered, own, n, made.pointer, (), holes)


def _parts(space: _Space, pixel: int) -> Iterator[tuple[int, _Space]]:
    """Ranges of result planes whose gathered images, with `pixel` bytes per pixel, need moderate memory: the number of
    the first, and the windows.
    """
    each, sizes = space.size[1] * space.size[2] * pixel, (space.images, *space.size, *space.out)
    if any(map(is_symbolic, sizes)) or space.images * space.out[0] * each <= _MOST_BYTES:
        yield 0, space
        return
    parts = -(-space.out[0] // max(1, _MOST_BYTES // each))
    count = -(-space.out[0] // parts)  # of similar size, so that all use the same kernel
    for image, first in product(range(space.images), range(0, space.out[0], count)):
        out = (min(count, space.out[0] - first), *space.out[1:])
        pads = (space.pads[0] - first * space.stride[0], *space.pads[1:])
        yield image * space.out[0] + first, evolve(space, images=1, out=out, pads=pads)


def _from_row(after: EpilogueTask, row: int, pitch: int) -> EpilogueTask:
    """The epilogue of the results from a row on; rows have `pitch` bytes."""
    slots = dict(after.slots)
    for name in after.epilogue.matrices:
        pointer = slots[name]
        assert isinstance(pointer, Pointer)
        slots[name] = evolve(pointer, offset=pointer.offset + row * pitch)
    return evolve(after, slots=slots, place=evolve(after.place, offset=after.place.offset + row * pitch))


def _planes(
    lowering: Lowering, at: int, space: _Space, after: EpilogueTask, source: tuple[int, int], depth: int, channels: int
) -> Access:
    """The gathered images of all results: each pixel has the channels of every plane that a window covers, 0 for
    padding.

    `source` is an operand and the byte offset of its first image.
    """
    (x, begin), pixels = source, space.size[1] * space.size[2]
    shape = (space.images, space.out[0], pixels, depth, channels)
    *_, room = lowering.scratch(*(access.nbytes for access in after.accesses), 4 * math.prod(shape))
    taken = side(lowering.operand(x, begin), (space.images, space.size[0], pixels, channels), 4)
    made, nothing = side(room.pointer, shape, 4), side(lowering.constant(np.zeros(1, np.float32)), (), 4)
    window = Window(depth, space.stride[0], space.dilation[0], Padding.VALID)
    met = {tap.index: tap for tap in taps(window, space.size[0], space.out[0], space.pads[0])}
    for number in range(depth):
        own, ends = made.view[:, :, :, number], [(0, space.out[0])]
        if number in met:
            there, here = met[number].source, met[number].target
            move(lowering, at, taken.at(taken.view[:, there]), made.at(own[:, here]), (x,))
            ends = [(0, here.start), (here.stop, space.out[0])]
        for first, last in ends:
            if first < last:
                empty = own[:, first:last]
                move(lowering, at, nothing.at(nothing.view.broadcast_to(empty.shape)), made.at(empty))
    return room


def lower_transposed(lowering: Lowering, operations: Sequence[int]) -> None:
    """A transposed convolution: one convolution for all phases, whose results are then put into their places."""
    at, operation, op = lowering.single(operations, TransposeConv3D)
    _, weight, x, bias = (*operation.inputs, None)[:4]
    assert x is not None
    assert weight is not None
    sizes, out, filters = lowering.shape(x), lowering.shape(operation.outputs[0]), lowering.elements(weight)
    axes = []
    for i, (stride, _) in enumerate(op.steps):
        before = Window(filters.shape[i], stride, 1, op.padding.along(i)).before(out[1 + i])
        axes.append(Axis(sizes[1 + i], filters.shape[i], stride, before, out[1 + i]))
    found = Phases(tuple(axes), sizes[0], out[-1])
    inputs, counts, taps, pads = (_triple(found.each(name)) for name in ("inputs", "count", "taps", "padding"))
    space = _Space(sizes[0], inputs, counts, taps, (1, 1, 1), (1, 1, 1), pads)
    room = lowering.scratch(*rooms(found))
    after = after_sums(lowering, found, op.activation, bias, operation.outputs[0], room)
    ordered = found.filters(np.moveaxis(present(filters), 3, 0), float(ABSENT))
    _convolve(lowering, at, space, np.moveaxis(ordered, 0, -1), after, x, not found.even)
    put(lowering, at, found, room)
