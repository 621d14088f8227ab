"""Calls that any of several workers may execute (work stealing)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any

Call = Callable[[], Sequence[Any]]
Done = Callable[[Any], None]
"""Called with the result of a call, or its error."""
Made = Callable[[int], tuple[Call, Done]]
"""Returns the call for the worker with this number, and the function that gets its result."""


class Offer:
    """A call queued at one worker, its owner, that other workers may take. The first one to take it executes it.

    `owned` has an element for each call that others took from the owner and that is still in its queue.
    """

    __slots__ = ("_made", "_owned", "line")

    def __init__(self, line: SharedQueue, made: Made, owned: list[None]) -> None:
        self.line = line
        self._made = [made]
        self._owned = owned

    @property
    def is_open(self) -> bool:
        """Whether no worker has taken it."""
        return bool(self._made)

    def take(self, at: int) -> tuple[Call, Done] | None:
        """Take the call for worker `at`; None if another worker has taken it."""
        try:
            return self._made.pop()(at)
        except IndexError:
            return None

    def take_away(self, at: int) -> tuple[Call, Done] | None:
        """Take the call for a worker other than the owner."""
        self._owned.append(None)  # before the owner can see that it was taken
        found = self.take(at)
        if found is None:
            self._owned.pop()
        return found


class SharedQueue:
    """The offers of several workers, ordered by priority (lowest first) and then by arrival.

    Each offer is also in its owner's queue, so none is lost if a worker misses it here. Taken offers are dropped when
    they reach the front.
    """

    __slots__ = ("__weakref__", "_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Offer]] = []
        self._numbers = count()

    def add(self, priority: int, offer: Offer) -> None:
        """Publish an offer to all workers."""
        self._first()
        heappush(self._heap, (priority, next(self._numbers), offer))

    def urgency(self) -> int | None:
        """The priority of the first offer that is still open; None if there is none."""
        first = self._first()
        return None if first is None else first[0]

    def _first(self) -> tuple[int, int, Offer] | None:
        heap = self._heap
        try:
            while not heap[0][2].is_open:
                heappop(heap)
            return heap[0]
        except IndexError:
            return None

    def take(self, at: int, own: Offer | None = None) -> tuple[tuple[Call, Done] | None, bool]:
        """Take the first call for worker `at`. Returns the call, and whether it is that of the worker's `own` offer."""
        while True:
            try:
                offer = heappop(self._heap)[2]
            except IndexError:
                return (None, True) if own is None else (own.take(at), True)
            found = offer.take(at) if offer is own else offer.take_away(at)
            if found is not None or offer is own:
                return found, offer is own
