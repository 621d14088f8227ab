"""Which groups of a sequence run concurrently, and on which threads.

A group that is ordered with respect to every other runs alone, on all threads, or on one if that is no slower.
Between two of these lies a region: its groups are malleable tasks, scheduled by estimated times (`malleable`).
If a region's schedule is not clearly shorter, its groups run one after the other. If that applies to all regions, the
result is what the Linear executor runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attrs import evolve, frozen

from onert.backend import Group
from onert.backend import Sequence as OperationSequence
from onert.ir.analysis.ordering import around
from onert.ir.value import Value

from .malleable import Task, length, schedule

WORTHWHILE, LEAST_SAVED, OVERALL = 0.9, 1.0, 0.95
"""The fraction of the sequential time that a region's schedule may take, the microseconds that it must save, and the
fraction that the whole sequence may take."""
MOST = 400
"""The most groups of a region that are scheduled."""

Durations = Callable[[Group], tuple[float, ...]]
Needs = Sequence[tuple[int, ...]]


@frozen
class Arranged(Value):
    """Groups in the order in which they begin, with their threads. `needs` has, for each, the positions of the groups
    that must run before it, because of their results or because they share threads."""

    groups: tuple[Group, ...]
    needs: tuple[tuple[int, ...], ...]

    @property
    def is_chain(self) -> bool:
        """Whether the groups run one after the other on all threads."""
        return all(group.threads is None for group in self.groups)


def arrange(sequence: OperationSequence, before: Needs, threads: int, durations: Durations) -> Arranged:
    """The groups of a sequence arranged on `threads` threads. `before` has the predecessors of each operation."""
    groups = sequence.groups
    owner = {at: number for number, group in enumerate(groups) for at in group.operations}
    needs = [
        tuple(sorted({owner[p] for at in group.operations for p in before[at] if p in owner} - {number}))
        for number, group in enumerate(groups)
    ]
    order: list[tuple[int, tuple[int, int]]] = []
    total = saved = 0.0
    for region in _regions(needs):
        tasks = _tasks(region, groups, needs, durations)
        sequential = sum(min(task.times[0], task.times[-1]) for task in tasks)
        placed = schedule(tasks, threads) if threads > 1 and 1 < len(region) <= MOST else ()
        gain = sequential - length(placed) if placed else 0.0
        if placed and gain >= LEAST_SAVED and length(placed) <= WORTHWHILE * sequential:
            order += [(region[p.task], (p.first, p.count)) for p in placed]
            saved += gain
        else:
            order += [(number, _threads_alone(task.times)) for number, task in zip(region, tasks, strict=True)]
        total += sequential
    return _arranged(groups, needs, order, threads) if saved > (1 - OVERALL) * total else in_turn(sequence)


def _threads_alone(times: Sequence[float]) -> tuple[int, int]:
    """The threads of a group that runs alone: all, or only the first if that is no slower."""
    return (0, len(times)) if times[-1] < times[0] else (0, 1)


def in_turn(sequence: OperationSequence) -> Arranged:
    """One group after the other."""
    needs = ((at - 1,) if at else () for at in range(len(sequence.groups)))
    return Arranged(sequence.groups, tuple(needs))


def _tasks(region: Sequence[int], groups: Sequence[Group], needs: Needs, durations: Durations) -> list[Task]:
    """The groups of a region as tasks, numbered by position in the region."""
    number = {group: at for at, group in enumerate(region)}
    return [
        Task(durations(groups[group]), tuple(number[need] for need in needs[group] if need in number))
        for group in region
    ]


def _regions(needs: Needs) -> Iterator[list[int]]:
    """Groups in order, cut at those that are ordered with respect to every other."""
    before, after = around(needs)
    region: list[int] = []
    for number in range(len(needs)):
        if (before[number] | after[number]).bit_count() < len(needs) - 1:
            region.append(number)
            continue
        if region:
            yield region
        yield [number]
        region = []
    if region:
        yield region


def _arranged(
    groups: Sequence[Group], needs: Needs, order: Sequence[tuple[int, tuple[int, int]]], threads: int
) -> Arranged:
    at = {number: position for position, (number, _) in enumerate(order)}
    last: list[int | None] = [None] * threads
    found: list[tuple[int, ...]] = []
    placed: list[Group] = []
    for position, (number, assigned) in enumerate(order):
        own_threads = range(assigned[0], assigned[0] + assigned[1])
        earlier = {at[need] for need in needs[number]} | {p for t in own_threads if (p := last[t]) is not None}
        found.append(tuple(sorted(earlier)))
        placed.append(evolve(groups[number], threads=assigned))
        for thread in own_threads:
            last[thread] = position
    return Arranged(tuple(placed), tuple(found))
