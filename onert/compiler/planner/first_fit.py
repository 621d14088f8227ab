"""The planner that places tensors as a run makes them."""

from __future__ import annotations

import numpy as np

from .claims import Claims, Integers, place


def first_fit(claims: Claims) -> Integers:
    """In the order of the run, each tensor in the lowest gap among those alive."""
    return place(claims, np.arange(len(claims), dtype=np.int64))
