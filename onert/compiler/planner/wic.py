"""The planner that looks at all tensors at once: weighted interval colouring."""

from __future__ import annotations

import numpy as np

from .claims import Claims, Integers, place


def wic(claims: Claims) -> Integers:
    """The largest tensor first, each in the lowest gap among those alive with it; equal sizes in the run's order."""
    order: Integers = np.argsort(-claims.sizes, kind="stable").astype(np.int64)
    return place(claims, order)
