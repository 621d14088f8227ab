"""Margins of zeros that a convolution makes itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import Op, Operation, RuleError, Subgraph
from onert.ir.ops.arithmetic.window import Padding, Window
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.data_movement.slicing import Pad

Margins = tuple[tuple[int, int], ...]
"""Elements before and after, for each dimension."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def fuse_padding(subgraph: Subgraph) -> Subgraph:
    """Let a convolution with SAME padding read what a pad of zeros reads, where its windows come to lie alike.

    The results stay the same to the bit. It holds where SAME padding has as many
    outputs and as many zeros in front, as with the margins that Keras adds before a convolution of stride 2. A pad that
    no one reads any more is left to `remove_dead`.

        a = Pad(x, [[0, 0], [0, 1], [0, 1], [0, 0]]); y = Conv2D(a, w) VALID, stride 2   -->   y = Conv2D(x, w) SAME
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        op = operation.op
        if not isinstance(op, Conv2D | DepthwiseConv2D) or op.padding is not Padding.VALID:
            continue
        before = definer(subgraph, operation.inputs[0])
        margins = None if before is None else _zeros(subgraph, before)
        if before is not None and margins is not None and _alike(subgraph, operation, before.used[0], margins):
            edit.replace(at, evolve(operation, op=_same(op), inputs=(before.used[0], *operation.inputs[1:])))
    return edit.done()


def _same(op: Any) -> Op:
    changed: Op = evolve(op, padding=Padding.SAME)
    return changed


def _zeros(subgraph: Subgraph, operation: Operation) -> Margins | None:
    """The margins of a pad whose value stands for the number 0; None for another, or where they are unknown."""
    if not isinstance(operation.op, Pad):
        return None
    types = subgraph.types(operation)
    x, paddings = types.input(0), types.input(1)
    if paddings.value is None or not x.is_static or x.quantization != types.output.quantization:
        return None
    if len(types.inputs) > 2 and types.inputs[2] is not None:
        zero = 0 if x.quantization is None else x.quantization.zero_points[0]
        if types.inputs[2].value is None or np.any(types.inputs[2].value != zero):
            return None
    return tuple((int(a), int(b)) for a, b in paddings.value.reshape(-1, 2))


def _alike(subgraph: Subgraph, operation: Operation, source: int, margins: Margins) -> bool:
    """Whether the windows of SAME padding on the pad's operand meet what those on its result do."""
    x, weight = subgraph.type(source), subgraph.types(operation).input(1)
    if x.dtype.is_float and not weight.dtype.is_float:
        return False  # such a convolution quantises its input, margins and all
    if not weight.is_static or len(margins) != 4 or any(margins[axis] != (0, 0) for axis in (0, 3)):
        return False
    op: Any = operation.op
    steps = ((op.stride_height, op.dilation_height), (op.stride_width, op.dilation_width))
    return all(
        _axis_alike(x.shape[axis] or 0, weight.shape[axis] or 0, stride, dilation, margins[axis])
        for axis, (stride, dilation) in zip((1, 2), steps, strict=True)
    )


def _axis_alike(inputs: int, size: int, stride: int, dilation: int, margin: tuple[int, int]) -> bool:
    valid, same = (Window(size, stride, dilation, padding) for padding in (Padding.VALID, Padding.SAME))
    try:
        outputs = valid.outputs(inputs + sum(margin))
    except RuleError:
        return False
    return outputs == same.outputs(inputs) and margin[0] == same.before(inputs)
