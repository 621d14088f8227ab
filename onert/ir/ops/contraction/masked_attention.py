"""Attention with the heads next to the features, and an update of its caches."""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.shape import Dim, Shape
from onert.ir.types import CallTypes, TensorType

MASKED = -1
"""The place of a token that is not stored."""


def require_keys(heads: Dim, own: Dim, k: tuple[TensorType, Shape], v: tuple[TensorType, Shape]) -> None:
    """Raises RuleError unless keys and values have these shapes, and `own` of these heads are shared by `heads`."""
    for name, (x, wanted) in (("k", k), ("v", v)):
        require(shapes.compatible(x.shape, wanted), f"{name} is {x}, expected {shapes.text(wanted)}")
    shared = heads is None or own is None or (own > 0 and heads % own == 0)
    require(shared, f"k is {k[0]}, expected a divisor of {heads} heads")


@frozen
class MaskedAttention(Op):
    """The softmax of `q · k * scale + mask`, times the values.

    - `q`: float32 [batch, tokens, heads, n]
    - `k`, `v`: float32 [batch, places, key heads, n or m]; adjacent heads share keys
    - `mask`: float32 of rank 4, which fits into [batch, heads, tokens, places]

    Result: [batch, tokens, heads, m]. A `scale` of 0 means 1 / sqrt(n).

    Source: LiteRT's custom operator `odml.scaled_dot_product_attention`, experimental/genai/sdpa.cc. It also scales its
    input `q` in place, which is ignored here.
    """

    scale: float = 0.0

    def infer(self, q: TensorType, k: TensorType, v: TensorType, mask: TensorType) -> TensorType:
        for x, name in ((q, "q"), (k, "k"), (v, "v"), (mask, "mask")):
            require(x.dtype is DType.FLOAT32 and x.rank == 4, f"{name} is {x}, expected f32 of 4 dimensions")
        batch, tokens, heads, n = q.shape
        places, own = k.shape[1:3]
        require_keys(heads, own, (k, (batch, places, own, n)), (v, (batch, places, own, v.shape[3])))
        require(n != 0, f"q is {q}, expected features")
        scores = (batch, heads, tokens, places)
        fits = all(d in (1, None) or whole in (d, None) for d, whole in zip(mask.shape, scores, strict=True))
        require(fits, f"mask is {mask}, expected up to {shapes.text(scores)}")
        return q.result((batch, tokens, heads, v.shape[3]))

    def factor(self, n: int) -> float:
        """The factor of scores of rows of `n` features."""
        return self.scale if self.scale > 0 else 1 / math.sqrt(n)

    def flops(self, types: CallTypes) -> int:
        batch, tokens, heads, n = (d or 0 for d in types.input(0).shape)
        return 2 * batch * heads * tokens * (types.input(1).shape[1] or 0) * (n + (types.input(2).shape[3] or 0))

    def evaluate(self, q: Array, k: Array, v: Array, mask: Array) -> Array:
        batch, tokens, heads, n = q.shape
        places, own = k.shape[1:3]
        rows = q.reshape(batch, tokens, own, heads // own, n).transpose(0, 2, 3, 1, 4)
        keys, values = (x.transpose(0, 2, 1, 3)[:, :, None] for x in (k, v))
        scores = (rows * np.float32(self.factor(n))) @ keys.swapaxes(3, 4)
        scores = scores.reshape(batch, heads, tokens, places) + mask
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = weights.reshape(batch, own, heads // own, tokens, places) @ values
        out: Array = mixed.transpose(0, 3, 1, 2, 4).reshape(batch, tokens, heads, -1).astype(np.float32)
        return out


@frozen
class StoreTokens(Op):
    """Caches of keys and values with those of new tokens at their positions.

    - `keys`, `values`: float32 [1, places, heads, n]
    - `positions`: int32 [tokens]. The first one that is less than that before it ends the new tokens; one of -1 at the
      start is skipped.
    - `new_keys`, `new_values`: float32 [1, tokens, heads, n]

    Results: both caches. Source: LiteRT's custom operator `odml.update_external_kv_cache`,
    experimental/genai/external_kvcache.cc.
    """

    def infer(
        self,
        keys: TensorType,
        values: TensorType,
        positions: TensorType,
        new_keys: TensorType,
        new_values: TensorType,
    ) -> tuple[TensorType, TensorType]:
        require(
            positions.dtype is DType.INT32 and positions.rank == 1, f"positions are {positions}, expected i32 of rank 1"
        )
        for cache, new in ((keys, new_keys), (values, new_values)):
            for x in (cache, new):
                require(x.dtype is DType.FLOAT32 and x.rank == 4, f"an operand is {x}, expected f32 of 4 dimensions")
            wanted = (1, positions.shape[0], *keys.shape[2:])
            require(shapes.compatible(new.shape, wanted), f"new tokens are {new}, expected {shapes.text(wanted)}")
            wanted = (1, *keys.shape[1:])
            require(shapes.compatible(cache.shape, wanted), f"a cache is {cache}, expected {shapes.text(wanted)}")
        return keys.result(keys.shape), values.result(values.shape)

    def evaluate(
        self, keys: Array, values: Array, positions: Array, new_keys: Array, new_values: Array
    ) -> tuple[Array, Array]:
        falls = positions < np.concatenate([np.array([MASKED], np.int32), positions[:-1]])
        kept = ~np.logical_or.accumulate(falls) & (positions != MASKED)
        places = positions[kept]
        outside = places[places >= keys.shape[1]]
        require(not outside.size, f"position {outside[:1]} is outside of a cache of {keys.shape[1]}")
        found = keys.copy(), values.copy()
        for cache, new in zip(found, (new_keys, new_values), strict=True):
            for at, row in zip(places, new[0, kept], strict=True):
                cache[0, at] = row
        return found
