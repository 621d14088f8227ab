"""How a run reads an input."""

from __future__ import annotations

from math import prod

from onert.backend import Routine
from onert.ir.analysis.cost import cost
from onert.ir.shape import static

_MOST_PER_ELEMENT = 2
"""The most operations per element of the input, of any operation that a kernel computes from it while it reads it."""


def is_read_once(routine: Routine, operand: int) -> bool:
    """Whether a run reads the elements of an input once and in order: one kernel reads it, and computes only a few
    operations per element. A convolution reads elements several times, and a transpose out of order."""
    graph = routine.subgraph
    if not graph.type(operand).is_static or operand in routine.roots.values():
        return False
    groups = [[graph.operations[at] for at in g.operations] for step in routine.steps for g in step.sequence.groups]
    readers = [group for group in groups if any(operand in each.used for each in group)]
    if len(readers) != 1:
        return False
    most = _MOST_PER_ELEMENT * prod(static(graph.type(operand).shape))
    return all(
        cost(each.op, graph.types(each)).flops <= most and not (each.op.stored and operand in each.used)
        for each in readers[0]
    )
