"""The planner that never reuses memory."""

from __future__ import annotations

from itertools import accumulate

from .claims import Claims


def bump(claims: Claims) -> list[int]:
    """One tensor after the other: needs the most memory and the least planning."""
    return list(accumulate(claims.sizes[:-1], initial=0)) if len(claims) else []
