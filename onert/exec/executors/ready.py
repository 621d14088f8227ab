"""The queue of ready steps, highest rank first."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from onert.backend import Routine


class Ready:
    """The steps of one run whose dependencies have run, by rank; of equals the first in the compiler's order.

    Several threads may call `take` and `done` at the same time: each change is one call of a function written
    in C.
    """

    __slots__ = ("_heap", "_left", "_ranks", "_routine", "_waiting", "over")

    def __init__(self, routine: Routine) -> None:
        self._routine = routine
        self._ranks = routine.ranks or (0.0,) * len(routine.steps)
        # One less than the number of dependencies: the last one to finish finds its iterator exhausted.
        self._waiting = [iter(range(len(needed) - 1)) for needed in routine.dependencies]
        self._heap = [(-self._ranks[step], step) for step, needed in enumerate(routine.dependencies) if not needed]
        heapify(self._heap)
        self._left = iter(range(len(routine.steps) - 1))
        self.over = not routine.steps
        """Whether all steps have run."""

    def __bool__(self) -> bool:
        return bool(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def take(self) -> int:
        """The ready step with the highest rank."""
        return heappop(self._heap)[1]

    def done(self, step: int) -> int:
        """Note that a step has run. Returns how many other steps became ready."""
        found = 0
        for follower in self._routine.followers[step]:
            if next(self._waiting[follower], None) is None:
                heappush(self._heap, (-self._ranks[follower], follower))
                found += 1
        if next(self._left, None) is None:
            self.over = True
        return found
