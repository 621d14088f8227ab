"""Attention: scores of queries and keys, their softmax, and weighted sums of values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.frontend.onnx.building import convert
from onert.frontend.onnx.expression import Expression, operand, optional
from onert.frontend.onnx.messages import Graph
from onert.frontend.onnx.node import Importer, Node, Value
from onert.ir import DType, ModelError
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.value import ByIdentity

from .rotary import rotary_embedding

_NOTHING = -math.inf


def split_heads(x: Expression, heads: int, what: str) -> Expression:
    """Split heads: [batch, tokens, heads * n] to [batch, heads, tokens, n]."""
    width = x.shape[2] if x.rank == 3 else x.known_size(2, what)
    if heads < 1 or (width or 0) % heads:
        raise ModelError(f"{what} is {x.type}, expected a multiple of {heads} features")
    each = -1 if width is None else width // heads
    return x.reshape_by(x.size(0), x.size(1), heads, each).transpose(0, 2, 1, 3)


def merge_heads(x: Expression) -> Expression:
    """Merge heads: [batch, heads, tokens, n] to [batch, tokens, heads * n]."""
    heads, each = x.shape[1], x.shape[3]
    turned = x.transpose(0, 2, 1, 3)
    return turned.reshape_by(turned.size(0), turned.size(1), -1 if heads is None or each is None else heads * each)


def repeat_heads(x: Expression, heads: int | Expression) -> Expression:
    """Repeat each key or value head for the consecutive query heads that share it."""
    own = x.shape[1]
    if own is None or isinstance(heads, Expression):
        count = x.of(x.draft.constant([heads], DType.INT64)) if isinstance(heads, int) else heads
        return x.take(count.arange() / (count / x.size(1)), 1)
    if own == heads:
        return x
    if own < 1 or heads % own:
        raise ModelError(f"{heads} query heads are not a multiple of {own} key and value heads")
    return x.take([at // (heads // own) for at in range(heads)], 1)


@frozen(eq=False)
class HeadGroups(ByIdentity):
    """Grouped-query attention: `heads` query heads share `kv_heads` key and value heads, which are not repeated.

    [batch, heads, tokens, n] is computed as [batch, kv_heads, heads / kv_heads, tokens, n], or for one token as
    [batch, kv_heads, heads / kv_heads, n], so that keys are read once for all query heads that share them. If it is
    unknown whether a bias is the same for all heads, or how many heads there are, keys and values are repeated.
    """

    heads: int
    kv_heads: int
    one_token: bool
    counted: Expression | None = None
    """The number of query heads if it is unknown; then there are no groups."""

    @staticmethod
    def of(q: Expression, k: Expression, bias: Expression | None) -> HeadGroups:
        """The groups of queries and keys [batch, heads, tokens, n]. Raises ModelError if the heads do not divide."""
        heads, own = q.shape[1], k.shape[1]
        if heads is None or own is None:
            return HeadGroups(0, 0, False, q.size(1))
        if own < 1 or heads % own:
            raise ModelError(f"{heads} query heads are not a multiple of {own} key and value heads")
        unclear = bias is not None and bias.rank >= 3 and bias.shape[-3] is None
        return HeadGroups(heads, heads if unclear else own, q.shape[2] == 1)

    def split(self, x: Expression) -> Expression:
        """Reshape a tensor per query head to groups; also one with a single head, which is shared by all."""
        if self.heads == self.kv_heads or x.rank < 3 or (self.one_token and x.shape[-3] == 1):
            return x
        if x.shape[-3] == 1:
            return x.unsqueeze(x.rank - 3)
        first, each = ([x.size(0)] if x.rank > 3 else []), self.heads // self.kv_heads
        return x.reshape_by(
            *first, self.kv_heads, each, *(() if self.one_token else (x.size(x.rank - 2),)), x.size(x.rank - 1)
        )

    def expand_keys(self, x: Expression) -> Expression:
        """Keys or values [batch, kv_heads, keys, n] shaped to match grouped queries."""
        if self.heads == self.kv_heads:
            return repeat_heads(x, self.counted or self.heads)
        return x if self.one_token else x.unsqueeze(2)

    def merge(self, x: Expression) -> Expression:
        """Reshape a grouped tensor to [batch, heads, tokens, n]."""
        if self.heads == self.kv_heads:
            return x
        tokens = 1 if self.one_token else x.size(3)
        return x.reshape_by(x.size(0), self.heads, tokens, x.size(x.rank - 1))


def scores(q: Expression, k: Expression, scale: float | Expression) -> Expression:
    """`q · kᵀ * scale`. 16-bit floats may overflow, so both sides are multiplied by the scale's square root instead."""
    known = None if isinstance(scale, Expression) else scale
    if q.dtype not in (DType.FLOAT16, DType.BFLOAT16) or (known is not None and (known <= 0 or known == 1)):
        return q.of(q.draft.add(BatchMatMul(adjoint_y=True), q.operand, k.operand)) * scale
    root = scale.unary(UnaryKind.SQRT) if isinstance(scale, Expression) else math.sqrt(scale)
    return q.of(q.draft.add(BatchMatMul(adjoint_y=True), (q * root).operand, (k * root).operand))


