"""The largest total size of tensors that may all be alive at the same time if steps have no fixed order."""

from __future__ import annotations

import numpy as np

from .problem import Integers, Mask

MOST = 1 << 10
"""The most tensors for which the exact bound is computed."""


def heaviest_antichain(weights: Integers, before: Mask) -> int:
    """The largest sum of weights over elements of which none precedes another; `before` is transitive.

    By Dilworth's theorem it is the minimum flow through chains that cover every element as often as its weight: the sum
    of all weights minus the maximum flow from elements to later ones.
    """
    supply, demand = weights.copy(), weights.copy()
    flow = np.zeros(before.shape, np.int64)
    _hand_on(supply, demand, before, flow)
    while (path := _augmenting(supply, demand, before, flow)) is not None:
        _augment(path, supply, demand, flow)
    return int(weights.sum() - flow.sum())


def _hand_on(supply: Integers, demand: Integers, before: Mask, flow: Integers) -> None:
    """An initial flow: each element takes from its predecessors, the latest of them first."""
    for to in np.argsort(before.sum(axis=0), kind="stable").tolist():
        for source in np.flatnonzero(before[:, to] & (supply > 0))[::-1].tolist():
            amount = min(supply[source], demand[to])
            if amount == 0:
                break
            flow[source, to] += amount
            supply[source] -= amount
            demand[to] -= amount


def _augmenting(supply: Integers, demand: Integers, before: Mask, flow: Integers) -> list[int] | None:
    """An augmenting path from an element with supply to one with demand (givers and takers alternate); None if none."""
    giver_of = np.full(len(supply), -1, np.int64)
    taker_of = np.full(len(supply), -1, np.int64)
    givers = np.flatnonzero(supply > 0)
    seen: Mask = supply > 0
    while len(givers):
        new = np.flatnonzero(before[givers].any(axis=0) & (giver_of < 0))
        giver_of[new] = givers[before[np.ix_(givers, new)].argmax(axis=0)]
        ends = new[demand[new] > 0]
        if not len(new):
            return None
        if len(ends):
            return _path(int(ends[0]), giver_of, taker_of)
        back: Mask = flow[:, new] > 0
        givers = np.flatnonzero(back.any(axis=1) & ~seen)
        taker_of[givers] = new[back[givers].argmax(axis=1)]
        seen[givers] = True
    return None


def _path(end: int, giver_of: Integers, taker_of: Integers) -> list[int]:
    path = [end]
    while True:
        giver = int(giver_of[path[-1]])
        path.append(giver)
        if taker_of[giver] < 0:
            return path[::-1]
        path.append(int(taker_of[giver]))


def _augment(path: list[int], supply: Integers, demand: Integers, flow: Integers) -> None:
    gives = list(zip(path[::2], path[1::2], strict=True))
    takes = list(zip(path[2::2], path[1:-1:2], strict=True))
    amount = min(supply[path[0]], demand[path[-1]], *(flow[giver, taker] for giver, taker in takes))
    for giver, taker in gives:
        flow[giver, taker] += amount
    for giver, taker in takes:
        flow[giver, taker] -= amount
    supply[path[0]] -= amount
    demand[path[-1]] -= amount
