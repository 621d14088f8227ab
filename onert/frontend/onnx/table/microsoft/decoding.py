"""Attention of one new token, or a few, to a cache of keys and values that has room for more."""

from __future__ import annotations

import numpy as np

from onert.frontend.onnx.building import ints
from onert.frontend.onnx.expression import Expression, operand, optional
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.generation.caches import Given, attend, put_rows
from onert.frontend.onnx.table.layers.attention import merge_heads, split_heads
from onert.frontend.onnx.table.layers.rotary import rotary_embedding
from onert.ir import Array, DType, ModelError
from onert.ir.ops.contraction.cached_attention import CachedAttention, Shown
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice

from .attention import attention_scale, bias_parts, first_places, separate_inputs, sum_of


def _one_token(node: Node) -> tuple[int | None, ...]:
    """Attention of one token to the keys and values before it and its own, or to those of another text.

    Inputs: query, key, value, a mask of the keys, a bias of the scores, a cache of keys and one of values, the number
    of tokens in it, the number of beams, the beam in which each token of each beam was computed, a bias of the first
    three inputs. The last result are the biased scores.
    """
    heads, q, k, v = node.integer("num_heads"), operand(node, 0), optional(node, 1), optional(node, 2)
    if k is None or v is None:
        raise ModelError("has no key or value, which is not supported")
    q.expect("the query", None, 1, None)
    width = q.known_size(2, "the query")
    wide = v.known_size(2, "the value") if v.rank == 3 else width
    parts = bias_parts(node, 10, [width, width, wide])
    q = split_heads(q if parts[0] is None else q + parts[0], heads, "the query")
    caches: tuple[int | None, int | None] = (None, None)
    last = None
    if k.rank == 3:
        k = split_heads(k if parts[1] is None else k + parts[1], heads, "the key")
        v = split_heads(v if parts[2] is None else v + parts[2], heads, "the value")
        k.expect("the key", q.shape[0], heads, 1, q.shape[3])
        v.expect("the value", q.shape[0], heads, 1, None)
        if node.has(5) and node.has(6):
            k, v, last = _appended(node, k, v)
            caches = k.operand, v.operand
    if node.uses_output(3) and last is not None:
        raise ModelError("returns the scores of a cache (output 3), which is not supported")
    columns, added = k.size(2).arange(), list[Expression]()
    mask, bias = optional(node, 3), optional(node, 4)
    if mask is not None:
        mask.expect("the mask", q.shape[0], None if last is not None else k.shape[2])
        seen = _widened(mask, columns, 1, last) > 0
        filler = node.number("mask_filter_value", -10000.0)
        added.append(seen.unsqueeze(1).unsqueeze(1).select(q.like(0), filler))
    if bias is not None:
        if bias.rank != 4:
            raise ModelError(f"the bias of the scores is {bias.type}, expected 4 dimensions")
        added.append(_widened(bias, columns, 3, last))
    first = (k.size(2) - 1 if last is None else last).broadcast(q.size(0))
    given = Given(bias=sum_of(added), beams=None if last is None else _beams(node, k))
    op = CachedAttention(shown=Shown.SCORES if node.uses_output(3) else None)
    found = attend(op, q, (k, v), first, given, attention_scale(node, q))
    return merge_heads(found.y).operand, *caches, None if found.shown is None else found.shown.operand


def _appended(node: Node, k: Expression, v: Expression) -> tuple[Expression, Expression, Expression]:
    """The caches [batch, heads, places, n] with a new key and value, and the place of these."""
    if not node.flag("past_present_share_buffer"):
        raise ModelError("past_present_share_buffer is 0 but there is a cache (input 5), which is not supported")
    count = operand(node, 7).cast(DType.INT64).reshape(1)
    found = []
    for at, new, what in ((5, k, "the cache of keys"), (6, v, "the cache of values")):
        cache = operand(node, at)
        cache.expect(what, new.shape[0], new.shape[1], operand(node, 5).shape[2], new.shape[3])
        place = cache.size(2).arange().take(count, 0)  # which fails if there is no room
        zero = cache.of(ints(cache.draft, [0]))
        start = zero.concat([zero, place, zero], 0)
        found.append(cache.of(cache.draft.add(DynamicUpdateSlice(), cache.operand, new.operand, start.operand)))
    return found[0], found[1], count


