"""Layers with a state as input and output: linear attention, causal convolution, key-value caches."""

from __future__ import annotations

import numpy as np

from onert.frontend.onnx.building import concat as concat_vectors
from onert.frontend.onnx.draft import Draft, capture
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import EnclosingGraph, Importer, Node
from onert.frontend.onnx.table.control import add_loop
from onert.ir import DType, ModelError
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.data_movement.element_indices import ScatterElements
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.shape import normalize_axis

from .attention import merge_heads, repeat_heads, split_heads, usual_scale

_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


def _linear_attention(node: Node) -> tuple[int, int]:
    """A loop over the tokens: the state decays, adds the product of key and value, and is read by the query.

    Source: ONNX LinearAttention, opset 27. Computed in float32.
    """
    d = node.draft
    rule = node.choice("update_rule", _RULES, "gated_delta")
    gated, corrected = _RULES[rule]
    heads, own = node.integer("q_num_heads"), node.integer("kv_num_heads")
    given = [operand(node, at) for at in range(3)]
    dtype = given[0].dtype
    q, k, v = (
        split_heads(x.cast(DType.FLOAT32), count, name)
        for x, count, name in zip(given, (heads, own, own), ("the query", "the key", "the value"), strict=True)
    )
    n, width = k.known_size(3, "the key"), v.known_size(3, "the value")
    scale = node.number("scale") or usual_scale(q)
    scanned = [q * scale, k, v]
    if gated:
        decay = operand(node, 4).cast(DType.FLOAT32)
        scanned.append(split_heads(decay, own, "decay").unary(UnaryKind.EXP))
    if corrected:
        beta = operand(node, 5).cast(DType.FLOAT32)
        scanned.append(split_heads(beta, beta.known_size(2, "beta"), "beta"))
    steps = [x.transpose(2, 0, 1, 3) for x in scanned]
    if node.has(3):
        state = operand(node, 3)
        kind, first = state.dtype, state.cast(DType.FLOAT32)
    else:
        sizes = [d.constant(np.array([s], np.int64)) for s in (own, n, width)]
        shape = concat_vectors(d, [q.size(0).operand, *sizes])
        kind, first = dtype, q.of(d.add(Fill(), shape, d.constant(0.0, DType.FLOAT32)))

    def each(inner: Draft, scope: EnclosingGraph, at: int, go: int, now: list[int]) -> tuple[int, list[int], list[int]]:
        index = Expression(inner, at)
        query, key, value, *more = (Expression(inner, capture(d, inner, step.operand)).take(index, 0) for step in steps)
        s = Expression(inner, now[0])
        s = s * more[0].unsqueeze(3) if gated else s
        kept = (key.unsqueeze(2) @ s).squeeze(2) if corrected else None
        value = value if kept is None else (value - kept) * more[-1]
        s = s + key.unsqueeze(3) @ value.unsqueeze(2)
        y = (query.unsqueeze(2) @ repeat_heads(s, heads)).squeeze(2)
        return go, [s.operand], [y.operand]

    begin = d.constant(np.array(True), DType.BOOL)
    (last,), (list_,) = add_loop(node, q.size(2).scalar().operand, begin, [first.operand], each)
    y = q.of(list_).transpose(1, 2, 0, 3)
    return merge_heads(y).cast(dtype).operand, q.of(last).cast(kind).operand


def _causal_convolution(node: Node) -> tuple[int, int]:
    """A depthwise convolution over the state followed by the input.

    Source: ONNX CausalConvWithState, opset 27.
    """
    d = node.draft
    x, weight = (operand(node, at) for at in (0, 1))
    if x.rank != 3 or weight.rank != 3:
        raise ModelError(f"has inputs {x.type} and {weight.type}, expected 3 dimensions of each")
    channels, k = weight.known_size(0, "the weight"), weight.known_size(2, "the weight")
    if not channels or not k:
        raise ModelError(f"the weight is {weight.type}, expected at least one element")
    if node.has(3):
        past = operand(node, 3)
    else:
        sizes = d.constant(np.array([channels, k - 1], np.int64))
        past = x.of(d.add(Fill(), concat_vectors(d, [x.size(0).operand, sizes]), x.like(0).operand))
    whole = past.concat([x], 2)
    wide = DType.FLOAT64 if x.dtype is DType.FLOAT64 else DType.FLOAT32
    rows = whole.cast(wide).transpose(0, 2, 1).unsqueeze(1)
    filters = weight.cast(wide).reshape(channels, k).transpose(1, 0).reshape(1, 1, k, channels)
    bias = operand(node, 2).cast(wide) if node.has(2) else None
    bias = x.of(d.constant(np.zeros(channels, wide.numpy), wide)) if bias is None else bias
    y = x.of(d.add(DepthwiseConv2D(), rows.operand, filters.operand, bias.operand)).squeeze(1).transpose(0, 2, 1)
    y = y.cast(x.dtype)
    activation = node.text("activation", "none")
    if activation in ("silu", "swish"):
        real = y.cast(wide)
        y = (real * real.unary(UnaryKind.LOGISTIC)).cast(x.dtype)
    elif activation != "none":
        raise ModelError(f"activation is {activation!r}, expected none, silu or swish")
    places = (whole.size(2) - (k - 1)) + x.of(d.constant(np.arange(k - 1, dtype=np.int64)))
    return y.operand, whole.take(places, 2).operand


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
    "LinearAttention": _linear_attention,
    "TensorScatter": _tensor_scatter,
}
