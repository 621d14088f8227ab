"""Memory planners, by their names in ONE, and this project's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from onert.ir.process import imports
from onert.ir.process.later import later

if TYPE_CHECKING:
    from .problem import Planner, PlanningProblem

_PLACES = {
    "Best": ("best", "best"),
    "Bump": ("bump", "bump"),
    "FirstFit": ("first_fit", "first_fit"),
    "WIC": ("wic", "wic"),
    "GreedyBySize": ("greedy", "greedy_by_size"),
    "GreedyByBreadth": ("greedy", "greedy_by_breadth"),
    "Recycle": ("recycle", "recycle"),
}
"""The module and function of each."""


class Planners(Mapping[str, "Planner"]):
    """The planners; each is imported when it is looked up."""

    def __getitem__(self, name: str) -> Planner:
        file, function = _PLACES[name]
        planner: Planner = getattr(imports.module(f"{__name__}.{file}"), function)
        return planner

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


PLANNERS = Planners()

__all__ = ["PLANNERS", "Planner", "PlanningProblem"]

__getattr__ = later(__name__, dict.fromkeys(("PlanningProblem", "Planner"), f"{__name__}.problem"))
