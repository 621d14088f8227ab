"""Which of two ways to run the same commands is faster on this machine, told from runs of both.

What a plan estimates it cannot know: how far the processors are from one another, which on a virtual machine changes
while a program runs, and whether others use them. So some runs are measured, both ways in turn, and the others go the
way that was faster. From time to time that is measured again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from onert.backend import HasParts, Part

MEASURED = 7
"""Runs of each way that a comparison takes. Their medians are compared."""
WARMING, WARM_RUNS = 300_000, 16
"""The nanoseconds of runs, and the most runs, before a comparison, side by side: threads that slept because all went in
turn come too late for the first few, and would make the others look slow.
"""
CLEARLY = 0.97
"""The part of the time in turn that the commands may take side by side to be run so."""
LEAST, MOST = 64, 4096
"""Runs until the next comparison: the least at first and after another outcome, else twice as many as before."""


class Faster:
    """A call that is one of two, whose results are the same; `clock` gives nanoseconds."""

    __slots__ = ("_between", "_chosen", "_clock", "_left", "_times", "_warmed", "_ways")

    def __init__(self, in_turn: HasParts, beside: HasParts, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._ways = (in_turn, beside)
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
        """A run of the way that has fewer measurements, as planned first; after the last one, the outcome."""
        in_turn, beside = self._times
        took, runs = self._warmed
        warm = took >= WARMING or runs >= WARM_RUNS
        way = int(not warm or len(beside) <= len(in_turn))
        begun = self._clock()
        self._ways[way]()
        taken = self._clock() - begun
        if not warm:
            self._warmed = took + taken, runs + 1
            return
        self._times[way].append(taken)
        if len(in_turn) == MEASURED:
            chosen = int(median(beside) < CLEARLY * median(in_turn))
            self._between = min(2 * self._between, MOST) if chosen == self._chosen else LEAST
            self._chosen, self._left, self._warmed, self._times = chosen, self._between, (0, 0), ([], [])

    @property
    def parts(self) -> tuple[Part, ...]:
        """Those of the commands side by side: who watches them sees the plan."""
        return self._ways[1].parts
