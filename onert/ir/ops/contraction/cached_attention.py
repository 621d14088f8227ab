"""Attention to a cache of keys and values that has room for more."""

from __future__ import annotations

import math
from enum import Enum, auto

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, operands, require, with_absent
from onert.ir.types import CallTypes, TensorType

from .masked_attention import require_keys

NO_ROOM = "{} is no place for the first token: not all would be in the cache"
"""The rule for the first place of a sequence."""
NO_BEAM = "a key comes from beam {}, which does not exist"
"""The rule for beams."""

UNSEEN = float(np.finfo(np.float32).min)
"""The score of a place that a token does not see."""


class Shown(Enum):
    """What attention returns of its scores [batch, heads, tokens, places] beside its result."""

    SCORES = auto()
    """The scores, with their limits and bias; `UNSEEN` for places that a token does not see."""
    WEIGHTS = auto()
    """Their softmax."""


@frozen
class CachedAttention(Op):
    """Attention of the last tokens of sequences to these and the tokens before them, in a cache with more places.

    - `q`: float32 [batch, heads, tokens, n]
    - `k`, `v`: float32 [batch, key heads, places, n or m], which include the tokens' own; adjacent heads share keys
    - `first`: int64 [batch], the place of each sequence's first token; the others follow
    - `ends`: int64 [batch], optional: tokens only see places before these
    - `bias`: float32 [1 or batch, 1 or heads, 1 or tokens, places], optional, added to the scores
    - `sinks`: float32 [heads], optional: a score for each head that has no value
    - `blocks`: bool [layouts, rows, columns], optional: whether the tokens of a block of `block` places see those of
      another; heads have layouts in turn
    - `beams`: int32 [batch / beams, beams, places], optional: from which beam of its sequence a beam has each key but
      its own

    Result: [batch, heads, tokens, m], the softmax of `cap * tanh(q · k * scale / cap)` (or without `cap`, of
    `q · k * scale`) times the values. A token sees places up to its own, with `window` only so many; if not `causal` it
    sees those of all tokens. What other places hold does not matter, if values there are finite.
    """

    scale: float = 1.0
    causal: bool = True
    window: int = 0
    cap: float = 0.0
    block: int = 0
    shown: Shown | None = None

    params = operands("q k v first ends? bias? sinks? blocks? beams?")

    def infer(
        self, q: TensorType, k: TensorType, v: TensorType, first: TensorType, *more: TensorType | None
    ) -> TensorType | tuple[TensorType, TensorType]:
        ends, bias, sinks, blocks, beams = with_absent(more, 5)
        for x, name in ((q, "q"), (k, "k"), (v, "v"), (bias, "bias")):
            fits = x is None or (x.dtype is DType.FLOAT32 and x.rank == 4)
            require(fits, f"{name} is {x}, expected f32 of 4 dimensions")
        batch, heads, tokens, n = q.shape
        own, places = k.shape[1:3]
        require_keys(heads, own, (k, (batch, own, places, n)), (v, (batch, own, places, v.shape[3])))
        for at, name in ((first, "first"), (ends, "ends")):
            fits = at is None or (at.dtype is DType.INT64 and at.rank == 1 and shapes.compatible(at.shape, (batch,)))
            require(fits, f"{name} is {at}, expected i64[{batch}]")
        if bias is not None:
            sizes = zip(bias.shape, (batch, heads, tokens), strict=False)
            fits = all(x in (1, None) or size in (x, None) for x, size in sizes)
            require(
                fits and shapes.compatible(bias.shape[3:], (places,)),
                f"bias is {bias}, expected up to {shapes.text((batch, heads, tokens, places))}",
            )
        if sinks is not None:
            fits = sinks.dtype is DType.FLOAT32 and sinks.rank == 1 and shapes.compatible(sinks.shape, (heads,))
            require(fits, f"sinks are {sinks}, expected a number for each of {heads} heads")
        if blocks is not None:
            self._require_blocks(blocks, places)
        if beams is not None:
            fits = beams.dtype is DType.INT32 and beams.rank == 3 and shapes.compatible(beams.shape[2:], (places,))
            require(fits, f"beams are {beams}, expected i32 and {places} places")
            count = shapes.num_elements(beams.shape[:2])
            require(count is None or batch in (count, None), f"beams are {beams}, expected {batch} in all")
        y = q.result((batch, heads, tokens, v.shape[3]))
        return y if self.shown is None else (y, q.result((batch, heads, tokens, places)))

    def _require_blocks(self, blocks: TensorType, places: int | None) -> None:
        require(blocks.dtype is DType.BOOL and blocks.rank == 3, f"blocks are {blocks}, expected bool, rank 3")
        require(self.block > 0, f"blocks have {self.block} places, expected at least 1")
        require(blocks.shape[0] != 0, f"blocks are {blocks}, expected at least one layout")
        for count in blocks.shape[1:]:
            enough = count is None or places is None or count * self.block >= places
            require(enough, f"blocks are {blocks} of {self.block}, expected enough for {places} places")

    def flops(self, types: CallTypes) -> int:
        batch, heads, tokens, n = (d or 0 for d in types.input(0).shape)
        return 2 * batch * heads * tokens * (types.input(1).shape[2] or 0) * (n + (types.input(2).shape[3] or 0))

    def evaluate(self, q: Array, k: Array, v: Array, first: Array, *more: Array | None) -> Array | tuple[Array, Array]:
        ends, bias, sinks, blocks, beams = with_absent(more, 5)
        batch, heads, tokens, _ = q.shape
        places = k.shape[2]
        out = np.empty((batch, heads, tokens, v.shape[3]), np.float32)
        shown = np.full((batch, heads, tokens, places), UNSEEN if self.shown is Shown.SCORES else 0, np.float32)
        for item in range(batch):
            start = int(first[item])
            require(0 <= start <= places - tokens, NO_ROOM.format(start))
            keys, values = (_of_beams(x, item, start, beams) for x in (k, v))
            columns, rows = np.arange(start + tokens), np.arange(start, start + tokens)[:, None]
            seen = columns <= rows if self.causal else np.ones((tokens, len(columns)), np.bool_)
            seen = seen & (columns > rows - self.window) if self.window else seen
            seen = seen if ends is None else seen & (columns < ends[item])
            for head in range(heads):
                shared = head // (heads // k.shape[1])
                x = q[item, head] @ keys[shared, : len(columns)].T * np.float32(self.scale)
                x = np.float32(self.cap) * np.tanh(x / np.float32(self.cap)) if self.cap else x
                if bias is not None:
                    part = bias[item % len(bias), head % bias.shape[1]]
                    x = x + part[:, : len(columns)]
                own = seen
                if blocks is not None:
                    layout = blocks[head % len(blocks)]
                    own = seen & layout[rows // self.block, columns // self.block]
                known = np.where(own, x, np.float32(UNSEEN))
                x = np.where(own, x, np.float32(-math.inf))
                sink = -math.inf if sinks is None else float(sinks[head])
                top = np.maximum(x.max(1, keepdims=True, initial=-math.inf), np.float32(sink))
                powers = np.exp(x - top)
                total = powers.sum(1, keepdims=True) + np.exp(np.float32(sink) - top)
                weights = powers / total
                out[item, head] = weights @ values[shared, : len(columns)]
                shown[item, head, :, : len(columns)] = known if self.shown is Shown.SCORES else weights
        return out if self.shown is None else (out, shown)


def _of_beams(x: Array, item: int, start: int, beams: Array | None) -> Array:
    """The keys or values [heads, places, n] of a beam, those before `start` from the beams that it has them from."""
    if beams is None:
        own: Array = x[item]
        return own
    count = beams.shape[1]
    sequence, beam = divmod(item, count)
    origin = beams[sequence, beam, :start]
    for each in origin:
        require(0 <= each < count, NO_BEAM.format(each))
    found: Array = x[item].copy()
    found[:, :start] = x[sequence * count + origin, :, np.arange(start)].transpose(1, 0, 2)
    return found
