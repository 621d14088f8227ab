"""The heterogeneous scheduler: chooses backends by measured times of operations.

Source of the idea: Topcuoglu, Hariri and Wu, "Performance-Effective and Low-Complexity Task Scheduling for
Heterogeneous Computing", 2002: operations are taken by rank, each assigned to the backend on which it would finish
first. The result is improved by changing single operations and runs of them, and compared with every backend alone, so
that its estimate is never worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf, isfinite

from attrs import frozen

from onert.backend import Backend
from onert.compiler.options import Options
from onert.ir import Subgraph
from onert.ir.ops.data_movement.permute import Permute
from onert.ir.value import Value

from .estimate import Times, Transfers, total
from .exec_time import ExecTimes
from .manual import Assignment, Choices, assign, why_not

MOST_IMPROVED = 400
"""Assignments of larger subgraphs are not improved by local changes."""
ROUNDS = 4


@frozen
class _Problem(Value):
    """A subgraph, the times of each operation on its possible backends, and the cost of a whole assignment."""

    subgraph: Subgraph
    backends: Mapping[str, Backend]
    times: Times
    transfers: Transfers
    workers: int

    def cost(self, names: Sequence[str]) -> float:
        chosen = [self.backends[name] for name in names]
        return total(self.subgraph, chosen, self.times, self.transfers, self.workers)


def assign_measured(
    subgraph: Subgraph, backends: Sequence[Backend], chosen: Choices, options: Options, known: ExecTimes
) -> Assignment:
    """A backend for each operation by measured times; the user's choices stay.

    A backend on which an operation was not measured is not considered for it. If there is no measurement at all, the
    manual scheduler's choice stands. The notes report both. Raises CompileError if the manual scheduler does.
    """
    manual = assign(subgraph, backends, chosen)
    notes: list[str] = []
    times = [
        _times(subgraph, at, backends, chosen, known, fallback, notes) for at, fallback in enumerate(manual.backends)
    ]
    host = next((b for b in backends if b.name == "builtin"), backends[-1])
    problem = _Problem(
        subgraph,
        {backend.name: backend for backend in backends},
        times,
        Transfers(subgraph, known, host),
        options.num_threads if options.executor == "Parallel" else 1,
    )
    names = min(_candidates(problem), key=problem.cost)
    if len(names) <= MOST_IMPROVED:
        names = _improved(problem, names)
    single = {name: cost for name, cost in _single_backend_costs(problem).items() if isfinite(cost)}
    comparison = ", ".join(f"{name} alone {cost:.0f} us" for name, cost in single.items())
    notes.append(f"by measured times a run takes {problem.cost(names):.0f} us{'; ' if comparison else ''}{comparison}")
    return Assignment(tuple(problem.backends[name] for name in names), tuple(notes))


def _times(
    subgraph: Subgraph,
    at: int,
    backends: Sequence[Backend],
    chosen: Choices,
    known: ExecTimes,
    fallback: Backend,
    notes: list[str],
) -> dict[str, float]:
    """The microseconds of an operation on the chosen backend, or on all that were measured."""
    operation = subgraph.operations[at]
    types = subgraph.types(operation)
    if chosen.of(operation) is not None or isinstance(operation.op, Permute) or operation.op.subgraphs:
        time = known.operation(fallback.name, operation.op, types)
        return {fallback.name: time if time is not None and isfinite(time) else 1.0}
    supporting = [backend for backend in backends if why_not(backend, operation, types) is None]
    found = {backend.name: known.operation(backend.name, operation.op, types) for backend in supporting}
    measured = {name: time for name, time in found.items() if time is not None and isfinite(time)}
    missing = [name for name, time in found.items() if time is None]
    if not measured:
        notes.append(f"{operation} was measured on no backend and stays on {fallback.name}")
        return {fallback.name: 1.0}
    if missing:
        notes.append(f"{operation} was not measured on {', '.join(missing)}, and is not assigned there")
    return measured


def _candidates(problem: _Problem) -> Iterator[list[str]]:
    """Candidate assignments: by earliest finish, and for each backend with as much as possible on it."""
    yield _by_earliest_finish(problem)
    for name in problem.backends:
        yield [name if name in known else min(known, key=known.__getitem__) for known in problem.times]


def _single_backend_costs(problem: _Problem) -> dict[str, float]:
    """The cost of a run on each backend alone; infinite if it cannot run everything."""
    return {
        name: problem.cost([name] * len(problem.times)) if all(name in known for known in problem.times) else inf
        for name in problem.backends
    }


def _by_earliest_finish(problem: _Problem) -> list[str]:
    """Operations by rank, each on the backend on which it finishes first, including copies of its operands."""
    subgraph, backends = problem.subgraph, problem.backends
    names = [""] * len(problem.times)
    finished: dict[int, float] = {}
    free = [0.0] * problem.workers
    ranks = _ranks(problem)
    for at in sorted(range(len(names)), key=lambda i: -ranks[i]):
        operation = subgraph.operations[at]
        best = (inf, "")
        for name, time in problem.times[at].items():
            start = min(free)
            copies = 0.0
            for operand in operation.used:
                producer = subgraph.definitions.get(operand)
                source = backends[names[producer]] if producer is not None else None
                if source is None and operand in subgraph.inputs:
                    source = problem.transfers.host
                if source is not None:
                    copies += problem.transfers.time(operand, source, backends[name])
                start = max(start, finished.get(operand, 0.0))
            best = min(best, (start + copies + time, name))
        names[at] = best[1]
        free[free.index(min(free))] = best[0]
        finished.update(dict.fromkeys(operation.outputs, best[0]))
    return names


def _ranks(problem: _Problem) -> list[float]:
    """For each operation the mean time of the longest path to the end; predecessors rank higher than successors."""
    subgraph = problem.subgraph
    found = [0.0] * len(problem.times)
    for at in range(len(found) - 1, -1, -1):
        mean = sum(problem.times[at].values()) / len(problem.times[at])
        after = [found[user] for o in subgraph.operations[at].outputs for user in subgraph.uses.get(o, ())]
        found[at] = mean + max(after, default=0.0) + 1e-9
    return found


def _improved(problem: _Problem, names: list[str]) -> list[str]:
    """Move single operations, and runs of operations on one backend, to other backends while that lowers the cost."""
    best, lowest = list(names), problem.cost(names)
    for _ in range(ROUNDS):
        before = lowest
        for start, stop in (*_runs(best), *((at, at + 1) for at in range(len(best)))):
            for name in problem.backends:
                if name == best[start] or not all(name in problem.times[at] for at in range(start, stop)):
                    continue
                tried = [*best[:start], *[name] * (stop - start), *best[stop:]]
                cost = problem.cost(tried)
                if cost < lowest:
                    best, lowest = tried, cost
        if lowest == before:
            break
    return best


def _runs(names: Sequence[str]) -> list[tuple[int, int]]:
    """The start and stop of each run of operations on one backend, in file order."""
    cuts = [0, *(i for i in range(1, len(names)) if names[i] != names[i - 1]), len(names)]
    return [(a, b) for a, b in pairwise(cuts) if b > a]
