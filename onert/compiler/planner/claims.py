"""What a memory planner is given, and the search for room that planners share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

Integers = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@frozen(eq=False)
class Claims:
    """Tensors that want memory, in the order in which a run makes them.

    `sizes` are bytes, `conflicts(i)` says which tensors may be alive at a time when tensor `i` is. Every offset must be
    a multiple of `alignment`, a power of two.
    """

    sizes: Integers
    alignment: int
    conflicts: Callable[[int], Mask]

    def __len__(self) -> int:
        return len(self.sizes)


Planner = Callable[[Claims], Integers]
"""Gives an offset for every tensor, so that tensors in conflict do not overlap."""


def place(claims: Claims, order: Integers) -> Integers:
    """Offsets when the tensors are placed in `order`, each in the lowest gap that its conflicts leave."""
    offsets = np.zeros(len(claims), np.int64)
    ends = np.zeros(len(claims), np.int64)
    placed = np.zeros(len(claims), np.bool_)
    for index in order.tolist():
        size = int(claims.sizes[index])
        if size == 0:
            continue  # takes no room, so that any offset is right
        taken = np.flatnonzero(claims.conflicts(index) & placed)
        offsets[index] = lowest_gap(offsets[taken], ends[taken], size)
        ends[index] = round_up(int(offsets[index]) + size, claims.alignment)
        placed[index] = True
    return offsets


def lowest_gap(starts: Integers, ends: Integers, size: int) -> int:
    """The lowest offset at which `size` bytes fit between the ranges; the ranges' ends are aligned."""
    if not len(starts):
        return 0
    by_start = np.argsort(starts, kind="stable")
    starts = starts[by_start]
    reached = np.concatenate(([0], np.maximum.accumulate(ends[by_start])))
    gaps = np.flatnonzero(starts - reached[:-1] >= size)
    return int(reached[gaps[0]] if len(gaps) else reached[-1])


def round_up(value: int, alignment: int) -> int:
    """The next multiple of a power of two."""
    return (value + alignment - 1) & -alignment
