"""Tensor registration: which operands the program allocates, in which memory space, and which share memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from attrs import frozen

from onert.backend import Memory, has_own_layout
from onert.compiler.state.in_place import InPlace
from onert.ir import Subgraph
from onert.ir.value import Value

from .linearize import Timeline


@frozen
class Registration(Value):
    """Operands to allocate, by memory space and in the order in which a run produces them.

    `roots` maps each operand to the operand whose memory it uses, in most cases itself.
    """

    spaces: Mapping[str, tuple[int, ...]]
    memories: Mapping[str, Memory]
    roots: Mapping[int, int]


def register(
    subgraph: Subgraph,
    memories: Mapping[int, Memory],
    timeline: Timeline,
    updates: InPlace,
    resident_copies: Set[int] = frozenset(),
) -> Registration:
    """Register every result with a static type that is stored, is not an output, is not `resident_copies` and has no
    memory elsewhere.

    The result of an operation that only changes the shape shares its operand's memory if both are registered, have
    the same size, and are in the same space, which has no layout of its own. Inputs, outputs, variables and constants
    are not in the arena, so such a result is copied there unless `updates` says otherwise. A result that is updated in
    place also shares its first operand's memory.
    """
    roots: dict[int, int] = {}
    excluded = {o for moment in timeline.moments for o in moment.group.unstored}
    excluded |= {*subgraph.outputs, *subgraph.lasting, *updates.roots, *resident_copies}
    for moment in timeline.moments:
        for at in moment.group.operations:
            operation = subgraph.operations[at]
            for output in operation.outputs:
                if output not in excluded and _has_place(subgraph, output):
                    roots[output] = output
            if (operation.op.shares or at in updates.updates) and operation.outputs[0] in roots:
                source, target = operation.inputs[0], operation.outputs[0]
                if source is not None and source in roots:
                    space = memories[target]
                    same_space = memories[source].name == space.name and not has_own_layout(space)
                    if same_space and subgraph.type(source).nbytes == subgraph.type(target).nbytes:
                        roots[target] = roots[source]
    spaces: dict[str, list[int]] = {}
    for operand in roots:
        spaces.setdefault(memories[operand].name, []).append(operand)
    return Registration(
        {name: tuple(operands) for name, operands in spaces.items()},
        {memories[operand].name: memories[operand] for operand in roots},
        roots,
    )


def _has_place(subgraph: Subgraph, operand: int) -> bool:
    """Whether the operand's size in bytes is known before the run."""
    type_ = subgraph.type(operand)
    return type_.is_static and not type_.dtype.is_handle


def members(registration: Registration, space: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
    """The operands of a space, grouped by the root whose memory they share; each group includes its root."""
    found: dict[int, list[int]] = {}
    for operand in space:
        found.setdefault(registration.roots[operand], []).append(operand)
    return {root: tuple(operands) for root, operands in found.items()}
