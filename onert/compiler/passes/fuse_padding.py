"""Fuse padding into the convolutions and pools that read it."""

from __future__ import annotations

import math
from typing import Any

from attrs import evolve

from onert.compiler.rewrite.activation_bounds import Bounds, as_clamp
from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import Op, Operation, RuleError, Subgraph, TensorType
from onert.ir.ops.arithmetic.window import Margins, Padding, Window
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.data_movement.slicing import Pad
from onert.ir.ops.reduction.pool import Pool2D, Pooling

from .fuse_activation import ends_with_activation

Pairs = tuple[tuple[int, int], ...]
"""The number of elements before and after, for each dimension."""

Filtering = Conv2D | DepthwiseConv2D | Conv3D


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def fuse_padding(subgraph: Subgraph) -> Subgraph:
    """Let a convolution or a pool read the input of the pad before it, and apply the margins itself.

    The results are the same. A convolution has margins of zeros: SAME padding if that has as many outputs and as many
    zeros in front (as with the margins that Keras adds before a convolution of stride 2), otherwise explicit margins.
    Max pooling ignores margins of the lowest number, and margins of zeros if no element is negative; average pooling
    counts margins of zeros. An unused pad is left to `remove_dead`.

        a = Pad(x, [[0, 0], [0, 1], [0, 1], [0, 0]]); y = Conv2D(a, w) VALID, stride 2   -->   y = Conv2D(x, w) SAME
        a = Pad(x, [[0, 0], [1, 0], [2, 1], [0, 0]]); y = Conv2D(a, w) VALID
                                                                       -->   y = Conv2D(x, w) Margins ((1, 0), (2, 1))
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        op = operation.op
        if not isinstance(op, Filtering | Pool2D) or op.padding is Padding.SAME:
            continue
        before = definer(subgraph, operation.inputs[0])
        pairs = None if before is None else _pairs(subgraph, before)
        if before is None or pairs is None:
            continue
        sides = _sides(op, pairs)
        fits = _pools if isinstance(op, Pool2D) else _convolves
        found = None if sides is None else fits(subgraph, operation, before, sides)
        if found is not None:
            edit.replace(at, evolve(operation, op=found, inputs=(before.used[0], *operation.inputs[1:])))
    return edit.done()


def _with(op: Any, **attributes: object) -> Op:
    changed: Op = evolve(op, **attributes)
    return changed


def _pairs(subgraph: Subgraph, operation: Operation) -> Pairs | None:
    """The margins of a pad that keeps the quantisation; None for any other operation, or if they are unknown."""
    if not isinstance(operation.op, Pad):
        return None
    types = subgraph.types(operation)
    x, paddings = types.input(0), types.input(1)
    if paddings.value is None or x.quantization != types.output.quantization:
        return None
    return tuple((int(a), int(b)) for a, b in paddings.value.reshape(-1, 2))


def _sides(op: Filtering | Pool2D, pairs: Pairs) -> Pairs | None:
    """The margins of the axes that windows slide over, including the operation's own; None if other axes have any."""
    count = 3 if isinstance(op, Conv3D) else 2
    if len(pairs) != count + 2 or pairs[0] != (0, 0) or pairs[-1] != (0, 0):
        return None
    margins = op.padding.sides if isinstance(op.padding, Margins) else ((0, 0),) * count
    return tuple((a + c, b + d) for (a, b), (c, d) in zip(pairs[1:-1], margins, strict=True))


def _value(subgraph: Subgraph, pad: Operation) -> float | None:
    """The stored value of the margins; None if it is unknown before the run."""
    types = subgraph.types(pad)
    x, value = types.input(0), types.inputs[2] if len(types.inputs) > 2 else None
    if value is None:
        return 0 if x.quantization is None else x.quantization.zero_points[0]
    return None if value.value is None else value.value.reshape(-1)[0].item()


def _zero(x: TensorType) -> int:
    return 0 if x.quantization is None else x.quantization.zero_points[0]


def _convolves(subgraph: Subgraph, operation: Operation, pad: Operation, sides: Pairs) -> Op | None:
    """The convolution with the pad's margins; None if it cannot apply them."""
    x, weight = subgraph.type(pad.used[0]), subgraph.types(operation).input(1)
    if x.dtype.is_float and not weight.dtype.is_float:
        return None  # such a convolution quantises its input including the margins
    if _value(subgraph, pad) != _zero(x):
        return None
    same = not isinstance(operation.op, Conv3D) and _same(operation.op, x, weight, sides)
    return _with(operation.op, padding=Padding.SAME if same else Margins(sides))


def _same(op: Any, x: TensorType, weight: TensorType, sides: Pairs) -> bool:
    """Whether SAME padding places the windows exactly as these margins do."""
    if not weight.is_static or not x.is_static:
        return False
    steps = ((op.stride_height, op.dilation_height), (op.stride_width, op.dilation_width))
    return all(
        _same_along_axis(x.shape[axis] or 0, weight.shape[axis] or 0, stride, dilation, margin)
        for axis, (stride, dilation), margin in zip((1, 2), steps, sides, strict=True)
    )


def _same_along_axis(inputs: int, size: int, stride: int, dilation: int, margin: tuple[int, int]) -> bool:
    valid, same = (Window(size, stride, dilation, padding) for padding in (Padding.VALID, Padding.SAME))
    try:
        outputs = valid.outputs(inputs + sum(margin))
    except RuleError:
        return False
    return outputs == same.outputs(inputs) and margin[0] == same.before(inputs)


def _pools(subgraph: Subgraph, operation: Operation, pad: Operation, sides: Pairs) -> Op | None:
    """The pool with the pad's margins; None if it cannot apply them."""
    op, source = operation.op, pad.used[0]
    assert isinstance(op, Pool2D)
    x, value = subgraph.type(source), _value(subgraph, pad)
    if value is None or any(max(s) >= n for s, n in zip(sides, (op.filter_height, op.filter_width), strict=True)):
        return None
    if op.kind is Pooling.MAX:
        lowest = -math.inf if x.dtype.is_float else x.dtype.limits[0]
        if value != lowest and not (value == _zero(x) and _not_negative(subgraph, source)):
            return None
        return _with(op, padding=Margins(sides))
    counts = op.counts_margins or not isinstance(op.padding, Margins)
    return _with(op, padding=Margins(sides), counts_margins=True) if value == 0 and counts else None


def _not_negative(subgraph: Subgraph, operand: int) -> bool:
    """Whether the tensor is not empty and has no element that represents a negative number, as after a RELU."""
    x = subgraph.type(operand)
    if not x.is_static or 0 in x.shape:
        return False
    if x.quantization is not None:
        return x.dtype.is_integer and x.quantization.per_tensor and x.quantization.zero_points[0] == x.dtype.limits[0]
    before = definer(subgraph, operand)
    if before is None or not x.dtype.is_float:
        return False
    last = as_clamp(before.op)
    if last is None and ends_with_activation(before.op):
        last = Bounds.of(before.op.attributes["activation"])
    return last is not None and last.low >= 0
