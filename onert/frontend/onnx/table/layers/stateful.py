"""Layers with a state as input and output: causal convolution, key-value caches."""

from __future__ import annotations

from math import prod

import numpy as np

from onert.frontend.onnx.building import concat as concat_vectors
from onert.frontend.onnx.building import ints
from onert.frontend.onnx.expression import Expression, operand, optional
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.movement import sliced
from onert.ir import DType, ModelError
from onert.ir.ops.arithmetic.window import MAX_STEP
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.data_movement.element_indices import ScatterElements
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.shape import normalize_axis


def _causal_convolution(node: Node) -> tuple[int, int]:
    """A depthwise convolution over the state followed by the input, [batch, channels, places] or with channels last.

    Source: ONNX CausalConvWithState, opset 27; com.microsoft's has a dilation, and a layout [batch, places, ...] in
    which several axes may be the channels.
    """
    d, x, weight = node.draft, operand(node, 0), operand(node, 1)
    last, dilation = node.flag("channels_last"), node.integer("dilation", 1)
    axis = 1 if last else 2
    if (x.rank < 3 if last else x.rank != 3) or weight.rank != 3:
        raise ModelError(f"has inputs {x.type} and {weight.type}, expected 3 dimensions of each")
    channels, k = weight.known_size(0, "the weight"), weight.known_size(2, "the weight")
    length = state_length(weight, dilation)
    given = x.shape[2:] if last else x.shape[1:2]
    if None not in given and prod(size or 0 for size in given) != channels:
        raise ModelError(f"the input is {x.type}, expected {channels} channels")
    sizes = [x.size(at) if size is None else size for at, size in enumerate(x.shape)]
    sizes[axis] = length
    past = optional(node, 3)
    if past is None:
        past = x.filled(0, *sizes)
    past.expect("the state", *(None if isinstance(size, Expression) else size for size in sizes))
    whole = past.concat([x], axis)
    wide = DType.FLOAT64 if x.dtype is DType.FLOAT64 else DType.FLOAT32
    rows = whole if last else whole.transpose(0, 2, 1)
    rows = rows.cast(wide).reshape_by(rows.size(0), 1, rows.size(1), channels)
    filters = weight.cast(wide).reshape(channels, k).transpose(1, 0).reshape(1, 1, k, channels)
    bias = optional(node, 2)
    if bias is not None:
        bias.expect("the bias", channels)
    bias = x.of(d.constant(np.zeros(channels, wide.numpy), wide)) if bias is None else bias.cast(wide)
    y = x.of(d.add(DepthwiseConv2D(dilation_width=dilation), rows.operand, filters.operand, bias.operand))
    if node.choice("activation", ("none", "silu", "swish"), "none") != "none":
        y = y * y.unary(UnaryKind.LOGISTIC)
    y = y.cast(x.dtype)
    if last:
        y = y.reshape_by(*(x.size(at) if size is None else size for at, size in enumerate(x.shape)))
    else:
        y = y.squeeze(1).transpose(0, 2, 1)
    start = whole.size(axis) - length
    return y.operand, sliced(d, whole.operand, (axis,), start.operand, ints(d, [MAX_STEP]), None)


def state_length(weight: Expression, dilation: int) -> int:
    """How many places before the first one a causal convolution reads, by weights [channels, 1, window]."""
    channels, k = weight.known_size(0, "the weight"), weight.known_size(2, "the weight")
    weight.expect("the weight", channels, 1, k)
    if not channels or not k:
        raise ModelError(f"the weight is {weight.type}, expected at least one element")
    if dilation < 1 or (k - 1) * dilation > MAX_STEP:
        raise ModelError(f"dilation is {dilation} for {k} weights, expected at least 1, and at most {MAX_STEP} places")
    return (k - 1) * dilation


def _tensor_scatter(node: Node) -> int:
    """Write new entries along an axis of each batch's cache, from an index per batch on.

    Source: ONNX TensorScatter, opset 24.
    """
    d = node.draft
    cache, update = (operand(node, at) for at in (0, 1))
    axis = normalize_axis(node.integer("axis", -2), cache.rank)
    if axis == 0 or update.rank != cache.rank:
        raise ModelError(
            f"has inputs {cache.type} and {update.type} along axis {axis}, expected equal ranks and another axis"
        )
    mode = node.choice("mode", ("linear", "circular"), "linear")
    places = update.size(axis).arange().reshape(*(None if a == axis else 1 for a in range(update.rank)))
    if node.has(2):
        start = operand(node, 2).cast(DType.INT64)
        places = places + start.reshape(*(None if a == 0 else 1 for a in range(update.rank)))
    if mode == "circular":
        places = places.binary(BinaryKind.FLOOR_MOD, cache.size(axis).scalar())
    sizes = cache.of(concat_vectors(d, [update.size(a).operand for a in range(update.rank)]))
    return d.add(ScatterElements(axis), cache.operand, places.broadcast(sizes).operand, update.operand)


TABLE: dict[str, Importer] = {
    "CausalConvWithState": _causal_convolution,
    "TensorScatter": _tensor_scatter,
}
