"""Chooses the faster of two ways to run the same commands on this machine, by timing both.

A plan's estimates cannot cover how far the processors are apart, which on a virtual machine changes while a program
runs, or whether others use them. So some runs are timed, alternating between both ways, and the others use the faster
one. This is repeated from time to time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from onert.backend import HasParts, Part, Redirect, Redirects
from onert.backend.kernel import together

MEASURED = 7
"""The number of runs of each way in a comparison, whose medians are compared."""
WARMING, WARM_RUNS = 300_000, 16
"""The nanoseconds of side-by-side runs, and the most of these runs, that warm up a comparison: threads that slept while
commands ran in turn join the first few too late, which would make side-by-side runs look slow.
"""
CLEARLY = 0.97
"""The largest relative time of side-by-side runs at which they are preferred."""
LEAST, MOST = 64, 4096
"""The number of runs until the next comparison: the least at first and after a change, otherwise doubled."""


class MeasuredChoice:
    """A call that is one of two with the same results; `clock` returns nanoseconds."""

    __slots__ = ("_between", "_chosen", "_clock", "_left", "_times", "_warmed", "_ways")

    def __init__(
        self, sequential: HasParts, side_by_side: HasParts, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._ways = (sequential, side_by_side)
        self._clock = clock
        self._chosen: int | None = None
        self._between = LEAST
        self._left = 0
        self._warmed: tuple[int, int] = (0, 0)
        self._times: tuple[list[int], list[int]] = ([], [])

    def __call__(self) -> None:
        if self._left and self._chosen is not None:
            self._left -= 1
            self._ways[self._chosen]()
        else:
            self._measure()

    def _measure(self) -> None:
        """Time a run of the way with fewer measurements, side by side first; after the last one, choose."""
        sequential, side_by_side = self._times
        took, runs = self._warmed
        warm = took >= WARMING or runs >= WARM_RUNS
        way = int(not warm or len(side_by_side) <= len(sequential))
        begun = self._clock()
        self._ways[way]()
        taken = self._clock() - begun
        if not warm:
            self._warmed = took + taken, runs + 1
            return
        self._times[way].append(taken)
        if len(sequential) == MEASURED:
            chosen = int(median(side_by_side) < CLEARLY * median(sequential))
            self._between = min(2 * self._between, MOST) if chosen == self._chosen else LEAST
            self._chosen, self._left, self._warmed, self._times = chosen, self._between, (0, 0), ([], [])

    def redirect(self, operands: frozenset[int]) -> Redirect | None:
        both = [way.redirect(operands) if isinstance(way, Redirects) else None for way in self._ways]
        return together(both)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the side-by-side commands: observers see the plan."""
        return self._ways[1].parts
