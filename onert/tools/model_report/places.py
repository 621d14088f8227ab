"""Where each operation of a program runs: its step and group, and why other backends do not run it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onert.backend import Backend, Routine
from onert.compiler.scheduler.manual import why_not
from onert.ir import OnertError, Operation, Subgraph

from .pools import Pool


def places(routine: Routine, backends: Sequence[Backend]) -> dict[str, Any]:
    """For each operation of a routine: its step, its fusion group, and by backend the reason why it cannot run there.

    Reasons are indices into `reasons`. There is none for a backend that could run the operation but comes later.
    """
    steps: list[dict[str, Any]] = []
    of_operation: dict[int, list[Any]] = {}
    reasons = Pool()
    groups: list[dict[str, Any]] = []
    for number, step in enumerate(routine.steps):
        steps.append({"backend": step.backend, "name": step.sequence.name, "operations": len(step.sequence.operations)})
        for group in step.sequence.groups:
            for at in group.operations:
                of_operation[at] = [number, len(groups)]
            groups.append({"step": number, "operations": list(group.operations), "unstored": list(group.unstored)})
    graph = routine.subgraph
    for at, operation in enumerate(graph.operations):
        step_group = of_operation.get(at, [None, None])
        runs_on = None if step_group[0] is None else routine.steps[step_group[0]].backend
        refused = _refusals(graph, operation, [b for b in backends if b.name != runs_on], reasons)
        of_operation[at] = [*step_group, refused]
    return {
        "steps": steps,
        "groups": groups,
        "operations": [of_operation[at] for at in range(len(graph.operations))],
        "reasons": reasons.values,
        "dependencies": [list(needed) for needed in routine.dependencies],
    }


def _refusals(graph: Subgraph, operation: Operation, others: Sequence[Backend], reasons: Pool) -> list[list[Any]]:
    """The backends that cannot run an operation, each with the number of its reason."""
    found: list[list[Any]] = []
    types = graph.types(operation)
    for backend in others:
        try:
            reason = why_not(backend, operation, types)
        except OnertError as error:  # a third-party backend that fails in its check
            reason = str(error)
        if reason is not None:
            found.append([backend.name, reasons.number(reason, reason)])
    return found
