"""What a memory planner is given, and the search for room that planners share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir.value import Told

Integers = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Neighbours = Sequence[Sequence[int]]


@frozen(eq=False)
class Claims(Told):
    """Tensors that want memory, in the order in which a run makes them.

    `sizes` are bytes, each a multiple of `alignment`, a power of two, which every offset must be too. `first` and
    `last` are the moments of a run step by step at which each tensor is made and used for the last time.
    `neighbours[i]` are the tensors, of some size, that may be alive at a time when tensor `i` is: at a moment of that
    run where steps keep its order, in any run where they do not. `bound` is what no plan can beat.
    """

    sizes: Sequence[int]
    alignment: int
    first: Integers
    last: Integers
    neighbours: Neighbours
    bound: int

    def __len__(self) -> int:
        return len(self.sizes)


Planner = Callable[[Claims], list[int]]
"""Gives an offset for every tensor, so that neighbours do not overlap."""

Fit = Callable[[list[tuple[int, int]], int], int]
"""Gives an offset for a size, outside of the ranges."""


def neighbours(sizes: Integers, conflicts: Callable[[int], Mask], most: int) -> Neighbours | None:
    """The tensors in conflict with each tensor, those without bytes left out: they are in no one's way.

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


def place(claims: Claims, order: Iterable[int], fit: Fit) -> list[int]:
    """Offsets when the tensors are placed in `order`, each where `fit` says among its neighbours placed before."""
    sizes = claims.sizes
    offsets = [-1] * len(claims)
    for index in order:
        ranges = [
            (offsets[other], offsets[other] + sizes[other]) for other in claims.neighbours[index] if offsets[other] >= 0
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
    """The offset of the smallest gap between the ranges in which `size` bytes fit, behind them where none is."""
    reached, best, room = 0, -1, 0
    for start, end in sorted(ranges):
        gap = start - reached
        if gap >= size and (best < 0 or gap < room):
            best, room = reached, gap
        reached = max(reached, end)
    return reached if best < 0 else best


def height(claims: Claims, offsets: Sequence[int]) -> int:
    """The bytes that a plan takes."""
    return max((offset + size for offset, size in zip(offsets, claims.sizes, strict=True)), default=0)
