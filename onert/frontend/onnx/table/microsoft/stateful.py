"""Layers with a state as input and output: causal convolution and linear attention."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from onert.frontend.onnx.building import ints
from onert.frontend.onnx.expression import Expression, operand, optional
from onert.frontend.onnx.node import Importer, Node, Results
from onert.frontend.onnx.table.elements.movement import split
from onert.frontend.onnx.table.layers.linear_attention import RULES, Tokens, attend, gates, scale_of
from onert.frontend.onnx.table.layers.linear_attention import TABLE as ATTENTION
from onert.frontend.onnx.table.layers.stateful import TABLE as LAYERS
from onert.frontend.onnx.table.layers.stateful import state_length
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind

_STATE_EXTENSIONS = {
    "input_channel_offset": 0,
    "input_channels": 0,
    "ndim": 1,
    "state_channels_last": -1,
    "state_length": 0,
    "state_update_capacity": 0,
    "state_window": 0,
}


def _with_usual(importer: Importer, usual: Mapping[str, int]) -> Importer:
    """Another operator, some attributes of which must have these values."""

    def build(node: Node) -> Results:
        for name, value in usual.items():
            given = node.integer(name, value)
            if given != value:
                raise ModelError(f"{name} is {given}, expected {value}: others are not supported")
        return importer(node)

    return build


def _gate(node: Node) -> tuple[int | None, ...]:
    """The logarithm of a decay and an update rate, from projections [..., heads]. Computed in float32."""
    x, bias, scale = (operand(node, at) for at in range(3))
    heads = x.shape[-1] if x.rank else None
    bias.expect("the bias", heads)
    scale.expect("the scale", heads)
    decay = scale * (x.cast(DType.FLOAT32) + bias).unary(UnaryKind.SOFTPLUS)
    if not node.has(3):
        return decay.cast(x.dtype).operand, None
    rate = operand(node, 3)
    rate.expect("the update rate's projection", *x.shape)
    return decay.cast(x.dtype).operand, rate.cast(DType.FLOAT32).unary(UnaryKind.LOGISTIC).cast(x.dtype).operand


@frozen(eq=False)
class Sequences:
    """Sequences of tokens one behind another: their number [1], which one each token belongs to, and where they start
    and end."""

    count: Expression
    owners: Expression
    starts: Expression
    ends: Expression

    @staticmethod
    def of(bounds: Expression, tokens: Expression) -> Sequences:
        """The sequences whose first tokens, and the end of the last one, are `bounds`."""
        if bounds.rank != 1 or bounds.shape[0] == 0:
            raise ModelError(f"the tensor of lengths is {bounds.type}, expected a vector of at least 1 element")
        bounds, count = bounds.cast(DType.INT64), bounds.size(0) - 1
        starts, ends = bounds.take(count.arange(), 0), bounds.take(count.arange() + 1, 0)
        owners = (tokens.arange().unsqueeze(1) >= ends).cast(DType.INT64).sum(1, keep=False)
        return Sequences(count, owners, starts, ends)


def _packed_convolution(node: Node) -> tuple[int, int]:
    """A depthwise convolution of sequences one behind another [tokens, channels], each with a state of earlier ones.

    Inputs: x, weight, where the sequences begin and the last one ends, a bias, the states [batch, channels, length].
    """
    x, weight, past = operand(node, 0), operand(node, 1), operand(node, 4)
    for at, what in ((6, "changes of weights"), (7, "factors of earlier tokens")):
        if node.has(at):
            raise ModelError(f"has {what} (input {at}), which is not supported")
    channels, k = weight.known_size(0, "the weight"), weight.known_size(2, "the weight")
    length = state_length(weight, node.integer("dilation", 1))
    x.expect("the input", None, channels)
    sequences = Sequences.of(operand(node, 2), x.size(0))
    past.expect("the state", sequences.starts.shape[0], channels, length)
    rows = x.concat([past.transpose(0, 2, 1).reshape_by(-1, channels)], 0)

    def row_of(place: Expression, owner: Expression, start: Expression) -> Expression:
        """The rows of a sequence's places; those before its first token are in its state."""
        earlier = x.size(0) + (owner + 1) * length + (place - start)
        return (place >= start).select(place, earlier)

    owners = sequences.owners.unsqueeze(1)
    back = x.of(ints(x.draft, [(k - 1 - at) * node.integer("dilation", 1) for at in range(k)]))
    taps = row_of(x.size(0).arange().unsqueeze(1) - back, owners, sequences.starts.take(owners, 0))
    wide = rows.take(taps, 0).cast(DType.FLOAT32) * weight.cast(DType.FLOAT32).reshape(channels, k).transpose(1, 0)
    y = wide.sum(1, keep=False)
    if node.has(3):
        operand(node, 3).expect("the bias", channels)
        y = y + operand(node, 3).cast(DType.FLOAT32)
    if node.choice("activation", ("none", "silu", "swish"), "none") != "none":
        y = y * y.unary(UnaryKind.LOGISTIC)
    places = sequences.ends.unsqueeze(1) - length + x.of(ints(x.draft, [length])).arange()
    last = row_of(places, sequences.count.arange().unsqueeze(1), sequences.starts.unsqueeze(1))
    return y.cast(x.dtype).operand, rows.take(last, 0).transpose(0, 2, 1).operand


