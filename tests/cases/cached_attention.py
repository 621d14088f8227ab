"""Cases of attention to caches; results by the definition, one score at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onert.ir import Array
from onert.ir.ops.contraction.cached_attention import UNSEEN, CachedAttention, Shown

from .case import Case

_RNG = np.random.default_rng(11)


def _some(*shape: int) -> Array:
    return _RNG.uniform(-1, 1, shape).astype(np.float32)


def _expected(
    op: CachedAttention, q: Array, k: Array, v: Array, first: Array, more: dict[str, Array]
) -> tuple[Array, Array]:
    out = np.zeros((*q.shape[:3], v.shape[3]))
    shown = np.full((*q.shape[:3], k.shape[2]), UNSEEN if op.shown is Shown.SCORES else 0.0)
    for b, h, t in np.ndindex(*q.shape[:3]):
        own, place = h * k.shape[1] // q.shape[1], int(first[b]) + t
        last = place if op.causal else int(first[b]) + q.shape[2] - 1
        last = min(last, int(more["ends"][b]) - 1) if "ends" in more else last
        seen, scores, values = [], [], []
        for at in range(max(place - op.window + 1, 0) if op.window else 0, last + 1):
            if "blocks" in more and not more["blocks"][h % len(more["blocks"]), place // op.block, at // op.block]:
                continue
            source = b
            if "beams" in more and at < int(first[b]):
                count = more["beams"].shape[1]
                source = b // count * count + int(more["beams"][b // count, b % count, at])
            score = float(q[b, h, t].astype(np.float64) @ k[source, own, at]) * op.scale
            score = op.cap * math.tanh(score / op.cap) if op.cap else score
            if "bias" in more:
                bias = more["bias"]
                score += float(bias[b % bias.shape[0], h % bias.shape[1], t % bias.shape[2], at])
            seen.append(at)
            scores.append(score)
            values.append(v[source, own, at].astype(np.float64))
        powers = np.exp(scores)
        weights = powers / (powers.sum() + (math.exp(float(more["sinks"][h])) if "sinks" in more else 0))
        out[b, h, t] = weights @ np.array(values)
        shown[b, h, t, seen] = scores if op.shown is Shown.SCORES else weights
    return out.astype(np.float32), shown.astype(np.float32)


def _layer(
    name: str,
    op: CachedAttention,
    sizes: tuple[int, int, int],
    heads: tuple[int, int] = (2, 2),
    features: tuple[int, int] = (16, 16),
    first: tuple[int, ...] = (),
    **more: Array,
) -> Case:
    """A layer of some batches, tokens and places."""
    batch, tokens, places = sizes
    q, k = _some(batch, heads[0], tokens, features[0]), _some(batch, heads[1], places, features[0])
    v, at = _some(batch, heads[1], places, features[1]), np.array(first, np.int64)
    for item, start in enumerate(first):
        for x in (k, v):
            x[item, :, start + tokens :] = np.nan
    names = ("ends", "bias", "sinks", "blocks", "beams")
    rest: list[Any] = [more.get(each) for each in names]
    while rest and rest[-1] is None:
        rest.pop()
    expected = _expected(op, q, k, v, at, more)
    return Case(name, op, (q, k, v, at, *rest), expected[: 2 if op.shown else 1], tolerance=2e-5)


_BLOCKS = np.tril(np.ones((2, 3, 3), np.bool_))
_BLOCKS[0, 2, 0] = _BLOCKS[1, 2, 1] = False
_BEAMS = _RNG.integers(0, 2, (2, 2, 6)).astype(np.int32)

CASES: list[Case] = [
    _layer("a token", CachedAttention(0.3), (2, 1, 9), first=(8, 3)),
    _layer("a first token", CachedAttention(0.3), (1, 1, 1), first=(0,)),
    _layer("tokens after others", CachedAttention(0.5), (2, 3, 80), (6, 2), (32, 16), (70, 0)),
    _layer("tokens that see later ones", CachedAttention(0.5, causal=False), (1, 3, 8), (4, 1), first=(2,)),
    _layer(
        "tokens of sequences that end before the last",
        CachedAttention(0.5, causal=False),
        (2, 3, 8),
        first=(2, 0),
        ends=np.int64([4, 1]),
    ),
    _layer("a window", CachedAttention(0.5, window=5), (2, 2, 150), (4, 2), (16, 48), (140, 1)),
    _layer("limited scores", CachedAttention(2.0, cap=1.5), (1, 2, 12), first=(4,)),
    _layer("a bias for all", CachedAttention(0.5), (2, 2, 12), first=(4, 9), bias=_some(1, 1, 2, 12)),
    _layer("a bias for each head", CachedAttention(0.5), (2, 1, 7), first=(4, 6), bias=_some(2, 2, 1, 7)),
    _layer("scores without values", CachedAttention(0.5), (1, 2, 12), (4, 2), first=(4,), sinks=_some(4)),
    _layer("blocks", CachedAttention(0.5, block=16), (2, 5, 48), (4, 2), first=(14, 43), blocks=_BLOCKS),
    _layer("beams", CachedAttention(0.5), (4, 1, 6), first=(5, 5, 0, 3), beams=_BEAMS),
    _layer("heads of an odd size", CachedAttention(0.5), (2, 3, 9), (4, 2), (5, 3), (6, 1)),
    _layer("shown scores", CachedAttention(0.5, cap=3.0, shown=Shown.SCORES), (2, 3, 9), (4, 2), first=(6, 1)),
    _layer("shown weights", CachedAttention(0.5, shown=Shown.WEIGHTS), (1, 2, 9), first=(1,), sinks=_some(2)),
    _layer("one layout for three heads", CachedAttention(0.5, block=4), (1, 5, 12), (3, 3), first=(7,), blocks=_BLOCKS),
]
