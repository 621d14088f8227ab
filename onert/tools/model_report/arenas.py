"""The memory plan as bars over time, and the tensors in use at its peak."""

from __future__ import annotations

from typing import Any

import numpy as np

from onert.backend import ArenaPlan, Routine
from onert.compiler.linearize import linearize
from onert.compiler.report.memory_plan_svg import bars


def arenas(routine: Routine) -> list[dict[str, Any]]:
    """Each arena of a routine: its size, the lower bound of any plan, bars, and the bytes in use at each moment.

    A bar is a piece of memory: the operands that share it, its offset and bytes, and the first and last moment of its
    use. Moments are the fusion groups in the order of the run.
    """
    return [_arena(routine, name, plan) for name, plan in routine.arenas.items()]


def _arena(routine: Routine, name: str, plan: ArenaPlan) -> dict[str, Any]:
    tensors, alive = bars(routine, plan)
    timeline = linearize([step.sequence for step in routine.steps], len(routine.subgraph.operations))
    use = np.zeros(len(timeline) + 1, np.int64)
    drawn: list[list[Any]] = []
    for number, operands in enumerate(tensors):
        place = plan.placements[operands[0]]
        first, last = int(alive.first[number]), int(alive.last[number])
        use[first] += place.nbytes
        use[last + 1] -= place.nbytes
        drawn.append([operands, place.offset, place.nbytes, first, last])
    in_use = np.cumsum(use[:-1]).tolist()
    peak = max(range(len(in_use)), key=in_use.__getitem__, default=None)
    owners = [at for at, bar in enumerate(drawn) if peak is not None and bar[3] <= peak <= bar[4]]
    return {
        "space": name,
        "bytes": plan.size,
        "lower_bound": plan.lower_bound,
        "planner": plan.planner,
        "moments": [list(moment.group.operations) for moment in timeline.moments],
        "bars": drawn,
        "use": in_use,
        "peak": None if peak is None else {"moment": peak, "bytes": in_use[peak], "owners": _largest(owners, drawn)},
    }


def _largest(owners: list[int], drawn: list[list[Any]]) -> list[int]:
    """The bars in use at the peak, the largest first."""
    return sorted(owners, key=lambda at: (-drawn[at][2], drawn[at][1]))
