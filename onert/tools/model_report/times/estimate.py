"""How long a run is expected to take, from types and this machine's peaks: a guess, within a factor of some two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onert.backend import Backend, Group, Routine
from onert.compiler.side_by_side.durations import EVALUATED_BYTES, EVALUATION
from onert.ir import Subgraph
from onert.ir.analysis.cost import cost

STARTING = 0.4e-6
"""Seconds to begin a kernel and for its threads to meet."""
REACHED = 0.45
"""The part of a peak that kernels reach on the shapes of real layers, as found on the models in the tests."""
CACHE = 1 << 20
"""Bytes of tensors that caches are taken to hold from one operation to the next."""


def traffic(graph: Subgraph, group: Group) -> int:
    """Bytes of what a group reads and does not make, and of what it makes and stores."""
    operations = [graph.operations[at] for at in group.operations]
    made = dict.fromkeys(o for operation in operations for o in operation.outputs)
    read = dict.fromkeys(i for operation in operations for i in operation.used if i not in made)
    types = [graph.type(i) for i in (*read, *made) if i not in group.unstored]
    return sum(t.nbytes for t in types if t.is_static)


def arithmetic(graph: Subgraph, group: Group) -> int:
    """Multiplications and additions of a group."""
    operations = [graph.operations[at] for at in group.operations]
    return sum(cost(operation.op, graph.types(operation)).flops for operation in operations)


def is_stored(graph: Subgraph, group: Group) -> bool:
    """Whether a group computes on 8-bit numbers."""
    first = graph.operations[group.operations[0]]
    return any(t is not None and t.quantization is not None and t.dtype.bits <= 8 for t in graph.types(first).inputs)


def expected(routine: Routine, backends: Sequence[Backend], machine: Mapping[str, Any]) -> list[float]:
    """Seconds that each fusion group of a routine may take, in the order of its groups; 0 for one without work."""
    by_name = {backend.name: backend for backend in backends}
    return [
        _seconds(routine.subgraph, group, by_name.get(step.backend), machine)
        for step in routine.steps
        for group in step.sequence.groups
    ]


def _seconds(graph: Subgraph, group: Group, backend: Backend | None, machine: Mapping[str, Any]) -> float:
    operations = [graph.operations[at] for at in group.operations]
    if all(operation.op.shares for operation in operations):
        return 0.0
    nbytes = traffic(graph, group)
    if backend is not None and backend.evaluates:
        return (EVALUATION * len(operations) + nbytes / EVALUATED_BYTES) / 1e6
    peaks = machine["flops_per_second"]
    peak = peaks.get("int8" if is_stored(graph, group) else "float32", 0) or max(peaks.values(), default=1e9)
    moved = machine["cached_bytes_per_second" if nbytes <= CACHE else "bytes_per_second"]
    return float(STARTING + max(arithmetic(graph, group) / (peak * REACHED), nbytes / moved))
