"""Compare programs on a machine whose speed drifts: short rounds in turn, the median of the rounds' ratios.

A clock that moves between two states for seconds at a time makes the minimum of one run against the minimum of
another mislead. What repeats: rounds of some 20 ms of each contestant in turn, the order reversed every other round,
the minimum of the calls inside a round, the ratio of those minima round by round, and of the ratios the median. A
program entered twice must come out at 1.00.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from attrs import frozen

from onert.ir.value import Value


@frozen
class Contestant(Value):
    """A name, and a call that runs one inference."""

    name: str
    call: Callable[[], object]


@frozen
class Result(Value):
    """One contestant's times in seconds per call: the minimum of each round."""

    name: str
    rounds: tuple[float, ...]

    @property
    def minimum(self) -> float:
        return min(self.rounds)

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    def ratio(self, other: Result) -> float:
        """How many times faster this one is than `other`: the median over the rounds."""
        return statistics.median(theirs / mine for mine, theirs in zip(self.rounds, other.rounds, strict=True))


def _calls_per_round(call: Callable[[], object], seconds: float) -> int:
    """How many calls fill a round; the first calls warm up and are not counted."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    return max(1, min(100_000, round(seconds / once)))


def _round(call: Callable[[], object], count: int) -> float:
    clock = time.perf_counter
    best = float("inf")
    for _ in range(count):
        start = clock()
        call()
        best = min(best, clock() - start)
    return best


def contest(
    contestants: Sequence[Contestant], rounds: int = 60, round_seconds: float = 0.02, budget_seconds: float = 60.0
) -> tuple[Result, ...]:
    """Run all contestants in turn; at least 5 rounds, at most `rounds`, ending when the budget is spent."""
    counts = [_calls_per_round(c.call, round_seconds) for c in contestants]
    times: list[list[float]] = [[] for _ in contestants]
    order = list(range(len(contestants)))
    end = time.perf_counter() + budget_seconds
    for turn in range(rounds):
        for i in order if turn % 2 == 0 else reversed(order):
            times[i].append(_round(contestants[i].call, counts[i]))
        if turn >= 4 and time.perf_counter() > end:
            break
    return tuple(Result(c.name, tuple(t)) for c, t in zip(contestants, times, strict=True))
