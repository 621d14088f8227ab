"""ONNX Runtime's attention, with masks, biases and past keys and values."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from onert.frontend.onnx.expression import Expression, operand, optional
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.movement import sliced, split
from onert.frontend.onnx.table.generation.caches import Given, attend, grown, put_rows
from onert.frontend.onnx.table.layers.attention import (
    merge_heads,
    scores,
    softmax,
    split_heads,
    usual_scale,
)
from onert.frontend.onnx.table.layers.normalization import mean_of
from onert.frontend.onnx.table.layers.rotary import rotary_embedding
from onert.ir import DType, ModelError
from onert.ir.ops.contraction.cached_attention import CachedAttention, Shown
from onert.ir.ops.data_movement.element_indices import ScatterSlices
from onert.ir.ops.data_movement.fill import TopK
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.scan import CumSum

from .quantized import MICROSOFT as QUANTIZED

LEAST = float.fromhex("-0x1.fffffep+127")
"""Added to the score of a key that a query may not attend to: the lowest float32."""


@frozen(eq=False)
class _Attention:
    """The weighted sums [batch, heads, tokens, n], and the scores before and after their softmax."""

    y: Expression
    scores: Expression
    weights: Expression


def refuse_given(node: Node, inputs: tuple[int, ...], flags: tuple[str, ...] = ()) -> None:
    """Raise ModelError for inputs and flags that change the result but are not supported."""
    given = [f"input {at}" for at in inputs if node.has(at)] + [
        f"attribute {name}" for name in flags if node.flag(name)
    ]
    if given:
        raise ModelError(f"has {' and '.join(given)}, which is not supported")


def attention_scale(node: Node, q: Expression) -> float | Expression:
    return node.number("scale") or usual_scale(q)


def sum_of(parts: Sequence[Expression | None]) -> Expression | None:
    found = None
    for part in parts:
        if part is not None:
            found = part if found is None else found + part
    return found


def _attend(
    q: Expression, k: Expression, v: Expression, scale: float | Expression, bias: Expression | None
) -> _Attention:
    raw = scores(q, k, scale)
    raw = raw if bias is None else raw + bias
    weights = softmax(raw)
    return _Attention(weights @ v, raw, weights)


def _causal_mask(q: Expression, k: Expression) -> Expression:
    """The causal mask, `[queries, keys]`, where the last query is at the position of the last key."""
    columns = k.size(2).arange()
    rows = q.size(2).arange().unsqueeze(1) + (k.size(2) - q.size(2))
    return columns <= rows


def _mask(node: Node, at: int, k: Expression, q: Expression) -> Expression | None:
    """The tensor added to the scores for a mask.

    The mask has an element per key `[batch, keys]` or per query and key `[batch, queries, keys]`, or is the length of
    each sequence `[batch]`, or all ends followed by all starts `[2 * batch]`.
    """
    mask = optional(node, at)
    if mask is None:
        return None
    filler = node.number("mask_filter_value", -10000.0)
    if mask.rank == 1:
        columns, mask = k.size(2).arange().unsqueeze(0), mask.cast(DType.INT64)
        batch = k.shape[0]
        if mask.shape[0] is not None and batch is not None and mask.shape[0] == 2 * batch != batch:
            ends, starts = (mask.of(part).unsqueeze(1) for part in split(mask.draft, mask.operand, [batch, batch], 0))
            seen = (columns < ends) & (columns >= starts)
        elif mask.shape[0] == batch or None in (mask.shape[0], batch):
            seen = columns < mask.unsqueeze(1)
        else:
            raise ModelError(f"the mask is {mask.type}, expected a length for each of {batch} sequences")
    elif mask.rank in (2, 3):
        seen = mask > 0
    else:
        raise ModelError(f"the mask is {mask.type}, expected 1 to 3 dimensions")
    seen = seen.unsqueeze(1).unsqueeze(1) if seen.rank == 2 else seen.unsqueeze(1)
    return seen.select(q.like(0), filler)


def bias_parts(node: Node, at: int, sizes: list[int]) -> list[Expression | None]:
    """The parts of a bias for queries, keys and values."""
    bias = optional(node, at)
    if bias is None:
        return [None] * len(sizes)
    return [bias.of(part) for part in split(bias.draft, bias.operand, sizes, 0)]


def _hidden(node: Node, q: Expression, k: Expression) -> Expression | None:
    return _causal_mask(q, k).select(q.like(0), LEAST) if node.flag("unidirectional") else None


def _multi_head(node: Node) -> tuple[int | None, ...]:
    """Inputs: query, key, value, bias, key mask, attention bias, past keys and values."""
    refuse_given(node, (8, 9))
    _d, heads = node.draft, node.integer("num_heads")
    q, k, v = operand(node, 0), optional(node, 1), optional(node, 2)
    if k is None or v is None:
        refuse_given(node, (3,))
    if k is None:  # [batch, tokens, heads, 3, n]
        if q.rank != 5:
            raise ModelError(f"has no key, and the query is {q.type}, expected packed queries, keys and values")
        q, k, v = (q.take(at, 3).transpose(0, 2, 1, 3) for at in range(3))
    elif v is None:
        if k.rank != 5:
            raise ModelError(f"has no value, and the key is {k.type}, expected packed keys and values")
        q, k, v = split_heads(q, heads, "the query"), *(k.take(at, 3).transpose(0, 2, 1, 3) for at in range(2))
    else:
        width = q.known_size(2, "the query")
        wide = v.known_size(2, "the value") if v.rank == 3 else 0
        parts = bias_parts(node, 3, [width, width, wide or width])
        q = split_heads(q if parts[0] is None else q + parts[0], heads, "the query")
        if k.rank == 3:
            k = split_heads(k if parts[1] is None else k + parts[1], heads, "the key")
            v = split_heads(v if parts[2] is None else v + parts[2], heads, "the value")
    past = optional(node, 6), optional(node, 7)
    if past[0] is not None and past[1] is not None:
        k, v = past[0].concat([k], 2), past[1].concat([v], 2)
    bias = sum_of([_mask(node, 4, k, q), _hidden(node, q, k), optional(node, 5)])
    found = _attend(q, k, v, attention_scale(node, q), bias)
    return merge_heads(found.y).operand, k.operand, v.operand, found.scores.operand


def _projected(node: Node, x: Expression, past: Expression | None) -> tuple[int | None, ...]:
    """Attention of packed queries, keys and values `[batch, tokens, features]`, with their bias already added."""
    d, heads = node.draft, node.integer("num_heads")
    sizes = list(node.integers("qkv_hidden_sizes") or ())
    total = x.known_size(2, "the projection")
    sizes = sizes or [total // 3] * 3
    if len(sizes) != 3 or sum(sizes) != total or sizes[0] != sizes[1] or min(sizes) < 1:
        raise ModelError(f"queries, keys and values have {sizes} features, expected a sum of {total}")
    q, k, v = (
        split_heads(x.of(part), heads, what)
        for part, what in zip(split(d, x.operand, sizes, 2), ("the query", "the key", "the value"), strict=True)
    )
    if past is not None:
        k, v = past.take(0, 0).concat([k], 2), past.take(1, 0).concat([v], 2)
    bias = sum_of([_mask(node, 3, k, q), _hidden(node, q, k), optional(node, 5)])
    found = _attend(q, k, v, attention_scale(node, q), bias)
    present = k.unsqueeze(0).concat([v.unsqueeze(0)], 0) if node.uses_output(1) else None
    return merge_heads(found.y).operand, None if present is None else present.operand


def _attention(node: Node) -> tuple[int | None, ...]:
    """Inputs: x, the packed weights of queries, keys and values, a bias, a mask, the past, an attention bias."""
    refuse_given(node, (6,), ("do_rotary", "past_present_share_buffer"))
    x = operand(node, 0) @ operand(node, 1)
    return _projected(node, x + operand(node, 2) if node.has(2) else x, optional(node, 4))


def _quantized_attention(node: Node) -> tuple[int | None, ...]:
    """Inputs: x, weights, bias, both scales, a mask, both zero points, the past."""
    refuse_given(node, (), ("do_rotary", "past_present_share_buffer"))
    given = (*(node.input(at) for at in (0, 1, 3, 4)), node.optional(6), node.optional(7), node.input(2))
    product = QUANTIZED["MatMulIntegerToFloat"](evolve(node, inputs=given, outputs=("x",)))
    if not isinstance(product, int):
        raise ModelError("the product is not a tensor")
    masked = evolve(node, inputs=(None, None, None, node.optional(5)))
    return _projected(masked, Expression(node.draft, product), optional(node, 8))


def _normalized(node: Node, x: Expression, at: int) -> Expression:
    """Each head divided by its root mean square and multiplied by a weight, if there is one."""
    weight = optional(node, at)
    if weight is None:
        return x
    squares = x.of(mean_of(x.draft, (x * x).operand, (3,)))
    return x * (squares + node.number("qk_norm_epsilon", 1e-6)).unary(UnaryKind.RSQRT) * weight


def separate_inputs(node: Node) -> tuple[Expression, Expression, Expression]:
    """Queries, keys and values of grouped heads, which may be features of one input."""
    d, heads, own = node.draft, node.integer("num_heads"), node.integer("kv_num_heads")
    q, k, v = operand(node, 0), optional(node, 1), optional(node, 2)
    if heads < 1 or own < 1:
        raise ModelError(f"there are {heads} query heads and {own} key heads, expected at least 1")
    if k is None or v is None:
        each, rest = divmod(q.known_size(2, "the query"), heads + 2 * own)
        if rest:
            raise ModelError(f"the query is {q.type}, expected a multiple of {heads + 2 * own} features")
        q, k, v = (q.of(part) for part in split(d, q.operand, [heads * each, own * each, own * each], 2))
    return q, k, v


def _grouped(node: Node) -> tuple[int | None, ...]:
    """Grouped-query attention, which writes new keys and values behind the past ones.

    Inputs: query, key, value, past keys and values, the number of keys of each sequence including the new ones minus 1,
    the maximum number of keys, cosine and sine tables, positions, an attention bias, a sink score per head, two that
    are not supported, and weights to normalise queries and keys.
    """
    refuse_given(node, (12, 13), ("sliding_window_cache",))
    heads, own = node.integer("num_heads"), node.integer("kv_num_heads")
    for name in ("k_quant_type", "v_quant_type"):
        if node.text(name, "NONE") != "NONE":
            raise ModelError(f"{name} is {node.text(name)!r}, which is not supported")
    q, k, v = separate_inputs(node)
    q, k = (
        _normalized(node, split_heads(q, heads, "the query"), 14),
        _normalized(node, split_heads(k, own, "the key"), 15),
    )
    v, new = split_heads(v, own, "the value"), q.size(2)
    totals = operand(node, 5).cast(DType.INT64).reshape(None) + 1
    most = operand(node, 6).cast(DType.INT64).reshape(1)
    first = first_places(totals, most, new)
    places = first.unsqueeze(1) + new.arange()
    if node.flag("do_rotary"):
        turns = optional(node, 9) or places
        cos, sin = (operand(node, at).take(turns, 0) for at in (7, 8))
        width, pairs = 2 * cos.known_size(2, "a table"), node.flag("rotary_interleaved")
        q, k = (rotary_embedding(x, cos, sin, width, interleaved=pairs) for x in (q, k))
    past = optional(node, 3), optional(node, 4)
    if past[0] is not None and past[1] is not None:
        size = past[0].size(2).at_least(most)
        k, v = (put_rows(grown(x, size), rows, first) for x, rows in ((past[0], k), (past[1], v)))
    sinks, bias = optional(node, 11), optional(node, 10)
    if sinks is None and node.integer("smooth_softmax") > 0:
        node.draft.memory.spend(4 * heads, "the scores of heads")
        sinks = q.like(0).reshape(1).take([0] * heads, 0)
    if bias is not None:
        bias.expect("the attention bias", None, None, None, None)
        if bias.shape[3] is None or bias.shape[3] != k.shape[2]:
            bias = bias.take(k.size(2).arange().at_most(bias.size(3) - 1), 3)  # a cache may have more places
    op = CachedAttention(
        causal=node.flag("causal", default=True),
        window=max(node.integer("local_window_size", -1), 0),
        cap=node.number("softcap"),
        shown=_SHOWN.get(node.integer("qk_output")) if node.uses_output(3) else None,
    )
    found = attend(op, q, (k, v), first, Given(totals, bias, sinks), attention_scale(node, q))
    shown = None if found.shown is None else found.shown.operand
    return merge_heads(found.y).operand, k.operand, v.operand, shown


_SHOWN = {1: Shown.SCORES, 2: Shown.WEIGHTS}


def first_places(totals: Expression, most: Expression, new: Expression) -> Expression:
    """The place of the first new token of each sequence: 0 if the longest one has only new ones."""
    return most.equals(new).select(totals.like(0), totals - new)


def _without_padding(node: Node) -> tuple[int, ...]:
    """Inputs: x [batch, tokens, features], and how many tokens of each sequence, its first ones, are not padding.

    Results: the rows of these tokens; the places of all tokens, these first; where each sequence begins in the rows,
    followed by their number; the largest number of a sequence.
    """
    d, x = node.draft, operand(node, 0)
    x.expect("the input", None, None, None)
    given = operand(node, 1)
    given.expect("the numbers of tokens", x.shape[0])
    counts = given.cast(DType.INT64).at_least(0).at_most(x.size(1))
    kept = x.size(1).arange() < counts.unsqueeze(1)
    hidden = (~kept).cast(DType.INT32).reshape(None)
    places = x.of(d.add_many(TopK(DType.INT64, least=True), hidden.operand, hidden.size(0).operand)[1])
    ends = x.of(d.add(CumSum(), counts.operand, d.constant(0, DType.INT32)))
    rows = x.reshape_by(hidden.size(0), x.size(2)).take(_first(places, counts.sum(0)), 0)
    starts = ends.of(d.constant([0], DType.INT64)).concat([ends], 0)
    results = places.reshape_by(x.size(0), x.size(1)), starts, counts.reduce(Reduction.MAX, [0])
    return rows.operand, *(found.cast(DType.INT32).operand for found in results)


def _first(places: Expression, count: Expression) -> Expression:
    """The first places of a vector; `count` is an int64 vector of one element."""
    start = places.draft.constant([0], DType.INT64)
    return places.of(sliced(places.draft, places.operand, [0], start, count.operand, None))


def _with_padding(x: Expression, places: Expression) -> Expression:
    """The rows x, each at its place [batch, tokens], and zeros at the places of padding."""
    places.expect("the tensor of places", None, None)
    if x.rank < 2:
        raise ModelError(f"the rows are {x.type}, expected at least 2 dimensions")
    flat = places.cast(DType.INT64).reshape(None)
    rest = [x.size(axis) for axis in range(1, x.rank)]
    indices = _first(flat, x.size(0)).unsqueeze(1)
    empty = x.filled(0, flat.size(0), *rest)
    found = x.of(x.draft.add(ScatterSlices(), empty.operand, indices.operand, x.operand))
    return found.reshape_by(places.size(0), places.size(1), *rest)


def _lengths(node: Node, at: int) -> Expression:
    """The number of tokens of each sequence, from where they begin in the rows."""
    starts = operand(node, at)
    starts.expect("the starts of sequences", None)
    numbers = (starts.size(0) - 1).arange()
    return starts.take(numbers + 1, 0) - starts.take(numbers, 0)


def _packed_again(y: int | None, rows: Expression, places: Expression) -> int:
    """The rows of an attention's result [batch, tokens, features] that are not padding: as many as `rows`."""
    if y is None:
        raise ModelError("has no result")
    found = rows.of(y)
    flat = places.cast(DType.INT64).reshape(None)
    return found.reshape_by(flat.size(0), found.size(2)).take(_first(flat, rows.size(0)), 0).operand


