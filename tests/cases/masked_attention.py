"""Cases of attention with heads next to the features, and of positions in its caches."""

from __future__ import annotations

import numpy as np
from formulas import floats

from onert.ir import Array
from onert.ir.ops.contraction.masked_attention import MaskedAttention, StoreTokens

from .case import Case


def _attention(name: str, heads: int, own: int, mask: Array, scale: float = 0.0, batch: int = 1, n: int = 4) -> Case:
    arrays = (
        floats((batch, 3, heads, n), 19),
        floats((batch, 5, own, n), 23),
        floats((batch, 5, own, n + 4), 29),
        mask,
    )
    return Case(name, MaskedAttention(scale), arrays, tolerance=1e-4)


def _tokens(name: str, positions: list[int], stored: list[int]) -> Case:
    """Token i goes to place `stored[i]`; tokens after those are not stored."""
    caches = [floats((1, 6, 2, 3), step) for step in (41, 43)]
    new = [floats((1, len(positions), 2, 3), step) for step in (31, 37)]
    expected = [x.copy() for x in caches]
    for cache, rows in zip(expected, new, strict=True):
        for token, place in enumerate(stored):
            if place >= 0:
                cache[0, place] = rows[0, token]
    return Case(name, StoreTokens(), (*caches, np.int32(positions), *new), tuple(expected))


_CAUSAL = np.triu(np.full((1, 1, 3, 5), -np.inf, np.float32), 3)

CASES = [
    Case(
        "two places with equal scores",
        MaskedAttention(),
        (
            np.ones((1, 1, 1, 2), np.float32),
            np.ones((1, 2, 1, 2), np.float32),
            np.float32([2, 8, 4, 6]).reshape(1, 2, 1, 2),
            np.zeros((1, 1, 1, 1), np.float32),
        ),
        (np.float32([3, 7]).reshape(1, 1, 1, 2),),
    ),
    _attention("as many heads of keys", 2, 2, _CAUSAL),
    _attention("heads share keys, and a mask", 4, 2, _CAUSAL, 0.25),
    _attention("heads share keys, and each has a mask", 4, 2, floats((1, 4, 3, 5), 11)),
    _attention("one head of keys, and a mask for all tokens", 4, 1, floats((2, 1, 1, 5), 11), batch=2),
    _attention("heads have a mask for all tokens", 4, 2, floats((1, 4, 1, 1), 11)),
    _attention("wide rows", 4, 2, _CAUSAL, n=16),
    _tokens("a token", [4], [4]),
    _tokens("tokens in order, with a gap", [1, 2, 5], [1, 2, 5]),
    _tokens("zeros after the last token", [2, 3, 0, 0], [2, 3]),
    _tokens("a rise after a fall", [3, 1, 4], [3]),
    _tokens("a place twice", [2, 2, 3], [-1, 2, 3]),
    _tokens("no token", [-3, 1], []),
    _tokens("a skipped token", [-1, 1], [-1, 1]),
    _tokens("the largest number, then a fall", [0, 2, -(2**31)], [0, 2]),
]
