"""Placement orders: tensors that are hard to place come first."""

from __future__ import annotations

import numpy as np

from .problem import PlanningProblem


def by_size(problem: PlanningProblem) -> list[int]:
    """Largest first, equal sizes in the order of the run."""
    return sorted(range(len(problem)), key=lambda i: -problem.sizes[i])


def by_breadth(problem: PlanningProblem) -> list[int]:
    """Tensors of the moments with most bytes alive first; within a moment, largest first."""
    if not len(problem):
        return []
    moments = int(problem.last.max()) + 1
    breadth = np.zeros(moments + 1, np.int64)
    np.add.at(breadth, problem.first, problem.sizes)
    np.subtract.at(breadth, problem.last + 1, problem.sizes)
    breadth = np.cumsum(breadth)[:moments]
    rank = np.empty(moments, np.int64)
    rank[np.argsort(-breadth, kind="stable")] = np.arange(moments)
    # A tensor's rank is that of the broadest moment at which it is alive.
    broadest = [int(rank[a : b + 1].min()) for a, b in zip(problem.first.tolist(), problem.last.tolist(), strict=True)]
    return sorted(range(len(problem)), key=lambda i: (broadest[i], -problem.sizes[i]))


def by_span(problem: PlanningProblem) -> list[int]:
    """Longest lifetime first, then largest."""
    span = (problem.last - problem.first).tolist()
    return sorted(range(len(problem)), key=lambda i: (-span[i], -problem.sizes[i]))


def by_area(problem: PlanningProblem) -> list[int]:
    """Largest product of bytes and moments first."""
    span = (problem.last - problem.first + 1).tolist()
    return sorted(range(len(problem)), key=lambda i: -span[i] * problem.sizes[i])
