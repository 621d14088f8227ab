"""Decoder layers: rotary position embedding, attention, updates of caches, and mixture of experts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.contraction.attention import Attention, Pairing, RoPE
from onert.ir.ops.contraction.cached_attention import UNSEEN, CachedAttention, Shown
from onert.ir.ops.contraction.experts import MixtureOfExperts
from onert.ir.ops.contraction.hadamard import HadamardRotation, hadamard
from onert.ir.ops.contraction.masked_attention import MASKED, MaskedAttention, StoreTokens
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.element_indices import ScatterSlices
from onert.ir.ops.data_movement.gather import PutRow
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.shape import static
from onert.ir.symbolic.trace import is_symbolic

from .decomposition import Decomposition, always, only_float32
from .draft import Draft


def _rotated(d: Draft, x: int, sin: int, cos: int, pairing: Pairing) -> int:
    """x · cos + rotated · sin, where `rotated` swaps the elements of each pair and negates one of them."""
    shape = d.shape(x)
    before, size = shape[:-1], shape[-1]
    if pairing is Pairing.HALVES:
        half, none = (*before, size // 2), (0,) * len(before)
        first, second = d.part(x, (*none, 0), half), d.part(x, (*none, size // 2), half)
        rotated = d.add(Concat(-1), d.unary(UnaryKind.NEG, second), first)
    else:
        pairs = d.reshaped(x, *before, size // 2, 2)
        swapped = d.moved(Reverse(), pairs, d.integers(len(before) + 1))
        rotated = d.reshaped(d.product(swapped, d.constant(np.array([-1, 1], np.float32))), *shape)
    return d.sum(d.product(x, cos), d.product(rotated, sin))


def _rope(d: Draft, op: RoPE, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Add(Mul(x, cos), Mul(Concat(Neg(second half), first half), sin))"""
    x, sin, cos = operands
    return [_rotated(d, x, sin, cos, op.pairing)]


# ---- attention


def _why_no_attention(op: Attention, types: CallTypes) -> str | None:
    if any(t is not None and 0 in t.shape for t in types.inputs):
        return "a tensor has no elements"
    tokens, size = types.input(0).shape[1], types.input(8).shape[1]
    return None if (tokens or 0) <= (size or 0) else f"{tokens} tokens do not fit into a cache of {size}"


