"""Attention of decoders: rotary position embedding, and a layer with a cache of keys and values."""

from __future__ import annotations

import math
from enum import Enum
from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType


class Pairing(Enum):
    """Which elements of a vector are rotated together."""

    HALVES = "element i and element i + n / 2 (GPT-NeoX)"
    NEIGHBORS = "element 2 i and element 2 i + 1 (GPT-J)"


def rotate(x: Array, sin: Array, cos: Array, pairing: Pairing) -> Array:
    """Rotate pairs of elements along the last axis by angles whose sines and cosines are given per element."""
    turned = np.empty_like(x)
    if pairing is Pairing.HALVES:
        half = x.shape[-1] // 2
        turned[..., :half], turned[..., half:] = -x[..., half:], x[..., :half]
    else:
        turned[..., 0::2], turned[..., 1::2] = -x[..., 1::2], x[..., 0::2]
    out: Array = (x * cos + turned * sin).astype(x.dtype)
    return out


@frozen
class RoPE(Op):
    """Rotary position embedding: rotates pairs of elements along the last axis by the given angles.

    - `x`: floats [batch, heads, tokens, n] (or of another rank), n even
    - `sin`, `cos`: of the dtype of `x`; their last dimension is n, the others broadcast against those of `x`

    Source: J. Su and others, "RoFormer" (2021); circle's ROPE with the modes GPT_NEOX and GPT_J.
    """

    pairing: Pairing = Pairing.HALVES

    def infer(self, x: TensorType, sin: TensorType, cos: TensorType) -> TensorType:
        require(x.rank >= 1, "x is a scalar, expected rank 1 or more")
        size = x.shape[-1]
        require(size is None or size % 2 == 0, f"x is {shapes.text(x.shape)}, expected an even last dimension")
        for table, name in ((sin, "sin"), (cos, "cos")):
            require(x.dtype.is_float and table.dtype is x.dtype, f"{name} is {table.dtype.text}, x {x.dtype.text}")
            require(
                table.rank >= 1 and shapes.compatible(table.shape[-1:], x.shape[-1:]),
                f"{name} is {shapes.text(table.shape)}, expected a last dimension of {size}",
            )
            wide = shapes.broadcast((x.shape, table.shape))
            require(
                shapes.compatible(wide, x.shape),
                f"{name} is {shapes.text(table.shape)}, expected to fit into {shapes.text(x.shape)}",
            )
        return x.result(x.shape)

    def evaluate(self, x: Array, sin: Array, cos: Array) -> Array:
        return rotate(x, sin, cos, self.pairing)


