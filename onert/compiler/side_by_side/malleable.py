"""Scheduling of malleable tasks, which take less time on more threads.

Source of the allotment (critical path and area): Radulescu and van Gemund, "A Low-Cost Approach towards Mixed Task and
Data Parallel Scheduling", 2001. Every task begins with one thread, and those on the critical path get more as long as
that path, and not the total work, bounds the schedule. Then tasks are placed by rank, each where it can begin first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from onert.compiler.scheduler.concurrency import ranks
from onert.ir.value import Value

HAND_OVER, FAR = 0.3, 1.0
"""Microseconds until a thread sees that another is done, and the extra time of a task with operands from others."""


@frozen
class Task(Value):
    """A task: `times[k - 1]` are the microseconds on k threads, `needs` the numbers of its predecessors."""

    times: tuple[float, ...]
    needs: tuple[int, ...] = ()


@frozen
class Placed(Value):
    """A task scheduled on the `count` threads from `first` on, with its start and end in microseconds."""

    task: int
    first: int
    count: int
    start: float
    end: float


def schedule(tasks: Sequence[Task], threads: int) -> tuple[Placed, ...]:
    """A schedule of tasks, given in topological order, in the order in which they begin.

    The shortest of four: with one thread per task or with the allotment by critical path and area, and with single
    tasks or with chains merged into one.
    """
    chains = _chains(tasks)
    number = {at: n for n, chain in enumerate(chains) for at in chain}
    merged = [
        Task(tuple(map(sum, zip(*(tasks[at].times for at in chain), strict=True))), _before(tasks, chain, number))
        for chain in chains
    ]
    found = _placements(tasks, threads)
    if len(merged) < len(tasks):
        found += [_unmerged(placed, tasks, chains) for placed in _placements(merged, threads)]
    return min(found, key=length)


def _placements(tasks: Sequence[Task], threads: int) -> list[tuple[Placed, ...]]:
    single, allotted = [1] * len(tasks), allotment(tasks, threads)
    return [place(tasks, counts, threads) for counts in ((single,) if single == allotted else (single, allotted))]


def _chains(tasks: Sequence[Task]) -> list[list[int]]:
    """The tasks grouped in chains: each task needs only the one before, and is the only one that needs it."""
    users = Counter(need for task in tasks for need in task.needs)
    chains: list[list[int]] = []
    chain_of: dict[int, list[int]] = {}
    for at, task in enumerate(tasks):
        need = task.needs[0] if len(task.needs) == 1 else None
        if need is not None and users[need] == 1:
            chain_of[at] = chain_of[need]
        else:
            chain_of[at] = []
            chains.append(chain_of[at])
        chain_of[at].append(at)
    return chains


def _before(tasks: Sequence[Task], chain: Sequence[int], number: Mapping[int, int]) -> tuple[int, ...]:
    """The chains that a chain needs."""
    return tuple(sorted({number[need] for need in tasks[chain[0]].needs}))


def _unmerged(placed: Sequence[Placed], tasks: Sequence[Task], chains: Sequence[Sequence[int]]) -> tuple[Placed, ...]:
    """The placements of the tasks in chains that were placed as one."""
    found: list[Placed] = []
    for chain in placed:
        times = [tasks[at].times[chain.count - 1] for at in chains[chain.task]]
        start = chain.start
        for at, time in zip(chains[chain.task], times, strict=True):
            end = start + time + (chain.end - chain.start - sum(times) if start == chain.start else 0.0)
            found.append(Placed(at, chain.first, chain.count, start, end))
            start = end
    return _by_start(found)


def length(placed: Sequence[Placed]) -> float:
    """Microseconds until the last task is done."""
    return max((p.end for p in placed), default=0.0)


def allotment(tasks: Sequence[Task], threads: int) -> list[int]:
    """The number of threads for each task."""
    counts = [1] * len(tasks)
    times = [task.times[0] for task in tasks]
    area = sum(times)
    while True:
        path = _critical_path(tasks, times)
        if sum(times[at] for at in path) <= area / threads:
            return counts
        gains = [(_gain(tasks[at], counts[at]), at) for at in path if counts[at] < threads]
        gain, at = max(gains, key=lambda found: (found[0], -found[1]), default=(None, 0))
        if gain is None or tasks[at].times[counts[at]] >= times[at]:
            return counts
        area -= times[at] * counts[at]
        counts[at] += 1
        times[at] = tasks[at].times[counts[at] - 1]
        area += times[at] * counts[at]


def _gain(task: Task, count: int) -> float:
    """How much another thread reduces a task's time divided by its number of threads."""
    return task.times[count - 1] / count - task.times[count] / (count + 1)


def _critical_path(tasks: Sequence[Task], times: Sequence[float]) -> list[int]:
    """The tasks on the critical path, in order."""
    ends: list[float] = []
    before: list[int | None] = []
    for task, time in zip(tasks, times, strict=True):
        latest = max(task.needs, key=lambda at: ends[at], default=None)
        before.append(latest)
        ends.append(time + (0.0 if latest is None else ends[latest]))
    at: int | None = max(range(len(ends)), key=ends.__getitem__, default=None)
    reversed_path: list[int] = []
    while at is not None:
        reversed_path.append(at)
        at = before[at]
    return reversed_path[::-1]


def place(tasks: Sequence[Task], counts: Sequence[int], threads: int) -> tuple[Placed, ...]:
    """Place tasks with the given numbers of threads, by rank, where they can begin first: on adjacent threads, and if
    there is a choice, on those that produced their operands."""
    times = [task.times[count - 1] for task, count in zip(tasks, counts, strict=True)]
    longest = ranks([task.needs for task in tasks], times)
    free = [0.0] * threads
    found: dict[int, Placed] = {}
    pending = set(range(len(tasks)))
    while pending:
        ready = [at for at in pending if all(need in found for need in tasks[at].needs)]
        options = [_option(tasks[at], at, counts[at], free, found) for at in ready]
        best = min(options, key=lambda placed: (placed.start, -longest[placed.task], placed.task))
        found[best.task] = best
        pending.remove(best.task)
        free[best.first : best.first + best.count] = [best.end] * best.count
    return _by_start(found.values())


def _by_start(placed: Iterable[Placed]) -> tuple[Placed, ...]:
    return tuple(sorted(placed, key=lambda each: (each.start, each.end, each.task)))


def _option(task: Task, at: int, count: int, free: Sequence[float], found: dict[int, Placed]) -> Placed:
    """The earliest placement of a task."""
    best: tuple[float, int, int] | None = None
    for first in range(len(free) - count + 1):
        start = max(free[first : first + count])
        local = 0
        for need in task.needs:
            producer = found[need]
            is_local = first <= producer.first and producer.first + producer.count <= first + count
            local += is_local
            start = max(start, producer.end + (0.0 if is_local else HAND_OVER))
        best = min(best or (start, -local, first), (start, -local, first))
    assert best is not None
    transfer = FAR if -best[1] < len(task.needs) and task.times[count - 1] else 0.0
    return Placed(at, best[2], count, best[0], best[0] + task.times[count - 1] + transfer)
