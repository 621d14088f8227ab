"""The planner that looks at all tensors at once: weighted interval colouring."""

from __future__ import annotations

from .claims import Claims, lowest_gap, place
from .orders import by_size


def wic(claims: Claims) -> list[int]:
    """The largest tensor first, each in the lowest gap among those alive with it; equal sizes in the run's order."""
    return place(claims, by_size(claims), lowest_gap)
