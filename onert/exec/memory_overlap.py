"""Whether a caller's arrays overlap memory that a run uses for something else."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.exceptions import TooHardError
from numpy.lib.array_utils import byte_bounds

from onert.ir import Array, ExecutionError
from onert.ir.dtype import address

_EFFORT = 10_000
"""The most steps of NumPy's search for a shared byte of two strided arrays; beyond it they count as overlapping."""


def is_same(a: Array, b: Any) -> bool:
    """Whether two arrays are the same elements of the same contiguous memory."""
    return (
        isinstance(b, np.ndarray)
        and (a.dtype, a.shape) == (b.dtype, b.shape)
        and a.flags.c_contiguous
        and b.flags.c_contiguous
        and address(a) == address(b)
    )


def require_apart(what: str, array: Array, others: Iterable[tuple[str, Any]]) -> None:
    """Raises ExecutionError if an array shares a byte with one of the others, which are given with their names.

    Others that are not arrays are skipped.
    """
    for name, other in others:
        if isinstance(other, np.ndarray) and _overlap(array, other):
            raise ExecutionError(f"{what} is given memory that {name} uses; an output needs memory of its own")


class Spans:
    """Where some arrays are in memory, so that each of many others is compared with all of them at once. What is no
    array is skipped."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, arrays: Iterable[Any]) -> None:
        spans = sorted(_span(array) for array in arrays if isinstance(array, np.ndarray) and array.size)
        self._starts = [start for start, _ in spans]
        self._ends = list(accumulate((end for _, end in spans), max))
        """For each array the last end of those that start no later."""

    def are_apart_from(self, array: Array) -> bool:
        """Whether no array has a byte from the first to the last of this one, which is not empty."""
        start, end = _span(array)
        before = bisect_left(self._starts, end)
        return before == 0 or self._ends[before - 1] <= start


def _span(array: Array) -> tuple[int, int]:
    """The address of an array's first byte and of the first one behind it."""
    if array.flags.c_contiguous:
        start = address(array)
        return start, start + array.nbytes
    return byte_bounds(array)


def _overlap(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_EFFORT)  # type: ignore[arg-type]  # NumPy's stub allows only 0 and -1
    except TooHardError:
        return True
