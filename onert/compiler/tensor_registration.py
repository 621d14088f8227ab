"""Tensor registration: which operands get memory of the program's own, in which space, and which share it."""

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
    """Operands to be placed, by memory space and in the order in which a run makes them.

    `roots` gives each operand the one whose memory it uses, itself in most cases.
    """

    spaces: Mapping[str, tuple[int, ...]]
    memories: Mapping[str, Memory]
    roots: Mapping[int, int]


def register(
    subgraph: Subgraph,
    memories: Mapping[int, Memory],
    timeline: Timeline,
    updates: InPlace,
    apart: Set[int] = frozenset(),
) -> Registration:
    """Every result with a static type that is no output, is stored at all, does not lie `apart` and has no memory
    elsewhere.

    The result of an operation that only gives another shape shares its operand's memory where both are registered and
    take the same bytes, in the same space, which has no layout of its own. At inputs, outputs, variables and constants,
    whose memory is not the arena's, it stays a copy, but for what `updates` says. A result that is updated in place
    shares its first operand's memory too.
    """
    roots: dict[int, int] = {}
    elsewhere = {o for moment in timeline.moments for o in moment.group.unstored}
    elsewhere |= {*subgraph.outputs, *subgraph.lasting, *updates.roots, *apart}
    for moment in timeline.moments:
        for at in moment.group.operations:
            operation = subgraph.operations[at]
            for output in operation.outputs:
                if output not in elsewhere and _has_place(subgraph, output):
                    roots[output] = output
            if (operation.op.shares or at in updates.updates) and operation.outputs[0] in roots:
                source, target = operation.inputs[0], operation.outputs[0]
                if source is not None and source in roots:
                    space = memories[target]
                    same_space = memories[source].name == space.name and not has_own_layout(space)
                    if same_space and subgraph.type(source).nbytes == subgraph.type(target).nbytes:
                        roots[target] = roots[source]
    spaces: dict[str, list[int]] = {}
    for placed in roots:
        spaces.setdefault(memories[placed].name, []).append(placed)
    return Registration(
        {name: tuple(operands) for name, operands in spaces.items()},
        {memories[placed].name: memories[placed] for placed in roots},
        roots,
    )


def _has_place(subgraph: Subgraph, operand: int) -> bool:
    """Whether the operand's bytes are known in number before the run."""
    type_ = subgraph.type(operand)
    return type_.is_static and not type_.dtype.is_handle


def members(registration: Registration, space: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
    """The operands of a space by the root whose memory they share, the root among them."""
    found: dict[int, list[int]] = {}
    for operand in space:
        found.setdefault(registration.roots[operand], []).append(operand)
    return {root: tuple(operands) for root, operands in found.items()}
