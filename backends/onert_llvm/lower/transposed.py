"""Transposed convolutions in float32, as convolutions.

With strides (s, t) the results form s * t pictures, each the convolution of the whole input with some of the filter's
taps. All of them are channels of one convolution, then put into their places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.activation import Activation
from onert.ir.ops.transpose_conv import TransposeConv2D, TransposeConvBias2D
from onert.ir.ops.window import Window
from onert_llvm.kernels.epilogue import ACC, Epilogue

from .boxes import move, operand, side
from .builder import Lowering
from .command import Slot
from .epilogues import Tail
from .expressions import activated
from .plane import Plane
from .products import convolve_constant

Transposed = TransposeConv2D | TransposeConvBias2D


@frozen
class _Axis:
    """One axis: `inputs` elements, a window of `size`, a stride, zeros `before` the result, its `outputs` elements.

    Result y is q * stride + r - before: phase r takes every stride-th tap from r on.
    """

    inputs: int
    size: int
    stride: int
    before: int
    outputs: int

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

    def phases(self, filters: Array, axis: int) -> Array:
        """The filter's axis as two, of taps from the last to the first and of phases; zeros where a phase has fewer."""
        room = self.taps * self.stride
        padded = np.zeros((*filters.shape[:axis], room, *filters.shape[axis + 1 :]), np.float32)
        padded[(slice(None),) * axis + (slice(0, self.size),)] = filters
        split = padded.reshape(*filters.shape[:axis], self.taps, self.stride, *filters.shape[axis + 1 :])
        return np.flip(split, axis)


def why_not(op: Transposed, types: CallTypes) -> str | None:
    """Why this backend does not run the operation; None where it does."""
    positions = (1, 2, 3) if isinstance(op, TransposeConv2D) else (1, 0, 2)
    weight, x = types.input(positions[0]), types.input(positions[1])
    bias = types.inputs[positions[2]] if len(types.inputs) > positions[2] else None
    present = [t for t in (x, weight, bias, types.output) if t is not None]
    if any(t.dtype is not DType.FLOAT32 for t in present):
        return "only float32 is native"
    if weight.value is None or (bias is not None and bias.value is None):
        return "the weights or the bias are not constant"
    if isinstance(op, TransposeConv2D) and activated(ACC, op.activation) is None:
        return f"activation {op.activation.name} has no native form"
    return "a tensor has no elements" if any(0 in t.shape for t in present) else None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A transposed convolution."""
    (at,) = operations
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Transposed)
    result = operation.outputs[0]
    if isinstance(op, TransposeConv2D):
        _, weight, x, bias = (*operation.inputs, None)[:4]
    else:
        x, weight, bias = operation.inputs[:3]
    assert x is not None
    assert weight is not None
    filters = lowering.elements(weight)
    axes = _axes(op, lowering.shape(x), filters.shape, lowering.shape(result))
    after = _tail(lowering, op, bias, filters.shape[0], axes, result)
    n, h, w, c = lowering.shape(x)
    counts, window = (axes[0].count, axes[1].count), (axes[0].taps, axes[1].taps)
    pads = (axes[0].padding, axes[1].padding)
    geometry = Plane(n, (h, w), c, counts, window, (1, 1), (1, 1), pads)
    split = axes[1].phases(axes[0].phases(filters, 1), 3)  # [outputs, taps, phases, taps, phases, channels]
    all_phases = split.transpose(2, 4, 0, 1, 3, 5).reshape(-1, *window, c)
    columns = len(all_phases)
    convolve_constant(lowering, at, geometry, all_phases, after, columns, lowering.operand(x), (x,))
    if after.accesses:
        _place(lowering, at, axes, (n, *counts, filters.shape[0]), after)


def _axes(op: Transposed, x: Sequence[int], weight: Sequence[int], out: Sequence[int]) -> tuple[_Axis, _Axis]:
    found = []
    for i, stride in enumerate((op.stride_height, op.stride_width)):
        inputs, size, outputs = x[1 + i], weight[1 + i], out[1 + i]
        if isinstance(op, TransposeConv2D):
            before = Window(size, stride, 1, op.padding).before(outputs)
        else:
            before = op.before(inputs, size, stride)
        found.append(_Axis(inputs, size, stride, before, outputs))
    return found[0], found[1]


def _tail(lowering: Lowering, op: Transposed, bias: int | None, n: int, axes: tuple[_Axis, _Axis], result: int) -> Tail:
    """Bias and activation; the results go to scratch memory where they are not yet in their places."""
    tree = activated(ACC, op.activation if isinstance(op, TransposeConv2D) else Activation.NONE)
    assert tree is not None
    phases = axes[0].stride * axes[1].stride
    slots: dict[str, Slot] = {}
    if bias is not None:
        slots["bias"] = lowering.constant(np.tile(lowering.elements(bias).reshape(-1), phases))
    epilogue = Epilogue(tree, bias is not None)
    if phases == 1:
        return Tail(epilogue, slots, (), lowering.operand(result), (result,))
    images = lowering.shape(result)[0]
    (room,) = lowering.scratch(images * axes[0].count * axes[1].count * phases * n * 4)
    return Tail(epilogue, slots, (), room.pointer, (), (room,))


def _place(
    lowering: Lowering, at: int, axes: tuple[_Axis, _Axis], shape: tuple[int, int, int, int], after: Tail
) -> None:
    """Phase by phase from scratch memory into the result; all at once where the phases fill it evenly."""
    n, rows, columns, channels = shape
    down, across = axes
    made = side(after.place, (n, rows, columns, down.stride, across.stride, channels), 4)
    result = operand(lowering, lowering.operation(at).outputs[0])
    if all(a.shift == 0 and a.count * a.stride == a.outputs for a in axes):
        order = made.view.transpose(0, 1, 3, 2, 4, 5)
        move(lowering, at, made.at(order), side(result.pointer, order.shape, 4))
        return
    for r, s in np.ndindex(down.stride, across.stride):
        (near_y, far_y), (near_x, far_x) = _span(down, r), _span(across, s)
        taken = made.view[:, near_y, near_x, r, s]
        move(lowering, at, made.at(taken), result.at(result.view[:, far_y, far_x]))


def _span(axis: _Axis, phase: int) -> tuple[slice, slice]:
    """Which q of a phase have a result, and these."""
    start = phase - axis.shift
    first = 1 if start < 0 else 0
    count = max(0, min(axis.count, -(-(axis.outputs - start) // axis.stride)) - first)
    begin = first * axis.stride + start
    return slice(first, first + count), slice(begin, begin + count * axis.stride, axis.stride)