def usual_scale(q: Expression) -> float | Expression:
    """The default scale of scores, 1 / sqrt(n) for queries [.., .., .., n]."""
    width = q.shape[3]
    if width is None:
        return q.size(3).cast(q.dtype).unary(UnaryKind.RSQRT)
    if not width:
        raise ModelError(f"the query is {q.type}, expected features")
    return 1 / math.sqrt(width)


def softmax(x: Expression) -> Expression:
    return x.of(x.draft.add(Softmax(), x.operand))


def _attention(node: Node) -> tuple[int | None, ...]:
    """Source: ONNX Attention, opsets 23 to 25."""
    q, k, v = (operand(node, at) for at in range(3))
    flat = q.rank == 3
    if flat:
        q = split_heads(q, node.integer("q_num_heads"), "the query")
        k = split_heads(k, node.integer("kv_num_heads"), "the key")
        v = split_heads(v, node.integer("kv_num_heads"), "the value")
    if q.rank != 4 or k.rank != 4 or v.rank != 4:
        raise ModelError(f"has inputs {q.type}, {k.type} and {v.type}, expected 3 or 4 dimensions of each")
    past = optional(node, 4), optional(node, 5)
    if past[0] is not None and past[1] is not None:
        k, v = past[0].concat([k], 2), past[1].concat([v], 2)
    scale = node.number("scale") if node.has_attribute("scale") else usual_scale(q)
    bias = _bias(node, q, k, past[0])
    groups = HeadGroups.of(q, k, bias)
    raw = scores(groups.split(q), groups.expand_keys(k), scale)
    cap = node.number("softcap")
    capped = raw if cap == 0 else (raw / cap).unary(UnaryKind.TANH) * cap
    bias = None if bias is None else groups.split(bias)
    biased = capped if bias is None else capped + bias
    precise = node.element_type("softmax_precision", q.dtype) if node.integer("softmax_precision") else q.dtype
    weights = softmax(biased.cast(precise))
    if bias is not None and not _always_attends(node):
        empty = bias.reduce(Reduction.MAX, [bias.rank - 1]).equals(_NOTHING)
        weights = empty.select(weights.like(0), weights)
    weights = weights.cast(q.dtype)
    y = groups.merge(weights @ groups.expand_keys(v).cast(q.dtype))
    shown = {0: raw, 1: capped, 2: biased, 3: weights}.get(node.integer("qk_matmul_output_mode"))
    if shown is None:
        raise ModelError(f"qk_matmul_output_mode is {node.integer('qk_matmul_output_mode')}, expected 0 to 3")
    kept = groups.merge(shown).operand if node.uses_output(3) else None
    return (merge_heads(y) if flat else y).operand, k.operand, v.operand, kept


def _bias(node: Node, q: Expression, k: Expression, past: Expression | None) -> Expression | None:
    """The tensor added to the scores: the mask, and minus infinity where a query may not attend to a key."""
    mask, lengths = optional(node, 3), optional(node, 6)
    if mask is not None:
        mask = _extend_mask(mask, k)
        if mask.dtype is DType.BOOL:
            mask = mask.select(q.like(0), _NOTHING)
        mask = mask.cast(q.dtype)
    columns = k.size(2).arange()
    bounds = []
    causal = node.flag("is_causal")
    left, right = node.integer("left_window_size", -1), node.integer("right_window_size", -1)
    if causal or left >= 0 or right >= 0:
        rows = q.size(2).arange().unsqueeze(1)
        if past is not None:
            rows = rows + past.size(2)
        elif lengths is not None:
            rows = rows + (lengths.cast(DType.INT64) - q.size(2)).reshape(None, 1, 1, 1)
        bounds += [columns <= rows] if causal else []
        bounds += [columns <= rows + right] if right >= 0 else []
        bounds += [columns >= rows - left] if left >= 0 else []
    if lengths is not None:
        bounds.append(columns < lengths.cast(DType.INT64).reshape(None, 1, 1, 1))
    if not bounds:
        return mask
    seen = bounds[0]
    for bound in bounds[1:]:
        seen = seen & bound
    hidden = seen.select(q.like(0), _NOTHING)
    return hidden if mask is None else mask + hidden


