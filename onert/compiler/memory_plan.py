"""Memory planning: an offset for every registered tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onert.backend import ArenaPlan, Memory, Placement, tensor_bytes
from onert.backend.planner.arrangement import arranged
from onert.backend.planner.liveness import in_any_order, lifetimes
from onert.ir import Subgraph

from .linearize import Timeline
from .tensor_registration import Registration, members


def plan_arenas(
    subgraph: Subgraph,
    registration: Registration,
    timeline: Timeline,
    dependencies: Sequence[Sequence[int]] | None,
    planner: str,
) -> Mapping[str, ArenaPlan]:
    """The arena plan of each memory space in which a tensor is registered.

    With `dependencies`, steps may run in any order that these allow, otherwise one after the other.
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
    nbytes = [tensor_bytes(memory, subgraph.type(root)) for root in tensors]
    operands, when = list(tensors.values()), timeline.of_operation
    alive = lifetimes(subgraph, operands, when)
    steps = [moment.step for moment in timeline.moments]
    order = alive if dependencies is None else in_any_order(subgraph, operands, when, steps, dependencies)
    found = arranged(nbytes, alive, memory.alignment, planner, order)
    placements = {
        operand: Placement(offset, size, root)
        for offset, size, (root, shared) in zip(found.offsets, nbytes, tensors.items(), strict=True)
        for operand in shared
    }
    return ArenaPlan(memory, found.size, placements, found.bound, found.planner)
