"""Inputs, outputs and intermediate results in one memory: each occupies memory only while it is alive."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from onert.backend.planner.arrangement import arranged
from onert.backend.planner.liveness import lifetimes
from onert.compiler.linearize import linearize
from onert.compiler.routine import Plan
from onert.ir.value import Value

from .variables import ALIGNMENT


@frozen
class Together(Value):
    """The placement of operands in one memory of `size` bytes, of which at most `live` are needed at the same time."""

    offsets: Mapping[int, int]
    size: int
    live: int


def together(planned: Plan, planner: str) -> Together:
    """Place the inputs, the outputs and the arena's operands of a planned subgraph in one memory.

    An input is alive from the beginning of a run to its last use, an output from its definition to the end.
    """
    graph = planned.lowered.subgraph
    when = linearize([part.sequence for part in planned.parts], len(graph.operations)).of_operation
    groups = _groups(planned)
    alive = lifetimes(graph, tuple(groups.values()), when, graph.inputs)
    found = arranged([graph.type(root).nbytes for root in groups], alive, ALIGNMENT, planner, alive)
    placed = {operand: at for at, operands in zip(found.offsets, groups.values(), strict=True) for operand in operands}
    return Together(placed, found.size, found.bound)


def _groups(planned: Plan) -> dict[int, tuple[int, ...]]:
    """Operands that share memory, by root, except variables, which keep their values between runs."""
    graph, roots = planned.lowered.subgraph, planned.updates.roots
    found: dict[int, list[int]] = {}
    arena = next(iter(planned.arenas.values()), None)
    for operand, placement in ({} if arena is None else arena.placements).items():
        found.setdefault(placement.root, []).append(operand)
    for operand in dict.fromkeys((*graph.inputs, *graph.outputs)):
        root = roots.get(operand, operand)
        if not graph.operands[root].variable:
            found.setdefault(root, []).append(operand)
    for operand, root in roots.items():
        if root in found and operand not in found[root]:
            found[root].append(operand)
    return {root: tuple(operands) for root, operands in found.items()}
