"""The planner that places tensors in the order in which a run defines them."""

from __future__ import annotations

from .claims import Claims, lowest_gap, place


def first_fit(claims: Claims) -> list[int]:
    """In the order of the run, each tensor in the lowest gap among its neighbours."""
    return place(claims, range(len(claims)), lowest_gap)
