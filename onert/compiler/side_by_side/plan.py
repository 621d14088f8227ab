"""Planning for the Parallel executor: concurrent steps, and concurrent groups within steps.

A step costs a hand-over between interpreter threads, some tens of microseconds, so steps run concurrently only if that
pays off, as when backends that run groups side by side themselves (`arrange`) are combined with others. If nothing pays
off, the plan is what the Linear executor runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from onert.backend.planner.liveness import MOST_STEPS
from onert.compiler.linearize import linearize
from onert.compiler.lowering import Lowered
from onert.compiler.options import Options
from onert.compiler.partition import Part, Predecessors, Steps, split
from onert.compiler.scheduler.concurrency import threads_for
from onert.ir import Subgraph

from .arrange import Arranged, arrange, in_turn
from .durations import durations
from .malleable import Task, length, place

if TYPE_CHECKING:
    from onert.compiler.scheduler.exec_time import ExecTimes

HAND_OVER = 60.0
"""Microseconds that concurrent steps must save: the cost of handing one to another thread and waiting for it."""


def plan(
    lowered: Lowered,
    before: Predecessors,
    parts: Sequence[Part],
    options: Options,
    known: ExecTimes | None = None,
) -> Steps:
    """The steps of a subgraph; `parts` are what the Linear executor would run, `known` are measured times."""
    cut = split(lowered, before, parts, concurrent=True)
    if not _pays(lowered.subgraph, cut, options, known):
        cut = tuple(evolve(part, dependencies=tuple(range(at))[-1:]) for at, part in enumerate(parts))
    dependencies = tuple(part.dependencies for part in cut)
    shares = threads_for(dependencies, options.num_threads)
    settings = tuple(evolve(options.settings, num_threads=threads) for threads in shares)
    few = sum(len(part.sequence.groups) for part in cut) <= MOST_STEPS
    arranged = [
        _arranged(lowered.subgraph, before, part, threads, known) if few else in_turn(part.sequence)
        for part, threads in zip(cut, shares, strict=True)
    ]
    cut = tuple(
        evolve(part, sequence=evolve(part.sequence, groups=each.groups))
        for part, each in zip(cut, arranged, strict=True)
    )
    timeline = linearize([part.sequence for part in cut], len(lowered.subgraph.operations))
    if all(each.is_chain for each in arranged):
        in_order = all(at - 1 in each for at, each in enumerate(dependencies) if at)
        return Steps(cut, settings, timeline, None if in_order else dependencies)
    moments = tuple(evolve(moment, step=at) for at, moment in enumerate(timeline.moments))
    return Steps(cut, settings, evolve(timeline, moments=moments), _moment_needs(arranged, dependencies))


def _arranged(subgraph: Subgraph, before: Predecessors, part: Part, threads: int, known: ExecTimes | None) -> Arranged:
    if not part.backend.side_by_side:
        return in_turn(part.sequence)
    times = partial(durations, subgraph, backend=part.backend, threads=threads, known=known)
    return arrange(part.sequence, before, threads, times)


def _pays(subgraph: Subgraph, parts: Sequence[Part], options: Options, known: ExecTimes | None) -> bool:
    """Whether running these parts concurrently saves more than handing them to other threads costs."""
    if options.num_threads == 1 or not any(_may_overlap(parts)):
        return False
    tasks = [Task((_microseconds(subgraph, part, options, known),), part.dependencies) for part in parts]
    concurrent = length(place(tasks, [1] * len(tasks), options.num_threads))
    return sum(task.times[0] for task in tasks) - concurrent > HAND_OVER


def _may_overlap(parts: Sequence[Part]) -> list[bool]:
    """For each part except the first, whether it may run concurrently with the one before it."""
    return [at not in part.dependencies for at, part in enumerate(parts[1:])]


def _microseconds(subgraph: Subgraph, part: Part, options: Options, known: ExecTimes | None) -> float:
    """The duration of a part on all threads."""
    each = [durations(subgraph, group, part.backend, options.num_threads, known)[-1] for group in part.sequence.groups]
    return sum(each)


def _moment_needs(arranged: Sequence[Arranged], dependencies: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """For each group of all parts, in order, the groups that must finish before it."""
    found: list[tuple[int, ...]] = []
    last: list[tuple[int, ...]] = []
    for own, needed in zip(arranged, dependencies, strict=True):
        start = len(found)
        earlier = tuple(sorted(at for part in needed for at in last[part]))
        found += [tuple(start + at for at in needs) or earlier for needs in own.needs]
        inner = {at for needs in own.needs for at in needs}
        last.append(tuple(start + at for at in range(len(own.groups)) if at not in inner))
    return tuple(found)
