"""Whether arrays that a caller gives lie in memory that a run uses otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.exceptions import TooHardError

from onert.ir import Array, ExecutionError

_EFFORT = 10_000
"""Steps of the search for a shared byte of two strided arrays; beyond, they count as sharing one."""


def require_apart(what: str, array: Array, others: Iterable[tuple[str, Any]]) -> None:
    """ExecutionError if an array shares a byte with another, each with its name; what is no array is left out."""
    for name, other in others:
        if isinstance(other, np.ndarray) and _overlap(array, other):
            raise ExecutionError(f"{what} is given memory that {name} uses; an output needs memory of its own")


def _overlap(a: Array, b: Array) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_EFFORT)  # type: ignore[arg-type]  # NumPy's stub knows 0 and -1 only
    except TooHardError:
        return True
