"""Mixtures of experts: two-layer networks, a few of which are selected for each token by a router."""

from __future__ import annotations

import math

import numpy as np

from onert.frontend.onnx.expression import Expression, operand, optional
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.layers.attention import softmax
from onert.ir import Array, DType, ModelError
from onert.ir.dtype import codes_of
from onert.ir.ops.data_movement.fill import TopK
from onert.ir.ops.data_movement.gather import OneHot
from onert.ir.ops.elementwise.unary import UnaryKind

_INTERLEAVED, _BEHIND = 1, 2
"""The layout of the two halves of a fused SwiGLU."""
_FUNCTIONS = {"relu": UnaryKind.RELU, "gelu": UnaryKind.GELU_TANH}


def _routing_weights(node: Node, scores: Expression, mixing: Expression | None) -> Expression:
    """The weight of each expert for each token, `[tokens, experts]`: 0 for all but the best `k`.

    The weights are the scores' softmax over all experts or over the best, or come from a separate input.
    """
    count = node.integer("k", 1)
    experts = scores.known_size(1, "the router's scores")
    if not 1 <= count <= experts:
        raise ModelError(f"k is {count}, expected 1 to {experts}")
    best, rows = _best(scores, count)
    chosen = rows.sum(1, keep=False)
    if mixing is not None:
        taken = mixing * chosen
        return taken / taken.sum(1) if node.flag("normalize_routing_weights") else taken
    if node.flag("normalize_routing_weights"):
        return (rows * softmax(best).unsqueeze(2)).sum(1, keep=False)
    return softmax(scores) * chosen


def _best(x: Expression, count: int) -> tuple[Expression, Expression]:
    """The greatest elements of each row, and for each of these a row that is 1 at its place and 0 elsewhere."""
    d, width = x.draft, x.known_size(x.rank - 1, "the rows")
    best, places = d.add_many(TopK(DType.INT64), x.operand, d.constant(count, DType.INT32))
    one, zero = d.constant(1, x.dtype), d.constant(0, x.dtype)
    return x.of(best), x.of(d.add(OneHot(-1), places, d.constant(width, DType.INT32), one, zero))


def _mix(
    node: Node,
    scores: Expression,
    mixing: Expression | None,
    weights: tuple[Expression | None, ...],
    biases: tuple[Expression | None, ...],
) -> int:
    """The weighted sum of all experts' results. Layer weights are `[experts, outputs, inputs]`."""
    if node.flag("use_sparse_mixer"):
        raise ModelError("has attribute use_sparse_mixer, which is not supported")
    x = operand(node, 0)
    first, second, third = weights
    if first is None or second is None:
        raise ModelError("has no weights for one of its first two layers")
    rows = x if x.rank == 2 else x.reshape(None, x.known_size(2, "the input"))
    hidden = _layer(rows.unsqueeze(0), first, biases[0])
    gate = None if third is None else _layer(rows.unsqueeze(0), third, biases[2])
    answers = _layer(_activated(node, hidden, gate), second, biases[1])
    shares = _routing_weights(node, scores, mixing).transpose(1, 0).unsqueeze(2)
    y = (answers * shares.cast(x.dtype)).sum(0, keep=False)
    if x.rank == 3:
        y = y.reshape_by(x.size(0), x.size(1), x.known_size(2, "the input"))
    return y.operand


def _layer(x: Expression, weight: Expression, bias: Expression | None) -> Expression:
    y = x @ weight.transpose(0, 2, 1)
    return y if bias is None else y + bias.unsqueeze(1)


def _activated(node: Node, x: Expression, gate: Expression | None) -> Expression:
    name = node.text("activation_type", "relu")
    if name == "swiglu":
        return _gated(node, x, gate)
    if name == "silu":
        y = x * x.unary(UnaryKind.LOGISTIC)
    elif name in _FUNCTIONS:
        y = x.unary(_FUNCTIONS[name])
    elif name == "identity":
        y = x
    else:
        raise ModelError(f"activation_type is {name!r}, expected relu, gelu, silu, swiglu or identity")
    return y if gate is None else y * gate


def _gated(node: Node, x: Expression, line: Expression | None) -> Expression:
    """`g * sigmoid(alpha * g) * (l + beta)`, with g clipped from above and l from both sides."""
    fusion = node.integer("swiglu_fusion")
    if line is None:
        width = x.known_size(2, "the first layer")
        if fusion not in (_INTERLEAVED, _BEHIND) or width % 2:
            raise ModelError(f"swiglu_fusion is {fusion} for {width} features without a third layer")
        half = width // 2
        places = (
            [range(0, width, 2), range(1, width, 2)] if fusion == _INTERLEAVED else [range(half), range(half, width)]
        )
        x, line = (x.take(list(each), 2) for each in places)
    limit = node.number("swiglu_limit", math.inf)
    if limit < math.inf:
        x, line = x.at_most(limit), line.at_most(limit).at_least(-limit)
    alpha, beta = node.number("activation_alpha", 1.0), node.number("activation_beta", 0.0)
    return x * (x * alpha).unary(UnaryKind.LOGISTIC) * (line + beta)


def _experts(node: Node) -> int:
    """Inputs: tokens, scores, then weights and biases for each of up to three layers."""
    given = [optional(node, at) for at in range(1, 8)]
    scores = given[0]
    if scores is None:
        raise ModelError("input 1 is absent, expected the router's scores")
    return _mix(node, scores, None, (given[1], given[3], given[5]), (given[2], given[4], given[6]))