def _packed_attention(node: Node) -> int:
    """Inputs: rows without padding, weights, bias, the places of tokens, the starts of sequences, an attention bias."""
    x, places = operand(node, 0), operand(node, 3)
    rows = x @ operand(node, 1)
    rows = rows + operand(node, 2) if node.has(2) else rows
    masked = evolve(node, inputs=(None, None, None, _lengths(node, 4).operand, None, node.optional(5)))
    return _packed_again(_projected(masked, _with_padding(rows, places), None)[0], x, places)


def _packed_multi_head(node: Node) -> int:
    """Inputs: queries, keys, values, bias, the places of tokens, the starts of sequences, an attention bias.

    Queries, keys and values are rows without padding; in one input they are [rows, heads, 3, n].
    """
    x, places = operand(node, 0), operand(node, 4)
    parts = [
        None if part is None else _with_padding(part, places).operand
        for part in (optional(node, at) for at in range(3))
    ]
    given = (*parts, node.optional(3), _lengths(node, 5).operand, node.optional(6))
    return _packed_again(_multi_head(evolve(node, inputs=given))[0], x, places)


MICROSOFT: dict[str, Importer] = {
    "Attention": _attention,
    "GroupQueryAttention": _grouped,
    "MultiHeadAttention": _multi_head,
    "PackedAttention": _packed_attention,
    "PackedMultiHeadAttention": _packed_multi_head,
    "QAttention": _quantized_attention,
    "RemovePadding": _without_padding,
    "RestorePadding": lambda node: _with_padding(operand(node, 0), operand(node, 1)).operand,
}
