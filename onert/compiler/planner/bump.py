"""The planner that never uses memory twice."""

from __future__ import annotations

import numpy as np

from .claims import Claims, Integers


def bump(claims: Claims) -> Integers:
    """One tensor behind the other; the most memory and the least time."""
    rounded = (claims.sizes + (claims.alignment - 1)) & -claims.alignment
    offsets: Integers = np.concatenate((np.zeros(1, np.int64), np.cumsum(rounded)[:-1])) if len(claims) else rounded
    return offsets
