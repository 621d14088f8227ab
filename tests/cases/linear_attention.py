"""Cases of linear attention; results by the definition, one number at a time."""

from __future__ import annotations

import numpy as np

from onert.ir import Array
from onert.ir.ops.recurrent.linear_attention import LinearAttention

from .case import Case

_RNG = np.random.default_rng(3)
_SCALE = 0.5


def _some(*shape: int) -> Array:
    return _RNG.uniform(-1, 1, shape).astype(np.float32)


def _head(
    q: Array, k: Array, v: Array, decay: Array | None, rate: Array | None, state: Array
) -> tuple[list[Array], Array]:
    """What the queries [tokens, queries, n] of a head find, and its last state; keys and values are [tokens, n]."""
    s, found = state.astype(np.float64), []
    for at in range(len(k)):
        if decay is not None:
            s = np.diag(np.broadcast_to(decay[at], len(s))) @ s
        value = v[at] if rate is None else (v[at] - s.T @ k[at]) * rate[at]
        s = s + np.outer(k[at], value)
        found.append(np.stack([_SCALE * s.T @ query for query in q[at]]))
    return found, s


def _layer(
    name: str,
    sizes: tuple[int, int, int],
    heads: tuple[int, int, int],
    tokens: int,
    decay: int = 0,
    rate: int = 0,
    bounds: tuple[int, ...] = (),
) -> Case:
    """A layer with states [count, n, width]; its heads are those of queries, keys and values."""
    (count, n, width), (queries, keys, own) = sizes, heads
    batch = 1 if bounds else count
    q, k, v = _some(batch, tokens, queries, n), _some(batch, tokens, keys, n), _some(batch, tokens, own, width)
    factors = np.abs(_some(batch, tokens, own, decay)) if decay else None
    rates = np.abs(_some(batch, tokens, rate)) if rate else None
    state = _some(count, own, n, width)
    y, last = np.zeros((batch, tokens, max(queries, own), width)), np.zeros_like(state)
    group = max(queries // own, 1)
    for item in range(count):
        b, places = (0, slice(*bounds[item : item + 2])) if bounds else (item, slice(tokens))
        for head in range(own):
            mine = slice(head * group, head * group + group)
            read = mine if queries >= own else slice(head * queries // own, head * queries // own + 1)
            rows, last[item, head] = _head(
                q[b, places, read],
                k[b, places, head * keys // own],
                v[b, places, head],
                None if factors is None else factors[b, places, head],
                None if rates is None else rates[b, places, head if rate > 1 else 0],
                state[item, head],
            )
            if rows:
                y[b, places, mine] = rows
    places_ = np.array(bounds, np.int64 if tokens % 2 else np.int32) if bounds else None
    inputs = (q, k, v, factors, rates, state, *(() if places_ is None else (places_,)))
    return Case(name, LinearAttention(_SCALE), inputs, (y.astype(np.float32), last), tolerance=2e-5)


CASES: list[Case] = [
    _layer("keys and values are added", (2, 8, 16), (2, 2, 2), 3),
    _layer("a token, and columns for no whole register", (1, 3, 5), (1, 1, 1), 1),
    _layer("no tokens", (2, 4, 6), (1, 1, 1), 0),
    _layer("an odd number of tokens and rows, decaying by head", (2, 5, 70), (2, 2, 2), 5, decay=1),
    _layer("decaying by row", (1, 16, 33), (2, 2, 2), 4, decay=16),
    _layer("differences, at one rate", (2, 8, 20), (2, 2, 2), 3, rate=1),
    _layer("differences, at a rate for each head", (1, 9, 64), (3, 3, 3), 4, decay=1, rate=3),
    _layer("differences, decaying by row", (1, 7, 40), (2, 2, 2), 3, decay=7, rate=2),
    _layer("queries share states", (1, 8, 24), (6, 1, 2), 3, decay=1, rate=2),
    _layer("states share queries and keys", (2, 8, 24), (2, 1, 4), 2, decay=8, rate=4),
    _layer("states of many rows", (1, 130, 72), (1, 1, 1), 2, decay=1, rate=1),
    _layer("sequences one behind another", (3, 8, 16), (2, 2, 2), 7, decay=1, rate=2, bounds=(0, 2, 2, 7)),
    _layer("sequences that are added", (2, 5, 12), (2, 1, 2), 6, bounds=(0, 5, 6)),
]
