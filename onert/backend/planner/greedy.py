"""The greedy planners of the literature: by size and by breadth.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020.
"""

from __future__ import annotations

from .orders import by_breadth, by_size
from .problem import PlanningProblem, place, tightest_gap


def greedy_by_size(problem: PlanningProblem) -> list[int]:
    """Largest tensor first, each in the smallest gap that holds it."""
    return place(problem, by_size(problem), tightest_gap)


def greedy_by_breadth(problem: PlanningProblem) -> list[int]:
    """The tensors of the moment with the most bytes alive first, each in the smallest gap that holds it."""
    return place(problem, by_breadth(problem), tightest_gap)
