"""The duration of a fusion group on several threads: estimated from its types, or from measured times."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from onert.backend import Backend, Group
from onert.ir import Subgraph
from onert.ir.analysis.cost import cost
from onert.ir.symbolic.trace import hint

if TYPE_CHECKING:
    from onert.compiler.scheduler.exec_time import ExecTimes

FLOPS, STORED_FLOPS, BYTES = 150_000, 400_000, 60_000
"""The rough throughput of one thread per microsecond: multiplications and additions of floats, of 8-bit numbers, and
bytes read or written."""
UNKNOWN = 1e6
"""The assumed microseconds of a group on a backend about which nothing is known."""
EVALUATION, EVALUATED_BYTES = 20.0, 2_000
"""Microseconds to evaluate an operation in NumPy, and the bytes it then reads or writes per microsecond."""
START, SHARE = 0.1, 0.25
"""Microseconds to start a kernel, and for threads to synchronise after sharing one."""


def durations(
    subgraph: Subgraph, group: Group, backend: Backend, threads: int, known: ExecTimes | None = None
) -> tuple[float, ...]:
    """Microseconds of a group on 1, 2, ... `threads` threads.

    If all its operations were measured (on `threads` threads), the estimate is scaled to match.
    """
    estimated = _estimated(subgraph, group, backend, threads)
    measured = None if known is None else _measured(subgraph, group, backend, known)
    if measured is None or not estimated[-1]:
        return estimated
    return tuple(time * measured / min(estimated[0], estimated[-1]) for time in estimated)


def _estimated(subgraph: Subgraph, group: Group, backend: Backend, threads: int) -> tuple[float, ...]:
    operations = [subgraph.operations[at] for at in group.operations]
    if all(operation.op.shares for operation in operations):
        return (0.0,) * threads
    if not backend.side_by_side:
        return (_without_threads(subgraph, group, backend),) * threads
    calls = [subgraph.types(operation) for operation in operations]
    costs = [cost(operation.op, types) for operation, types in zip(operations, calls, strict=True)]
    stored = any(t is not None and t.quantization is not None for t in calls[0].inputs)
    arithmetic = hint(sum(c.flops for c in costs)) / (STORED_FLOPS if stored else FLOPS)
    work = max(arithmetic, traffic(subgraph, group) / BYTES)
    bounds = [backend.most_threads(o, types) for o, types in zip(operations, calls, strict=True)]
    most = min((bound for bound in bounds if bound is not None), default=threads)
    return tuple(
        START + work if count == 1 else START + SHARE + work / max(1, min(count, most))
        for count in range(1, threads + 1)
    )


def _without_threads(subgraph: Subgraph, group: Group, backend: Backend) -> float:
    """The duration of a group on a backend that does not say how it uses threads."""
    if not backend.evaluates:
        return UNKNOWN
    return EVALUATION * len(group.operations) + traffic(subgraph, group) / EVALUATED_BYTES


def traffic(subgraph: Subgraph, group: Group) -> int:
    """The bytes that a group reads from outside, and that it stores."""
    operations = [subgraph.operations[at] for at in group.operations]
    results = dict.fromkeys(o for operation in operations for o in operation.outputs)
    operands = dict.fromkeys(i for operation in operations for i in operation.used if i not in results)
    types = [subgraph.type(i) for i in (*operands, *results) if i not in group.unstored]
    return hint(sum(t.nbytes for t in types if t.is_static))


def _measured(subgraph: Subgraph, group: Group, backend: Backend, known: ExecTimes) -> float | None:
    """The sum of its operations' measured times; None if one was not measured."""
    found = 0.0
    for at in group.operations:
        operation = subgraph.operations[at]
        time = known.operation(backend.name, operation.op, subgraph.types(operation))
        if time is None or not isfinite(time):
            return None
        found += time
    return found
