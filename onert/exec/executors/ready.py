"""Which steps are ready, the most urgent first."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from onert.backend import Routine


class Ready:
    """The steps of one run whose dependencies have run, by rank; of equals the first in the compiler's order."""

    __slots__ = ("_heap", "_ranks", "_routine", "_waiting", "left")

    def __init__(self, routine: Routine) -> None:
        self._routine = routine
        self._ranks = routine.ranks or (0.0,) * len(routine.steps)
        self._waiting = [len(needed) for needed in routine.dependencies]
        self._heap = [(-self._ranks[step], step) for step, count in enumerate(self._waiting) if count == 0]
        heapify(self._heap)
        self.left = len(routine.steps)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def take(self) -> int:
        """The most urgent step that is ready."""
        return heappop(self._heap)[1]

    def done(self, step: int) -> int:
        """The step has run; how many are ready now that were not before."""
        self.left -= 1
        found = 0
        for follower in self._routine.followers[step]:
            self._waiting[follower] -= 1
            if self._waiting[follower] == 0:
                heappush(self._heap, (-self._ranks[follower], follower))
                found += 1
        return found
