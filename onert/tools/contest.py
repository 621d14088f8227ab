"""Compare programs on a machine whose speed drifts, by interleaved rounds and the median of their ratios.

A processor clock that stays in one of two states for seconds at a time makes it misleading to compare the minima of two
separate runs. This is repeatable: the contestants take turns with rounds of about 20 ms and at least three calls, in
reverse order every other round; a round's result is the minimum over its calls; the overall ratio is the median of the
per-round ratios. A program entered twice must get a ratio of 1.00.

Threads of some runtimes keep spinning after a call, and take a processor from the next contestant. So a round begins
with a call that is not measured.
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
    """A contestant's minimum time per call in each round, in seconds."""

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


_LEAST = 3
"""The fewest calls per round: with one thread per processor, a single call often includes a preemption."""


def _calls_per_round(call: Callable[[], object], seconds: float) -> int:
    """How many calls fill a round, estimated from the second call (the first one warms up)."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    return max(_LEAST, min(100_000, round(seconds / once)))


def _round(call: Callable[[], object], count: int) -> float:
    """The minimum time of `count` calls after one that is not measured."""
    clock = time.perf_counter
    best = float("inf")
    call()
    for _ in range(count):
        start = clock()
        call()
        best = min(best, clock() - start)
    return best


def contest(
    contestants: Sequence[Contestant], rounds: int = 60, round_seconds: float = 0.02, budget_seconds: float = 60.0
) -> tuple[Result, ...]:
    """Run all contestants in turn for at least 5 and at most `rounds` rounds, until the time budget is spent."""
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