@frozen
class Attention(Op):
    """A decoder's attention layer: new tokens attend to themselves and to the tokens before them.

    - `x`: float32 [1, tokens, model]
    - `wq`, `wk`, `wv`, `wo`: float32 [model, model], the weights of query, key, value and output; rows are outputs
    - `cos`, `sin`: float32 [.., tokens, n] (or one row for all), the angles of the positions; n = model / heads
    - `mask`: float32 [.., tokens, context], added to the scores; if absent, attention is causal
    - `k_cache`, `v_cache`: state, float32 [1, size, heads, n]: keys and values by position
    - `position`: one integer, the position of the first new token

    Results: [1, tokens, model], and the caches with the new tokens. Softmax is applied to the scores divided by the
    square root of n, over the positions of the mask, or all tokens so far. Source: circle's ATTENTION (ONE's
    AttentionLayer).
    """

    carries: ClassVar[tuple[str, ...]] = ("k_cache", "v_cache")

    def infer(
        self,
        x: TensorType,
        wq: TensorType,
        wk: TensorType,
        wv: TensorType,
        wo: TensorType,
        cos: TensorType,
        sin: TensorType,
        mask: TensorType | None,
        k_cache: TensorType,
        v_cache: TensorType,
        position: TensorType,
    ) -> tuple[TensorType, TensorType, TensorType]:
        floats = (x, wq, wk, wv, wo, cos, sin, mask, k_cache, v_cache)
        for operand in floats:
            require(operand is None or operand.dtype is DType.FLOAT32, f"an operand is {operand}, expected f32")
        require(x.rank == 3 and x.shape[0] in (1, None), f"x is {x}, expected [1, tokens, model]")
        tokens, model = x.shape[1:]
        require(k_cache.rank == 4, f"the cache of keys is {k_cache}, expected [1, size, heads, n]")
        heads, n = k_cache.shape[2:]
        for cache, name in ((k_cache, "keys"), (v_cache, "values")):
            wanted = (1, k_cache.shape[1], heads, n)
            require(
                shapes.compatible(cache.shape, wanted),
                f"the cache of {name} is {cache}, expected {shapes.text(wanted)}",
            )
        require(
            None in (heads, n, model) or (heads or 0) * (n or 0) == model,
            f"{heads} heads of {n} do not make up {model} features",
        )
        require(n is None or (n > 0 and n % 2 == 0), f"heads have {n} features, expected an even number")
        for weight in (wq, wk, wv, wo):
            require(
                shapes.compatible(weight.shape, (model, model)), f"a weight is {weight}, expected [{model}, {model}]"
            )
        for table in (cos, sin):
            require(_fits(table, tokens, n), f"a table of angles is {table}, expected [.., {tokens}, {n}]")
        if mask is not None:
            context = mask.shape[-1] if mask.rank else 0
            require(
                mask.rank >= 1 and _fits(mask, tokens, context), f"mask is {mask}, expected [.., {tokens}, context]"
            )
        count = shapes.num_elements(position.shape)
        require(position.dtype.is_integer and count in (1, None), f"position is {position}, expected one integer")
        return x.result(x.shape), k_cache.result(k_cache.shape), v_cache.result(v_cache.shape)

    def flops(self, types: CallTypes) -> int:
        tokens, cache = types.input(0).shape[1] or 0, types.input(8).shape
        width = math.prod(d or 0 for d in cache[2:])
        return tokens * (8 * width * width + 4 * width * (cache[1] or 0))

    def evaluate(
        self,
        x: Array,
        wq: Array,
        wk: Array,
        wv: Array,
        wo: Array,
        cos: Array,
        sin: Array,
        mask: Array | None,
        k_cache: Array,
        v_cache: Array,
        position: Array,
    ) -> tuple[Array, Array, Array]:
        tokens, (size, heads, n) = x.shape[1], k_cache.shape[1:]
        first = int(position.reshape(-1)[0])
        require(first >= 0 and first + tokens <= size, f"{tokens} tokens from {first} on exceed the cache of {size}")
        context = min(size, mask.shape[-1]) if mask is not None else first + tokens
        sines, cosines = (t.reshape(-1, n)[:, None, :] for t in (sin, cos))
        query, key, value = (x[0] @ w.T for w in (wq, wk, wv))
        keys, values = k_cache.copy(), v_cache.copy()
        keys[0, first : first + tokens] = rotate(key.reshape(tokens, heads, n), sines, cosines, Pairing.HALVES)
        values[0, first : first + tokens] = value.reshape(tokens, heads, n)
        query = rotate(query.reshape(tokens, heads, n), sines, cosines, Pairing.HALVES).transpose(1, 0, 2)
        scores = query @ keys[0, :context].transpose(1, 2, 0) * np.float32(1 / np.sqrt(n))
        if mask is None:
            seen = np.arange(context) <= first + np.arange(tokens)[:, None]
            scores = np.where(seen, scores, np.float32(-np.inf))
        else:
            scores = scores + mask.reshape(-1, mask.shape[-1])[:, :context]
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = (weights @ values[0, :context].transpose(1, 0, 2)).transpose(1, 0, 2).reshape(tokens, heads * n)
        return (mixed @ wo.T).astype(np.float32)[None], keys, values


def _fits(table: TensorType, rows: int | None, columns: int | None) -> bool:
    """Whether an operand consists of one row of `columns` elements or of `rows` rows, ignoring leading 1s."""
    if table.rank == 0 or not shapes.compatible(table.shape[-1:], (columns,)):
        return False
    before = table.shape[:-1]
    count = shapes.num_elements(before)
    return count in (None, 1, rows) or rows is None
