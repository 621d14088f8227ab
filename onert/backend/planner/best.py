"""The default planner: the best of the other planners, followed by a search if none of them reaches the bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from onert.ir.process import imports

from .first_fit import first_fit
from .greedy import greedy_by_breadth, greedy_by_size
from .orders import by_area, by_breadth, by_size, by_span
from .problem import Fit, Planner, PlanningProblem, height, lowest_gap, place, tightest_gap
from .recycle import recycle
from .wic import wic

CANDIDATES: tuple[Planner, ...] = (wic, greedy_by_breadth, greedy_by_size, first_fit, recycle)
ORDERS: tuple[Callable[[PlanningProblem], list[int]], ...] = (by_size, by_breadth, by_area, by_span)
PROMOTIONS = 8
EFFORT = 600_000
"""How many neighbours the search visits before it gives up: a fraction of a second, and only if it runs at all."""


def best(problem: PlanningProblem) -> list[int]:
    """The lowest plan of all planners, improved by a search while it is above the bound."""
    found: list[int] | None = None
    for offsets in _plans(problem):
        if found is None or height(problem, offsets) < height(problem, found):
            found = offsets
        if height(problem, found) <= problem.bound:
            break
    assert found is not None
    return found


def _plans(problem: PlanningProblem) -> Iterator[list[int]]:
    work = sum(len(near) for near in problem.neighbours) + len(problem) + 1
    for planner in CANDIDATES if work < EFFORT else CANDIDATES[:1]:
        yield planner(problem)
    tries = EFFORT // work
    yield from islice(_search(problem, tries), tries)


def _search(problem: PlanningProblem, tries: int) -> Iterator[list[int]]:
    for order in ORDERS:
        for fit in (lowest_gap, tightest_gap):
            yield from _promoted(problem, order(problem), fit, PROMOTIONS)
    yield from _exchanged(problem, by_size(problem), tries)


def _promoted(problem: PlanningProblem, order: Sequence[int], fit: Fit, rounds: int) -> Iterator[list[int]]:
    """Plans from orders that start with the tensors that ended above the bound in the previous plan."""
    for _ in range(rounds):
        offsets = place(problem, order, fit)
        yield offsets
        high = set(_high(problem, offsets))
        order = [*(i for i in order if i in high), *(i for i in order if i not in high)]


def _exchanged(problem: PlanningProblem, order: list[int], rounds: int) -> Iterator[list[int]]:
    """Plans from orders in which a tensor that ended above the bound is moved before one of its neighbours.

    An order is accepted unless more bytes end above the bound. Every plan in which no tensor can be moved down
    corresponds to some order. The random seed is fixed, so equal claims give equal plans.
    """
    random = imports.module("random").Random(0)  # imported only if the planners miss the bound
    offsets = place(problem, order, lowest_gap)
    for _ in range(rounds):
        high = _high(problem, offsets)
        chosen = random.choice(high)
        other = random.choice(problem.neighbours[chosen])
        # Move the tensor before a neighbour, or one of its neighbours before another of that neighbour's.
        moved, before = (chosen, other) if random.random() < 0.5 else (other, random.choice(problem.neighbours[other]))
        tried = [i for i in order if i != moved]
        tried.insert(tried.index(before), moved)
        found = place(problem, tried, lowest_gap)
        yield found
        if _excess(problem, found) <= _excess(problem, offsets):
            order, offsets = tried, found


def _high(problem: PlanningProblem, offsets: Sequence[int]) -> list[int]:
    return [i for i, size in enumerate(problem.sizes) if offsets[i] + size > problem.bound]


def _excess(problem: PlanningProblem, offsets: Sequence[int]) -> int:
    """The bytes above the bound, summed over tensors."""
    return sum(max(0, offset + size - problem.bound) for offset, size in zip(offsets, problem.sizes, strict=True))
