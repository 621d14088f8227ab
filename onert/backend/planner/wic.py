"""The planner that considers all tensors at once: weighted interval colouring."""

from __future__ import annotations

from .claims import Claims, lowest_gap, place
from .orders import by_size


def wic(claims: Claims) -> list[int]:
    """Largest tensor first, each in the lowest gap among its neighbours; equal sizes in the order of the run."""
    return place(claims, by_size(claims), lowest_gap)
