"""The input of a memory planner, and the gap search that planners share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir.value import ByIdentity

Integers = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Neighbours = Sequence[Sequence[int]]


@frozen(eq=False)
class PlanningProblem(ByIdentity):
    """Tensors that need memory, in the order in which a run defines them.

    `sizes` are bytes, multiples of `alignment`, a power of two; offsets must be multiples of it too. `first` and `last`
    are the steps of a sequential run at which each tensor is defined and last used. `neighbours[i]` are the tensors of
    nonzero size that may be alive together with tensor `i`: at some moment of that run if steps have a fixed order,
    otherwise in any run. `bound` is a size below which no plan exists.
    """

    sizes: Sequence[int]
    alignment: int
    first: Integers
    last: Integers
    neighbours: Neighbours
    bound: int

    def __len__(self) -> int:
        return len(self.sizes)


Planner = Callable[[PlanningProblem], list[int]]
"""Computes an offset for every tensor, so that neighbours do not overlap."""

Fit = Callable[[list[tuple[int, int]], int], int]
"""Finds an offset for a size outside the ranges."""


def neighbours(sizes: Integers, conflicts: Callable[[int], Mask], most: int) -> Neighbours | None:
    """For each tensor, the tensors of nonzero size that conflict with it.

    None if there are more than `most` in all.
    """
    wanted = sizes > 0
    found: list[list[int]] = []
    for index in range(len(sizes)):
        near = np.flatnonzero(conflicts(index) & wanted) if wanted[index] else np.zeros(0, np.int64)
        most -= len(near)
        if most < 0:
            return None
        found.append(near[near != index].tolist())
    return found


def place(problem: PlanningProblem, order: Iterable[int], fit: Fit) -> list[int]:
    """Place the tensors in `order`, each where `fit` finds room among its neighbours placed before; their offsets."""
    sizes = problem.sizes
    offsets = [-1] * len(problem)
    for index in order:
        ranges = [
            (offsets[other], offsets[other] + sizes[other])
            for other in problem.neighbours[index]
            if offsets[other] >= 0
        ]
        offsets[index] = fit(ranges, sizes[index])
    return offsets


def lowest_gap(ranges: list[tuple[int, int]], size: int) -> int:
    """The lowest offset at which `size` bytes fit between the ranges."""
    reached = 0
    for start, end in sorted(ranges):
        if start - reached >= size:
            return reached
        reached = max(reached, end)
    return reached


def tightest_gap(ranges: list[tuple[int, int]], size: int) -> int:
    """The offset of the smallest gap between the ranges in which `size` bytes fit; after them all if there is none."""
    reached, best, room = 0, -1, 0
    for start, end in sorted(ranges):
        gap = start - reached
        if gap >= size and (best < 0 or gap < room):
            best, room = reached, gap
        reached = max(reached, end)
    return reached if best < 0 else best


def height(problem: PlanningProblem, offsets: Sequence[int]) -> int:
    """The total size of a plan in bytes."""
    return max((offset + size for offset, size in zip(offsets, problem.sizes, strict=True)), default=0)
