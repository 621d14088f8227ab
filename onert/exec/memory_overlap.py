"""Whether a caller's arrays overlap memory that a run uses for something else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.exceptions import TooHardError

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


def _overlap(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_EFFORT)  # type: ignore[arg-type]  # NumPy's stub allows only 0 and -1
    except TooHardError:
        return True
