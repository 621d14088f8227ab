"""Memory planners by the names that ONE gives them, and ours."""

from __future__ import annotations

from collections.abc import Mapping

from .best import best
from .bump import bump
from .claims import Claims, Planner
from .first_fit import first_fit
from .greedy import greedy_by_breadth, greedy_by_size
from .recycle import recycle
from .wic import wic

PLANNERS: Mapping[str, Planner] = {
    "Best": best,
    "Bump": bump,
    "FirstFit": first_fit,
    "WIC": wic,
    "GreedyBySize": greedy_by_size,
    "GreedyByBreadth": greedy_by_breadth,
    "Recycle": recycle,
}

__all__ = ["PLANNERS", "Claims", "Planner"]
