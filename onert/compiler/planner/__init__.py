"""Memory planners by the names that ONE gives them."""

from __future__ import annotations

from collections.abc import Mapping

from .bump import bump
from .claims import Claims, Planner
from .first_fit import first_fit
from .wic import wic

PLANNERS: Mapping[str, Planner] = {"Bump": bump, "FirstFit": first_fit, "WIC": wic}

__all__ = ["PLANNERS", "Claims", "Planner"]