def _delta_net(node: Node) -> tuple[int, int]:
    """Linear attention of tokens [tokens, heads, n] or [batch, tokens, heads, n], with a state [batch, heads, values,
    keys]. Inputs: query, key, value, lengths, decay, update rate, state, two parameters of the decay.

    Without key and value, the query also has their features. The lengths are where each sequence begins in the tokens
    of all of them, followed by the end of the last.
    """
    q, past, ends = operand(node, 0), optional(node, 6), optional(node, 3)
    if node.has(1):
        k, v = operand(node, 1), operand(node, 2)
    else:
        q, k, v = _unpacked(q, past)
    if q.rank not in (3, 4) or k.rank != q.rank or v.rank != q.rank:
        raise ModelError(f"has inputs {q.type}, {k.type} and {v.type}, expected 3 or 4 dimensions of each")
    if ends is not None and q.rank == 4:
        raise ModelError(f"has the lengths of sequences (input 3) of {q.type}, expected 3 dimensions")
    if q.rank == 3 and past is None and ends is None:
        raise ModelError("has neither lengths of sequences (input 3) nor a state (input 6), expected one of these")
    sizes = [
        x.known_size(at, what) for x, what in ((q, "the query"), (v, "the value")) for at in (x.rank - 2, x.rank - 1)
    ]
    heads, n, own, width = sizes
    k.expect("the key", *[None] * (k.rank - 2), heads, n)
    rule, dtype, flat = node.choice("update_rule", RULES, "gated_delta"), q.dtype, q.rank == 3
    for at, needed, what in zip((4, 5), RULES[rule], ("decay", "update rate"), strict=True):
        if node.has(at) and not needed:
            raise ModelError(f"update_rule is {rule!r} but the {what} (input {at}) is given")
    decay, rate = gates(node, rule, 4, 5)
    count = q.size(0) if past is None else past.size(0)
    if ends is not None:
        if ends.rank != 1 or ends.shape[0] in (0, 1):
            raise ModelError(f"the tensor of lengths is {ends.type}, expected a vector of at least 2 elements")
        count = q.of(ints(q.draft, [1]))

    def in_batches(x: Expression, what: str, *dims: int) -> Expression:
        x.expect(what, *[None] * (1 if flat else 2), *dims)
        wide = x.cast(DType.FLOAT32)
        return wide.reshape_by(count, -1, *dims) if flat else wide

    q, k = in_batches(q, "the query", heads, n), in_batches(k, "the key", heads, n)
    if node.flag("qk_l2_norm"):
        q, k = (x * ((x * x).sum(3) + _LEAST_NORM).unary(UnaryKind.RSQRT) for x in (q, k))
    if decay is not None:
        each = (n,) if decay.rank == (3 if flat else 4) else ()
        decay = _decay(node, in_batches(decay, "the decay", own, *each), own, n)
    if rate is not None:
        rate = in_batches(rate, "the update rate", own)
        activated = node.choice("beta_activation", ("none", "sigmoid"), "none") == "sigmoid"
        rate = rate.unary(UnaryKind.LOGISTIC) if activated else rate
    states = q.size(0) if ends is None else ends.size(0) - 1
    if past is None:
        past = q.filled(0, states, own, width, n)
    known = q.shape[0] if ends is None else ends.shape[0]
    past.expect("the state", known if known is None or ends is None else known - 1, own, width, n)
    tokens = Tokens(q, k, in_batches(v, "the value", own, width), decay, rate)
    y, last = attend(tokens, scale_of(node, n), past.transpose(0, 1, 3, 2), ends)
    y = y.reshape_by(-1, own, width) if flat else y
    return y.cast(dtype).operand, last.transpose(0, 1, 3, 2).operand


