"""Topological orders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from heapq import heappop, heappush
from typing import Any


def followers(needs: Sequence[Collection[int]]) -> tuple[tuple[int, ...], ...]:
    """For each index, the indices that need it."""
    found: list[list[int]] = [[] for _ in needs]
    for at, needed in enumerate(needs):
        for each in needed:
            found[each].append(at)
    return tuple(map(tuple, found))


def around(needs: Sequence[Collection[int]]) -> tuple[list[int], list[int]]:
    """For each index in topological order, all that must precede it and all that must follow it, as bit sets."""
    before, after = [0] * len(needs), [0] * len(needs)
    for at, needed in enumerate(needs):
        for each in needed:
            before[at] |= before[each] | 1 << each
    for at in range(len(needs) - 1, -1, -1):
        for each in needs[at]:
            after[each] |= after[at] | 1 << at
    return before, after


def in_order(
    needs: Sequence[Collection[int]],
    rank: Callable[[int], Any] | None = None,
    kinds: Sequence[Hashable] | None = None,
) -> list[int]:
    """The indices of `needs`, each after those that it needs; members of cycles are omitted.

    Among the indices that are ready, the one with the lowest rank comes first (without ranks, the lowest index). With
    `kinds`, an index of another kind than the previous one follows only if none of that kind is ready.
    """
    waiting, after = [len(needed) for needed in needs], followers(needs)
    ready: dict[Hashable, list[tuple[Any, int]]] = {}

    def put(at: int) -> None:
        heappush(ready.setdefault(kinds and kinds[at], []), (rank(at) if rank else at, at))

    for at, count in enumerate(waiting):
        if not count:
            put(at)
    found: list[int] = []
    kind: Hashable = None
    while any(ready.values()):
        if not ready.get(kind):
            kind = min((queue[0], each) for each, queue in ready.items() if queue)[1]
        _, at = heappop(ready[kind])
        found.append(at)
        for follower in after[at]:
            waiting[follower] -= 1
            if not waiting[follower]:
                put(follower)
    return found
