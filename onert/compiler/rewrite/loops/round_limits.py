"""How many rounds each loop of a model may make, if one run is limited in rounds and work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

FEWEST_ROUNDS = 1000
"""If a nested loop may make fewer rounds than this, it is left to the executor: such rounds are long, and the executor
counts the rounds of all loops."""


class RoundLimits:
    """The limits of a model's loops, in which the graph being processed may be nested.

    A loop may make at most `most` rounds. If one run is limited to `work` additions, each of the model's `loops` has an
    equal share of them. None means no limit.
    """

    def __init__(self, most: int | None, work: int | None, loops: int) -> None:
        self._most = most
        self._work = work
        self._share = None if work is None else work // max(1, loops)
        self._enclosing: list[int | None] = []

    @property
    def limited(self) -> bool:
        """Whether a loop that may never end is stopped after some rounds, and after some work."""
        return self._most is not None and self._share is not None

    def bounded(self, rounds: int | None) -> int | None:
        """The most rounds of a loop that makes at most so many."""
        return self._most if rounds is None or self._most is None else min(rounds, self._most)

    @contextmanager
    def inside(self, rounds: int | None) -> Iterator[None]:
        """Process what is in a loop of at most so many rounds, None if that is unknown."""
        self._enclosing.append(rounds)
        try:
            yield
        finally:
            self._enclosing.pop()

    def most_rounds(self, work: int, known: int | None) -> int | None:
        """The most rounds of so much work that a loop may make; None if unlimited, 0 if the executor has to count them.

        Once nested loops are enclosed, nothing counts their rounds together, so the product of their bounds must stay
        within the limit of a run: a loop with a `known` number of rounds has that bound, the others share evenly what
        those leave, or if that is little, share with them.
        """
        if self._most is None or self._work is None or self._share is None:
            return self._most
        times = 1
        for rounds in self._enclosing:
            times *= max(1, rounds or 1)
        allowed = max(1, self._share // work)
        fits = known is not None and (known * times * work <= self._work or (self._enclosing and known <= allowed))
        if fits and known is not None and 0 < known <= self._most:
            return known
        if not self._enclosing:
            return min(self._most, allowed)
        left = (allowed // times) ** (1 / (1 + self._enclosing.count(None)))
        fair_share = int(max(left, allowed ** (1 / (1 + len(self._enclosing)))))
        return min(self._most, fair_share) if fair_share >= FEWEST_ROUNDS else 0