def _always_attends(node: Node) -> bool:
    """Whether every query is known to attend to a key: the first one, or one that a constant mask allows."""
    bounded = node.has(6) or node.integer("left_window_size", -1) >= 0
    if not node.has(3) or bounded:
        return not bounded
    mask = node.value(3)
    if mask is None or not mask.ndim or node.flag("is_causal") or node.integer("right_window_size", -1) >= 0:
        return False
    return bool((mask if mask.dtype == bool else mask > _NOTHING).any(-1).all())


def _extend_mask(mask: Expression, k: Expression) -> Expression:
    """Extend a mask with fewer columns than keys; the missing ones are hidden."""
    if not mask.rank:
        raise ModelError(f"the mask is {mask.type}, expected at least 1 dimension")
    have, wanted = mask.shape[-1], k.shape[2]
    if have is None or wanted is None or have in (wanted, 1):
        return mask
    if have > wanted:
        raise ModelError(f"the mask is {mask.type}, expected at most {wanted} keys")
    rest = (*(s if s is not None else 1 for s in mask.shape[:-1]), wanted - have)
    if None in mask.shape:
        raise ModelError(f"the mask is {mask.type}, expected a known shape because it has fewer columns than keys")
    nothing: float = 0.0 if mask.dtype is DType.BOOL else _NOTHING
    more = mask.draft.constant(np.full(rest, nothing).astype(mask.dtype.numpy), mask.dtype)
    return mask.concat([mask.of(more)], mask.rank - 1)


def _flex_attention(node: Node) -> int:
    """Attention with graphs that modify scores and weights. Source: ai.onnx.preview FlexAttention 1."""
    d = node.draft
    q, k, v = (operand(node, at) for at in range(3))
    if q.rank != 4 or k.rank != 4 or v.rank != 4:
        raise ModelError(f"has inputs {q.type}, {k.type} and {v.type}, expected 4 dimensions of each")
    heads = q.known_size(1, "the query")
    scale = node.number("scale") if node.has_attribute("scale") else usual_scale(q)
    wide = DType.FLOAT64 if q.dtype is DType.FLOAT64 else DType.FLOAT32
    precise = node.element_type("softmax_precision", wide)
    found = scores(q, repeat_heads(k, heads), scale).cast(precise)
    weights = _apply_modifier(node, "prob_mod", softmax(_apply_modifier(node, "score_mod", found)))
    dtype = v.dtype
    y = weights.cast(dtype) @ repeat_heads(v, heads)
    return convert(d, y.operand, q.dtype)


def _apply_modifier(node: Node, name: str, x: Expression) -> Expression:
    """Apply a graph attribute to a tensor, if the node has it."""
    if not node.has_attribute(name):
        return x
    graph: Graph = node.graph(name)
    results: Sequence[Value] = node.enclosing.inline(graph, (x.operand,))
    if len(results) != 1 or not isinstance(results[0], int):
        raise ModelError(f"graph {name} has {len(results)} results, expected one tensor")
    return x.of(results[0])


def _rotary(node: Node) -> int:
    """Source: ONNX RotaryEmbedding, opset 23."""
    _d, x = node.draft, operand(node, 0)
    flat = x.rank == 3
    if flat:
        x = split_heads(x, node.integer("num_heads"), "the input")
    if x.rank != 4:
        raise ModelError(f"has input {x.type}, expected 3 or 4 dimensions")
    tables = [operand(node, at) for at in (1, 2)]
    if node.has(3):
        tables = [table.take(operand(node, 3), 0) for table in tables]
    width = node.integer("rotary_embedding_dim") or x.known_size(3, "the input")
    y = rotary_embedding(x, tables[0], tables[1], width, interleaved=node.flag("interleaved"))
    return (merge_heads(y) if flat else y).operand


TABLE: dict[str, Importer] = {"Attention": _attention, "RotaryEmbedding": _rotary}
PREVIEW: dict[str, Importer] = {"FlexAttention": _flex_attention}
