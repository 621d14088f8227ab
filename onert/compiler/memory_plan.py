"""Memory planning: an offset for every registered tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from onert.backend import ArenaPlan, Memory, Placement
from onert.ir import Subgraph

from .linearize import Timeline
from .liveness import in_any_order, lifetimes
from .planner import PLANNERS, Claims
from .planner.claims import Mask
from .tensor_registration import Registration, members


def plan_arenas(
    subgraph: Subgraph,
    registration: Registration,
    timeline: Timeline,
    dependencies: Sequence[Sequence[int]] | None,
    planner: str,
) -> Mapping[str, ArenaPlan]:
    """The arena of each memory space in which a tensor is registered.

    With `dependencies` steps run in any order that these allow, else one after the other.
    """
    return {name: _plan(subgraph, registration, name, timeline, dependencies, planner) for name in registration.spaces}


def _plan(
    subgraph: Subgraph,
    registration: Registration,
    space: str,
    timeline: Timeline,
    dependencies: Sequence[Sequence[int]] | None,
    planner: str,
) -> ArenaPlan:
    memory: Memory = registration.memories[space]
    tensors = members(registration, registration.spaces[space])
    sizes = np.array([subgraph.type(root).nbytes for root in tensors], np.int64)
    alive = lifetimes(subgraph, list(tensors.values()), timeline)
    conflicts: Callable[[int], Mask] = alive.overlaps
    if dependencies is not None:
        conflicts = in_any_order(subgraph, list(tensors.values()), timeline, dependencies)
    offsets = PLANNERS[planner](Claims(sizes, memory.alignment, conflicts)).tolist()
    placements = {
        operand: Placement(offset, int(size), root)
        for offset, size, (root, operands) in zip(offsets, sizes, tensors.items(), strict=True)
        for operand in operands
    }
    end = max((p.offset + p.nbytes for p in placements.values()), default=0)
    return ArenaPlan(memory, end, placements, alive.peak(sizes), planner)
