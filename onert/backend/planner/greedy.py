"""The greedy planners of the literature: by size and by breadth.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020.
"""

from __future__ import annotations

from .claims import Claims, place, tightest_gap
from .orders import by_breadth, by_size


def greedy_by_size(claims: Claims) -> list[int]:
    """Largest tensor first, each in the smallest gap that holds it."""
    return place(claims, by_size(claims), tightest_gap)


def greedy_by_breadth(claims: Claims) -> list[int]:
    """The tensors of the moment with the most bytes alive first, each in the smallest gap that holds it."""
    return place(claims, by_breadth(claims), tightest_gap)