def _widened(x: Expression, columns: Expression, axis: int, last: Expression | None) -> Expression:
    """A mask or bias of the keys so far, with the same for the places of a cache after these."""
    return x if last is None else x.take(columns.at_most(x.size(axis) - 1), axis)


def _beams(node: Node, x: Expression) -> Expression | None:
    """From which beam each beam of a cache [batch * beams, heads, places, n] has its keys: [batch, beams, places]."""
    origin = optional(node, 9)
    if origin is not None and origin.rank != 3:
        raise ModelError(f"the tensor of beams is {origin.type}, expected 3 dimensions")
    if origin is not None:
        origin.expect("the tensor of beams", None, origin.known_size(1, "the tensor of beams"), x.shape[2])
    return None if origin is None else origin.cast(DType.INT32)


def _sparse(node: Node) -> tuple[int, int, int]:
    """Attention of each block of tokens to some blocks of keys, which differ by head, up to the token itself.

    Inputs: query, key, value, caches of keys and values, the blocks by row: where each row begins, and their columns;
    the number of tokens of the longest sequence, and of each, with the new ones; cosine and sine tables.
    """
    heads, own, block = node.integer("num_heads"), node.integer("kv_num_heads"), node.integer("sparse_block_size")
    q, k, v = separate_inputs(node)
    q, k, v = split_heads(q, heads, "the query"), split_heads(k, own, "the key"), split_heads(v, own, "the value")
    for at, what in ((3, "the cache of keys"), (4, "the cache of values")):
        operand(node, at).expect(what, k.shape[0], own, operand(node, 3).shape[2], k.shape[3])
    past, new = (operand(node, 3), operand(node, 4)), q.size(2)
    totals, most = (operand(node, at).cast(DType.INT64).reshape(None) for at in (8, 7))
    first, columns = first_places(totals, most, new), past[0].size(2).arange()
    places = columns.take(first.unsqueeze(1) + new.arange(), 0)  # which fails if there is no room
    if node.flag("do_rotary"):
        cos, sin = (operand(node, at).take(places, 0) for at in (9, 10))
        width = 2 * cos.known_size(2, "a table")
        q, k = (rotary_embedding(x, cos, sin, width, interleaved=node.flag("rotary_interleaved")) for x in (q, k))
    k, v = put_rows(past[0], k, first), put_rows(past[1], v, first)
    blocks = q.of(q.draft.constant(_block_mask(node, heads, block), DType.BOOL))
    op, given = CachedAttention(block=block), Given(blocks=blocks)
    found = attend(op, q, (k, v), first, given, attention_scale(node, q))
    return merge_heads(found.y).operand, k.operand, v.operand


def _block_mask(node: Node, heads: int, block: int) -> Array:
    """Whether the tokens of a block may attend to the keys of another: [layouts, blocks, blocks]."""
    starts, columns = node.constant(5, "the rows of blocks", "integers"), node.constant(6, "the columns", "integers")
    if starts.ndim != 2 or columns.ndim != 2 or len(starts) != len(columns) or not 2 <= starts.shape[1] <= _MOST_BLOCKS:
        raise ModelError(f"blocks are {node.type(5)} and {node.type(6)}, expected rows and columns of each layout")
    if heads % max(len(starts), 1) or block < 1:
        raise ModelError(
            f"{heads} heads have blocks of {block} in {len(starts)} layouts, expected a divisor of {heads}"
        )
    count = starts.shape[1] - 1
    node.draft.memory.spend(len(starts) * count * count, "the mask of blocks")
    mask = np.zeros((len(starts), count, count), np.bool_)
    for layout, (first, at) in enumerate(zip(starts, columns, strict=True)):
        sizes, found = np.diff(first), at[: first[-1]]
        if first[0] != 0 or (sizes < 0).any() or first[-1] > len(at) or (found < 0).any() or (found >= count).any():
            raise ModelError(f"the blocks of layout {layout} are not rows of up to {count} columns each")
        mask[layout, np.repeat(np.arange(count), sizes), found] = True
    return mask


_MOST_BLOCKS = 1 << 14


MICROSOFT: dict[str, Importer] = {"DecoderMaskedMultiHeadAttention": _one_token, "SparseAttention": _sparse}
