"""Memory planning: an offset for every registered tensor."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from onert.backend import ArenaPlan, Memory, Placement, tensor_bytes
from onert.backend.planner.arrangement import arranged
from onert.backend.planner.liveness import in_any_order, lifetimes
from onert.ir import Subgraph
from onert.ir.analysis.cost import cost
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.data_movement.slicing import Pad, Slice
from onert.ir.shape import static

from .linearize import Timeline
from .tensor_registration import Registration, members

_MOST_PER_ELEMENT = 2
"""The most operations per element of an input that is read once, of any operation that a kernel computes from it while
it reads it."""

_IN_ORDER = Concat, Copy, Pack, Pad, Slice, Split, SplitV, Unpack
"""Operations that move elements in the order in which they are, such as the update of a cache of keys."""


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


def read_once(subgraph: Subgraph, groups: Sequence[Sequence[int]], shared: Collection[int]) -> tuple[int, ...]:
    """The inputs whose elements a run reads once and in order: a single one of the fused `groups` reads it, and
    computes only a few operations per element. A convolution reads elements several times, and a transpose out of
    order. An input that shares its memory is none of them.
    """
    readers: dict[int, list[Sequence[int]]] = {
        i: [] for i in subgraph.inputs if i not in shared and subgraph.type(i).is_static
    }
    for group in groups:
        for i in {i for at in group for i in subgraph.operations[at].used if i in readers}:
            readers[i].append(group)
    return tuple(i for i, found in readers.items() if len(found) == 1 and _is_in_order(subgraph, found[0], i))


def _is_in_order(subgraph: Subgraph, group: Sequence[int], operand: int) -> bool:
    """Whether a group computes little for each element of an operand, so that it reads each only once."""
    most = _MOST_PER_ELEMENT * prod(static(subgraph.type(operand).shape))
    return all(
        cost(each.op, subgraph.types(each)).flops <= most
        and (isinstance(each.op, _IN_ORDER) or not (each.op.stored and operand in each.used))
        for each in (subgraph.operations[at] for at in group)
    )