_LEAST_NORM = 1e-12


def _unpacked(x: Expression, past: Expression | None) -> list[Expression]:
    """Queries, keys and values that are features [tokens, features] of one tensor; the state says their sizes."""
    if past is None or past.rank != 4 or x.rank != 2:
        raise ModelError(f"has no key, and the query is {x.type}, expected [tokens, features] and a state (input 6)")
    own, width, n = (past.known_size(at, "the state") for at in (1, 2, 3))
    rest = x.known_size(1, "the query") - own * width
    heads = rest // max(2 * n, 1)
    if heads < 1 or heads * 2 * n != rest:
        raise ModelError(f"the query is {x.type}, expected {own * width} features and a multiple of {2 * n}")
    parts = split(x.draft, x.operand, [heads * n, heads * n, own * width], 1)
    sizes = ((heads, n), (heads, n), (own, width))
    return [x.of(part).reshape_by(x.size(0), *each) for part, each in zip(parts, sizes, strict=True)]


def _decay(node: Node, x: Expression, heads: int, n: int) -> Expression:
    """The logarithm of the decay [batch, tokens, heads, 1 or n], from its projection if an attribute says so."""
    kind = node.choice("gate_activation", ("none", "softplus", "qwen", "sigmoid", "kda"), "none")
    x = x if x.rank == 4 else x.unsqueeze(3)
    if kind == "none":
        return x
    if not node.has(7) or not node.has(8):
        raise ModelError(f"gate_activation is {kind!r} but its parameters (inputs 7 and 8) are absent")
    rate, bias = operand(node, 7), operand(node, 8)
    rate.expect("the logarithm of rates", heads)
    whole = bias.rank == 2 or bias.known_size(0, "the bias") != heads
    if whole and x.shape[3] != n:
        raise ModelError(f"the bias is {bias.type}, expected [{heads}]")
    bias.expect("the bias", *((heads, n) if bias.rank == 2 else (heads * n if whole else heads,)))
    x, rate = x + bias.reshape(heads, n if whole else 1), rate.unary(UnaryKind.EXP).unsqueeze(1)
    if kind in ("softplus", "qwen"):
        return -(rate * x.unary(UnaryKind.SOFTPLUS))
    return (rate * x).unary(UnaryKind.LOGISTIC) * node.number("gate_lower_bound", -5.0)


MICROSOFT: dict[str, Importer] = {
    "CausalConvWithState": _with_usual(LAYERS["CausalConvWithState"], _STATE_EXTENSIONS),
    "GatedDeltaNet": _with_usual(_delta_net, {"state_update_capacity": 0}),
    "LinearAttention": _with_usual(ATTENTION["LinearAttention"], {"state_window": 0}),
    "LinearAttentionGate": _gate,
    "VarlenCausalConvWithState": _with_usual(_packed_convolution, {"state_update_capacity": 0}),
}
