"""Inputs and outputs in one memory with what lies between them: each has room only as long as it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from onert.compiler.linearize import Timeline, linearize
from onert.compiler.memory_plan import MOST_PAIRS
from onert.compiler.planner import PLANNERS, Claims
from onert.compiler.planner.claims import height, neighbours
from onert.compiler.planner.liveness import Lifetimes
from onert.compiler.routine import Plan
from onert.ir import Subgraph
from onert.ir.value import Value

from .variables import ALIGNMENT


@frozen
class Together(Value):
    """Where operands lie in one memory of `size` bytes, of which `live` are needed at one time."""

    offsets: Mapping[int, int]
    size: int
    live: int


def together(planned: Plan, planner: str) -> Together:
    """Inputs, outputs and the operands of the arena of a planned subgraph, placed anew.

    An input holds its memory from the beginning of a run to its last use, an output from where it is made to the end.
    """
    graph = planned.lowered.subgraph
    timeline = linearize([part.sequence for part in planned.parts], len(graph.operations))
    groups = _groups(planned)
    nbytes = np.array([graph.type(root).nbytes for root in groups], np.int64)
    sizes = (nbytes + (ALIGNMENT - 1)) & -ALIGNMENT
    spans = [_span(graph, operands, timeline) for operands in groups.values()]
    alive = Lifetimes(np.array([s[0] for s in spans], np.int64), np.array([s[1] for s in spans], np.int64))
    near = neighbours(sizes, alive.overlaps, MOST_PAIRS)
    peak = alive.peak(sizes)
    claims = Claims(sizes.tolist(), ALIGNMENT, alive.first, alive.last, near or (), peak)
    offsets = PLANNERS["Bump" if near is None else planner](claims)
    placed = {operand: at for at, operands in zip(offsets, groups.values(), strict=True) for operand in operands}
    return Together(placed, height(claims, offsets), peak)


def _groups(planned: Plan) -> dict[int, tuple[int, ...]]:
    """Operands that share memory, by the one whose it is; nothing that keeps its value from run to run."""
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


def _span(graph: Subgraph, operands: Sequence[int], timeline: Timeline) -> tuple[int, int]:
    """The first and the last moment of a run at which the memory of operands is needed."""
    touching = {graph.definitions[operand] for operand in operands if operand in graph.definitions}
    touching.update(at for operand in operands for at in graph.uses.get(operand, ()))
    moments = [timeline.of_operation[at] for at in touching]
    given = any(operand in graph.inputs for operand in operands)
    kept = any(operand in graph.kept for operand in operands)
    end = max(len(timeline) - 1, 0)
    return 0 if given else min(moments), end if kept else max(moments, default=0)
