"""The planner that places tensors in the order in which a run defines them."""

from __future__ import annotations

from .problem import PlanningProblem, lowest_gap, place


def first_fit(problem: PlanningProblem) -> list[int]:
    """In the order of the run, each tensor in the lowest gap among its neighbours."""
    return place(problem, range(len(problem)), lowest_gap)
