"""The planner that considers all tensors at once: weighted interval colouring."""

from __future__ import annotations

from .orders import by_size
from .problem import PlanningProblem, lowest_gap, place


def wic(problem: PlanningProblem) -> list[int]:
    """Largest tensor first, each in the lowest gap among its neighbours; equal sizes in the order of the run."""
    return place(problem, by_size(problem), lowest_gap)
