"""Calls that any of several workers may make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any

Call = Callable[[], Sequence[Any]]
Done = Callable[[Any], None]
"""Told what a call gave, or its error."""
Made = Callable[[int], tuple[Call, Done]]
"""The call for one of the workers, by its number, and who is told what comes of it."""


class Offer:
    """A call that lies before one worker, its owner, and that another one may take: who does so first makes it.

    `owned` has an element for each call that others took from the owner and that it has not come across yet.
    """

    __slots__ = ("_made", "_owned", "line")

    def __init__(self, line: Line, made: Made, owned: list[None]) -> None:
        self.line = line
        self._made = [made]
        self._owned = owned

    @property
    def is_open(self) -> bool:
        """Whether nobody has taken it."""
        return bool(self._made)

    def take(self, at: int) -> tuple[Call, Done] | None:
        """The call for the worker number `at`; None where another one has it."""
        try:
            return self._made.pop()(at)
        except IndexError:
            return None

    def take_away(self, at: int) -> tuple[Call, Done] | None:
        """The same for one that is not the owner."""
        self._owned.append(None)  # before the owner can find that it was taken
        found = self.take(at)
        if found is None:
            self._owned.pop()
        return found


class Line:
    """The offers of some workers: those of lower priority first, then in the order in which they came, whoever owns
    them.

    Each lies before its owner too, so whoever finds none here loses nothing. Offers that were taken are forgotten when
    they come first.
    """

    __slots__ = ("__weakref__", "_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Offer]] = []
        self._numbers = count()

    def add(self, priority: int, offer: Offer) -> None:
        """Let all workers know of an offer."""
        self._first()
        heappush(self._heap, (priority, next(self._numbers), offer))

    def urgency(self) -> int | None:
        """The priority of the first offer that nobody has taken; None where there is none."""
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
        """The first call, for the worker number `at`, and whether it is that of its `own` offer."""
        while True:
            try:
                offer = heappop(self._heap)[2]
            except IndexError:
                return (None, True) if own is None else (own.take(at), True)
            found = offer.take(at) if offer is own else offer.take_away(at)
            if found is not None or offer is own:
                return found, offer is own
