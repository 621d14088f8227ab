"""The planner that never uses memory twice."""

from __future__ import annotations

from itertools import accumulate

from .claims import Claims


def bump(claims: Claims) -> list[int]:
    """One tensor behind the other; the most memory and the least time."""
    return list(accumulate(claims.sizes[:-1], initial=0)) if len(claims) else []