def _quantized(node: Node) -> int:
    """Inputs: tokens, scores; weights, scales and biases of up to three layers; zero points, router weights."""
    if node.text("quant_type", "int") != "int" or node.integer("weights_prepacked", 0) > 0:
        raise ModelError(
            f"quant_type is {node.text('quant_type', 'int')!r}, or weights are packed, which is not supported"
        )
    scores = operand(node, 1)
    weights = tuple(_unpacked(node, f"fc{at + 1}", 2 + 3 * at, 11 + at) for at in range(3))
    biases = tuple(optional(node, 4 + 3 * at) for at in range(3))
    return _mix(node, scores, optional(node, 14), weights, biases)


def _unpacked(node: Node, layer: str, at: int, zeros: int) -> Expression | None:
    """The weights of a layer as real numbers, `(code - zero) * scale`, with scales per output or block of inputs."""
    if not node.has(at):
        return None
    bits = node.integer(f"{layer}_expert_weight_bits") or node.integer("expert_weight_bits", 4)
    if bits not in (2, 4, 8):
        raise ModelError(f"weights of {layer} have {bits} bits, expected 2, 4 or 8")
    packed, scale = node.constant(at, f"the weights of {layer}"), node.constant(at + 1, f"the scales of {layer}")
    if packed.ndim != 3 or packed.dtype != np.uint8 or scale.ndim not in (2, 3) or scale.shape[:2] != packed.shape[:2]:
        raise ModelError(f"weights of {layer} are {node.type(at)} with scales {node.type(at + 1)}")
    node.draft.memory.spend(packed.size * (8 // bits) * 4, "unpacking weights")
    values = codes_of(packed, bits).astype(np.float32)
    scale = scale.reshape(*scale.shape[:2], -1).astype(np.float32)
    blocks = scale.shape[2]
    if not blocks or values.shape[2] % blocks:
        raise ModelError(f"weights of {layer} are {node.type(at)} with scales {node.type(at + 1)}")
    zero: Array = np.full((), 1 << (bits - 1), np.float32)
    if node.has(zeros):
        given = node.constant(zeros, f"the zero points of {layer}")
        if given.ndim not in (2, 3) or given.shape[0] != scale.shape[0]:
            raise ModelError(f"zero points of {layer} are {node.type(zeros)} with scales {node.type(at + 1)}")
        line = codes_of(given, bits).reshape(
            scale.shape[0], -1 if given.ndim == 2 else given.shape[1], -1 if given.ndim == 3 else 1
        )
        zero = line[:, : scale.shape[1], :blocks].astype(np.float32)
        if zero.shape != scale.shape:
            raise ModelError(f"zero points of {layer} are {node.type(zeros)} with scales {node.type(at + 1)}")
        zero = np.repeat(zero, values.shape[2] // blocks, 2)
    real = (values - zero) * np.repeat(scale, values.shape[2] // blocks, 2)
    x = operand(node, 0)
    return x.of(node.draft.constant(real.astype(x.dtype.numpy), x.dtype))


def _router(node: Node) -> tuple[int | None, ...]:
    """The logarithms of the shares of the best experts of the best groups, another number for all others; or the shares
    of all experts with and without their bias, of tokens that may have yet to be projected.

    Inputs: the router's scores or tokens, a bias of each expert, the weights of the projection.
    """
    x, bias = operand(node, 0), operand(node, 1)
    full = node.uses_output(1) or node.uses_output(2)
    if full and node.uses_output(0):
        raise ModelError("returns the shares of the best experts (output 0) and of all, expected one of these")
    rows = x if x.rank == 2 else x.reshape(None, x.known_size(x.rank - 1, "the input"))
    scores, weights = rows.cast(DType.FLOAT32), optional(node, 2)
    if weights is not None:
        if not full:
            raise ModelError("has the weights of a projection (input 2), which only the shares of all experts may have")
        weights.expect("the tensor of weights", None, scores.shape[1])
        scores = scores @ weights.cast(DType.FLOAT32).transpose(1, 0)
    experts = scores.known_size(1, "the router's scores")
    bias.expect("the bias", experts)
    groups, kept, count = node.integer("n_group", 1), node.integer("topk_group", 1), node.integer("top_k")
    if groups < 1 or experts % groups or not 1 <= kept <= groups or not 1 <= count <= experts:
        raise ModelError(f"selects {count} of {experts} experts in {kept} of {groups} groups, which is impossible")
    shares = scores.unary(UnaryKind.LOGISTIC)
    biased = shares + bias
    if full:
        if groups != 1:
            raise ModelError(f"returns the shares of all experts in {groups} groups, expected 1")
        return None, biased.operand, shares.operand
    if kept < groups:
        most = node.integer("group_topk", 2)
        if most < 1:
            raise ModelError(f"group_topk is {most}, expected at least 1")
        parts = biased.reshape_by(biased.size(0), groups, experts // groups)
        sums = _best(parts, min(most, experts // groups))[0].sum(2, keep=False)
        open_ = _best(sums, kept)[1].sum(1, keep=False).unsqueeze(2) > 0
        biased = open_.select(parts, -math.inf).reshape_by(biased.size(0), experts)
    chosen = _best(biased, min(count, kept * (experts // groups)))[1].sum(1, keep=False) > 0
    logarithms = shares.at_least(_LEAST_SHARE).unary(UnaryKind.LOG)
    y = chosen.select(logarithms, node.number("router_sentinel", -1e4))
    return y.cast(x.dtype).operand, None, None


_LEAST_SHARE = 1e-20


MICROSOFT: dict[str, Importer] = {"MoE": _experts, "MoEGroupRouter": _router, "QMoE": _quantized}
