"""Memory planning: an offset for every registered tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from onert.backend import ArenaPlan, Memory, Placement, tensor_bytes
from onert.compiler.planner.antichain import MOST, heaviest_antichain
from onert.compiler.planner.claims import Integers, height, neighbours
from onert.compiler.planner.liveness import Lifetimes, PartialOrder, in_any_order, lifetimes
from onert.ir import Subgraph

from .linearize import Timeline
from .planner import PLANNERS, Claims
from .tensor_registration import Registration, members

MOST_PAIRS = 1 << 21
"""How many pairs of tensors alive at a time a plan is made for; with more, every tensor has memory of its own."""


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
    nbytes = np.array([tensor_bytes(memory, subgraph.type(root)) for root in tensors], np.int64)
    sizes = (nbytes + (memory.alignment - 1)) & -memory.alignment
    operands = list(tensors.values())
    alive = lifetimes(subgraph, operands, timeline)
    order = alive if dependencies is None else in_any_order(subgraph, operands, timeline, dependencies)
    bound = _lower_bound(sizes, alive, order)
    near = None if order is None else neighbours(sizes, order.overlaps, MOST_PAIRS)
    planner = "Bump" if near is None else planner
    claims = Claims(sizes.tolist(), memory.alignment, alive.first, alive.last, near or (), bound)
    offsets = PLANNERS[planner](claims)
    placements = {
        operand: Placement(offset, int(size), root)
        for offset, size, (root, shared) in zip(offsets, nbytes, tensors.items(), strict=True)
        for operand in shared
    }
    return ArenaPlan(memory, height(claims, offsets), placements, bound, planner)


def _lower_bound(sizes: Integers, alive: Lifetimes, order: Lifetimes | PartialOrder | None) -> int:
    """What no plan can beat: the most alive at one moment where steps keep their order, the heaviest set of tensors in
    conflict with one another where they do not."""
    if isinstance(order, PartialOrder) and len(sizes) <= MOST:
        return heaviest_antichain(sizes, order.before)
    return alive.peak(sizes)  # in another order there may be more: still a bound