def _attention(d: Draft, op: Attention, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """FullyConnected(Softmax(query · keysᵀ + mask) · values), and the caches with the new rows"""
    x, wq, wk, wv, wo, cos, sin, k_cache, v_cache, position = (
        i for i in (*operands[:7], *operands[8:]) if i is not None
    )
    mask = operands[7]
    _, tokens, model = d.shape(x)
    _, size, heads, n = d.shape(k_cache)
    rows = d.reshaped(x, tokens, model)
    sines, cosines = (d.reshaped(t, math.prod(d.shape(t)) // n, 1, n) for t in (sin, cos))
    query, key, value = (d.reshaped(d.rows_times(rows, w, None), tokens, heads, n) for w in (wq, wk, wv))
    query, key = (_rotated(d, heads_of, sines, cosines, Pairing.HALVES) for heads_of in (query, key))
    first = d.reshaped(d.index(position), 1)
    places = first if tokens == 1 else d.sum(first, d.numbers(tokens, first, (tokens,)))
    keys, values = (
        d.moved(PutRow(), d.reshaped(cache, size, model), d.reshaped(new, tokens, model), first)
        for cache, new in ((k_cache, key), (v_cache, value))
    )
    context = size if mask is None else min(size, d.shape(mask)[-1])
    visible_keys, visible_values = (d.part(cache, (0, 0), (context, model)) for cache in (keys, values))
    if mask is None:  # zero the rows after the last token: even NaN there must not affect a result
        is_later = d.compared(
            ComparisonKind.GREATER, d.numbers(size, first, (size, 1)), d.part(places, (tokens - 1,), (1,))
        )
        visible_values = d.chosen(is_later, d.like(x, 0), visible_values)
    by_head = d.transposed(d.reshaped(visible_keys, context, heads, n), (1, 0, 2))
    scores = d.add(BatchMatMul(adjoint_y=True), d.transposed(query, (1, 0, 2)), by_head)
    scores = d.product(scores, d.real(1 / np.sqrt(n)))
    if mask is None:
        visible = d.compared(
            ComparisonKind.LESS_EQUAL, d.numbers(size, first, (1, size)), d.reshaped(places, tokens, 1)
        )
        scores = d.chosen(visible, scores, d.like(x, -math.inf))
    else:
        wide = d.reshaped(mask, math.prod(d.shape(mask)[:-1]), d.shape(mask)[-1])
        scores = d.sum(scores, d.part(wide, (0, 0), (d.shape(wide)[0], context)))
    weights = d.add(Softmax(), scores)
    values_by_head = d.transposed(d.reshaped(visible_values, context, heads, n), (1, 0, 2))
    mixed = d.transposed(d.add(BatchMatMul(), weights, values_by_head), (1, 0, 2))
    out = d.rows_times(d.reshaped(mixed, tokens, model), wo, None)
    return [d.reshaped(out, 1, tokens, model), *(d.reshaped(c, 1, size, heads, n) for c in (keys, values))]


# ---- attention to caches


def _why_no_layouts(op: CachedAttention, types: CallTypes) -> str | None:
    heads = types.input(0).shape[1]
    return "the number of heads is only known in runs" if heads is None or is_symbolic(heads) else None


def _cached_attention(d: Draft, op: CachedAttention, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """BatchMatMul(Softmax(Select(seen, BatchMatMul(q, k) * scale + bias, UNSEEN)), v)"""
    q, k, v, first = (i for i in operands[:4] if i is not None)
    ends, bias, sinks, blocks, beams = (*operands[4:], *[None] * 5)[:5]
    batch, heads, tokens, n = d.shape(q)
    own, places = d.shape(k)[1:3]
    columns = d.numbers(places, first, (places,))
    rows = d.sum(d.reshaped(first, batch, 1), d.numbers(tokens, first, (1, tokens)))
    rows = d.gathered(columns, rows, 0)  # which fails if there is no room
    last = d.part(rows, (0, tokens - 1), (batch, 1))
    if beams is not None:
        before = d.compared(ComparisonKind.LESS, columns, d.reshaped(first, batch, 1))
        k, v = (_of_beams(d, x, beams, before) for x in (k, v))
    is_later = d.compared(ComparisonKind.GREATER, d.reshaped(columns, places, 1), d.reshaped(last, batch, 1, 1, 1))
    v = d.chosen(is_later, d.like(v, 0), v)  # even NaN there must not affect a result
    seen = _seen(d, op, columns, d.reshaped(rows, batch, 1, tokens, 1), d.reshaped(last, batch, 1, 1, 1))
    if ends is not None:
        before_end = d.compared(ComparisonKind.LESS, columns, d.reshaped(ends, batch, 1, 1, 1))
        seen = d.binary(BinaryKind.LOGICAL_AND, seen, before_end)
    if blocks is not None:
        seen = d.binary(BinaryKind.LOGICAL_AND, seen, _layouts(d, op, blocks, rows, columns, heads))
    grouped = (batch, own, heads // own * tokens)
    x = d.add(BatchMatMul(adjoint_y=True), d.reshaped(q, *grouped, n), k)
    x = d.reshaped(x, batch, heads, tokens, places)
    if op.cap:
        x = d.product(d.tanh(d.product(x, d.real(op.scale / op.cap))), d.real(op.cap))
    elif op.scale != 1:
        x = d.product(x, d.real(op.scale))
    x = d.chosen(seen, x if bias is None else d.sum(x, bias), d.like(x, UNSEEN))
    weights = d.add(Softmax(), x) if sinks is None else _with_sinks(d, x, d.reshaped(sinks, heads, 1, 1))
    y = d.reshaped(d.add(BatchMatMul(), d.reshaped(weights, *grouped, places), v), *static(types.outputs[0].shape))
    return [y] if op.shown is None else [y, x if op.shown is Shown.SCORES else weights]


def _seen(d: Draft, op: CachedAttention, columns: int, rows: int, last: int) -> int:
    """Whether the tokens at places `rows` [batch, 1, tokens, 1] see the places `columns`, up to `last` at most."""
    seen = d.compared(ComparisonKind.LESS_EQUAL, columns, rows if op.causal else last)
    if op.window:
        near = d.compared(ComparisonKind.GREATER, columns, d.difference(rows, d.like(rows, op.window)))
        seen = d.binary(BinaryKind.LOGICAL_AND, seen, near)
    return seen


def _layouts(d: Draft, op: CachedAttention, blocks: int, rows: int, columns: int, heads: int) -> int:
    """Whether the blocks of tokens at `rows` [batch, tokens] see those of `columns`: [batch, heads, tokens, places]."""
    at, across = (d.binary(BinaryKind.DIV, x, d.like(x, op.block)) for x in (rows, columns))
    seen = d.transposed(d.gathered(d.gathered(blocks, at, 1), across, 3), (1, 0, 2, 3))
    layouts = d.shape(blocks)[0]
    if layouts in (1, heads):
        return seen
    return d.gathered(seen, d.integers(*(head % layouts for head in range(heads))), 1)


def _with_sinks(d: Draft, x: int, sinks: int) -> int:
    """The softmax of scores beside which there is one for each head that has no value."""
    largest = d.binary(BinaryKind.MAXIMUM, d.reduced(Reduction.MAX, x, (3,), keep_dims=True), sinks)
    powers, alone = (d.unary(UnaryKind.EXP, d.difference(each, largest)) for each in (x, sinks))
    total = d.sum(d.reduced(Reduction.SUM, powers, (3,), keep_dims=True), alone)
    return d.binary(BinaryKind.DIV, powers, total)


def _of_beams(d: Draft, x: int, beams: int, before: int) -> int:
    """Keys or values [batch, heads, places, n], those `before` [batch, places] the first token from other beams."""
    batch, heads, places, n = d.shape(x)
    groups, count, _ = d.shape(beams)
    own = d.numbers(count, beams, (count, 1))
    origin = d.chosen(d.reshaped(before, groups, count, places), beams, own)
    by_place = d.transposed(d.reshaped(x, groups, count, heads, places, n), (0, 3, 1, 2, 4))
    found = d.gathered(by_place, d.transposed(origin, (0, 2, 1)), 2, 2)
    return d.reshaped(d.transposed(found, (0, 2, 3, 1, 4)), batch, heads, places, n)


# ---- attention with the heads next to the features


def _why_not_masked(op: MaskedAttention, types: CallTypes) -> str | None:
    return "a tensor has no elements" if any(t is not None and 0 in t.shape for t in types.inputs) else None


def _masked_attention(d: Draft, op: MaskedAttention, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Transpose(Softmax(queries · keysᵀ * scale + mask) · values), where the queries of all heads that share keys are
    rows of one matrix"""
    q, k, v, mask = operands
    batch, tokens, heads, n = d.shape(q)
    own = d.shape(k)[2]
    rows = (batch, own, heads // own * tokens)
    query = d.reshaped(d.transposed(q, (0, 2, 1, 3)), *rows, n)
    keys, values = (d.transposed(x, (0, 2, 1, 3)) for x in (k, v))
    scores = d.product(d.add(BatchMatMul(adjoint_y=True), query, keys), d.real(op.factor(n)))
    weights = d.add(Softmax(), d.sum(scores, _by_row(d, mask, own, heads // own, tokens)))
    mixed = d.add(BatchMatMul(), weights, values)
    return [d.transposed(d.reshaped(mixed, batch, heads, tokens, d.shape(v)[3]), (0, 2, 1, 3))]


def _by_row(d: Draft, mask: int, own: int, sharing: int, tokens: int) -> int:
    """A mask by head and token as one by key head and row, or one of fewer dimensions that is broadcast to that."""
    batch, heads, rows, places = d.shape(mask)
    if sharing == 1 or (heads == 1 and rows == 1):
        return mask
    whole = (batch, 1 if heads == 1 else own, sharing, tokens, places)
    wide = d.reshaped(mask, batch, whole[1], 1 if heads == 1 else sharing, rows, places)
    return d.reshaped(d.broadcast(wide, whole), batch, whole[1], sharing * tokens, places)


def _store(d: Draft, op: StoreTokens, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """ScatterSlices of each cache, where the position of a token is -1 from the first fall of the positions on"""
    keys, values, positions, new_keys, new_values = operands
    (tokens,) = d.shape(positions)
    place = positions
    if tokens > 1:
        first = d.constant(np.array([MASKED], np.int32))
        earlier = d.add(Concat(0), first, d.part(positions, (0,), (tokens - 1,)))
        falls = d.cast(d.compared(ComparisonKind.LESS, positions, earlier), DType.INT32)
        fallen = d.add(CumSum(), falls, d.integers(0))
        ended = d.compared(ComparisonKind.GREATER, fallen, d.like(fallen, 0))
        place = d.chosen(ended, d.like(positions, MASKED), positions)
    column = d.reshaped(d.cast(place, DType.INT64), tokens, 1)
    indices = d.add(Concat(1), d.constant(np.zeros((tokens, 1), np.int64)), column)
    return [
        d.add(ScatterSlices(skips=True), cache, indices, d.reshaped(new, tokens, *d.shape(new)[2:]))
        for cache, new in ((keys, new_keys), (values, new_values))
    ]


# ---- experts


def _experts(d: Draft, op: MixtureOfExperts, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """A loop over the chosen experts of all rows: each round gathers the expert's matrices and stores one row"""
    x, weights, indices, gate, up, down, scales = operands
    experts, chosen, features, hidden = op.experts, op.chosen, op.features, op.hidden
    total = math.prod(d.shape(x)) // features * chosen
    numbers = d.reshaped(indices, total)
    negative = d.compared(ComparisonKind.LESS, numbers, d.like(numbers, 0))
    numbers = d.chosen(negative, d.sum(numbers, d.like(numbers, experts)), numbers)
    factors = d.product(d.reshaped(weights, total), d.gathered(d.reshaped(scales, experts), numbers, 0))
    rows = d.reshaped(x, total // chosen, 1, features)
    rows = d.reshaped(d.broadcast(rows, (total // chosen, chosen, features)), total, features)
    input_weights = [d.transposed(d.reshaped(w, hidden, experts, features), (1, 0, 2)) for w in (gate, up)]
    output_weights = d.transposed(d.reshaped(down, features, experts, hidden), (1, 0, 2))
    zeros = d.broadcast(d.constant(np.zeros((1, 1), np.float32)), (total, features))

    def step(b: Draft, at: int, carried: Sequence[int]) -> Sequence[int]:
        results, *loop_inputs = carried
        return b.moved(PutRow(), results, _one_expert(b, at, *loop_inputs), at), *loop_inputs

    carried = (zeros, rows, numbers, d.reshaped(factors, total, 1), *input_weights, output_weights)
    results = d.counted_loop(total, carried, step)[0]
    by_row = d.reshaped(results, total // chosen, chosen, features)
    return [d.reshaped(d.reduced(Reduction.SUM, by_row, (1,)), *static(types.output.shape))]


def _one_expert(d: Draft, at: int, rows: int, numbers: int, factors: int, gate: int, up: int, down: int) -> int:
    """The output of the expert chosen at index `at`, scaled by its weight."""
    number = d.gathered(numbers, at, 0)
    row, factor = (d.reshaped(d.gathered(i, at, 0), 1, d.shape(i)[1]) for i in (rows, factors))
    product = BatchMatMul(adjoint_y=True)
    gated, plain = (d.add(product, row, d.gathered(w, number, 0)) for w in (gate, up))
    inner = d.product(d.unary(UnaryKind.GELU, gated), plain)
    return d.product(d.add(product, inner, d.gathered(down, number, 0)), factor)


# ---- rotations

_WHOLE = 64
"""The largest Hadamard matrix that is multiplied as a whole."""


def _hadamard(d: Draft, op: HadamardRotation, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """x * H  -->  H1 * x[first, second] * H2

    A matrix of `first * second` rows is the Kronecker product of two: 96 products an element instead of 2048.
    """
    (x,) = operands
    second = op.size if op.size <= _WHOLE else 1 << (op.size.bit_length() // 2)
    first, scale = op.size // second, np.float32(1) / np.sqrt(np.float32(op.size))
    count = math.prod(d.shape(x)) // op.size
    out = d.rows_times(d.reshaped(x, count * first, second), d.constant(hadamard(second) * scale), None)
    if first > 1:
        columns = d.transposed(d.reshaped(out, count, first, second), (0, 2, 1))
        out = d.rows_times(d.reshaped(columns, count * second, first), d.constant(hadamard(first)), None)
        out = d.transposed(d.reshaped(out, count, second, first), (0, 2, 1))
    return [d.reshaped(out, *static(types.output.shape))]


DECOMPOSITIONS = {
    RoPE: (Decomposition(only_float32, _rope),),
    Attention: (Decomposition(_why_no_attention, _attention),),
    CachedAttention: (Decomposition(_why_no_layouts, _cached_attention),),
    MaskedAttention: (Decomposition(_why_not_masked, _masked_attention),),
    StoreTokens: (Decomposition(always, _store),),
    MixtureOfExperts: (Decomposition(always, _experts),),
    HadamardRotation: (Decomposition(always, _hadamard),),
}
