"""Compiling one subgraph, from operations to kernels and a memory plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from onert.backend import ArenaPlan, Backend, Routine, Settings
from onert.compiler.rewrite.effects import predecessors
from onert.compiler.scheduler.concurrency import estimated_costs, measured_costs, ranks
from onert.compiler.scheduler.manual import BUILTIN, Assignment, Choices, assign
from onert.compiler.state.in_place import InPlace, decide
from onert.ir import Effect, Subgraph
from onert.ir.process import imports
from onert.ir.process.budget import Budget
from onert.ir.value import Value

from .kernel_generation import fuse, generate
from .limits import is_metered, memory_of, work_of
from .linearize import linearize
from .lowering import Lowered, lower
from .memory_plan import plan_arenas, read_once
from .options import Options
from .partition import Part, Predecessors, Steps, partition, split
from .tensor_registration import register

if TYPE_CHECKING:
    from onert.compiler.scheduler.exec_time import ExecTimes


@frozen
class Plan(Value):
    """A planned subgraph: which backend runs what in which order, and where every tensor is stored.

    `settings` are passed to each part's backend, `updates` says what is updated in place, `notes` come from the
    scheduler.
    """

    lowered: Lowered
    parts: tuple[Part, ...]
    settings: tuple[Settings, ...]
    arenas: Mapping[str, ArenaPlan]
    updates: InPlace
    notes: tuple[str, ...]

    @property
    def dependencies(self) -> tuple[tuple[int, ...], ...]:
        return tuple(part.dependencies for part in self.parts)


def plan_routine(
    subgraph: Subgraph,
    effects: Sequence[Effect],
    backends: Sequence[Backend],
    choices: Choices,
    options: Options,
    measured: ExecTimes | None = None,
    resident: bool = False,
) -> Plan:
    """Do everything up to kernel generation for a subgraph that the pipeline has prepared. If no other subgraph calls
    it, variables and copies of inputs can be `resident`: they outlive a run in the memory space that reads them.

    With `measured` times the heterogeneous scheduler assigns backends, otherwise the manual one. `effects` has the
    effect of running each of the model's subgraphs. Raises CompileError naming every operation without a backend.
    """
    if measured is None:
        assignment = assign(subgraph, backends, choices)
    else:
        assignment = _assign_measured(subgraph, backends, choices, options, measured)
    permuter = next((backend for backend in backends if backend.name == BUILTIN), None)
    lowered = lower(subgraph, assignment.backends, permuter, resident)
    graph = lowered.subgraph
    updates = decide(graph, can_update=lowered.updates_in_place, shared=lowered.shares)
    before = predecessors(graph, effects, updates.must_follow)
    parts = tuple(fuse(part, options.settings) for part in partition(lowered, before))
    if updates.updates:  # grouping may have moved operations to a later moment
        when = linearize([part.sequence for part in parts], len(graph.operations))
        single_operations = {moment.group.operations[0] for moment in when.moments if len(moment.group.operations) == 1}
        updates = decide(
            graph,
            when.of_operation.__getitem__,
            lambda at: at in single_operations and lowered.updates_in_place(at),
            lowered.shares,
        )
        before = predecessors(graph, effects, updates.must_follow)
    planned = _steps(lowered, before, parts, options, measured)
    registration = register(graph, lowered.memories, planned.timeline, updates, lowered.resident_copies)
    arenas = plan_arenas(graph, registration, planned.timeline, planned.needs, options.planner)
    return Plan(lowered, planned.parts, planned.settings, arenas, updates, assignment.notes)


def _steps(
    lowered: Lowered, before: Predecessors, parts: tuple[Part, ...], options: Options, measured: ExecTimes | None
) -> Steps:
    """The parts arranged for the chosen executor."""
    if options.executor == "Parallel":
        planned: Steps = imports.module("onert.compiler.side_by_side.plan").plan(
            lowered, before, parts, options, measured
        )
        return planned
    needs = None
    if options.executor == "Dataflow":
        parts = split(lowered, before, parts)
        needs = tuple(part.dependencies for part in parts)
    timeline = linearize([part.sequence for part in parts], len(lowered.subgraph.operations))
    return Steps(parts, (options.settings,) * len(parts), timeline, needs)


def _assign_measured(
    subgraph: Subgraph, backends: Sequence[Backend], choices: Choices, options: Options, measured: ExecTimes
) -> Assignment:
    """The assignment of the heterogeneous scheduler, imported only if there are measured times."""
    scheduler = imports.module("onert.compiler.scheduler.heterogeneous")
    found: Assignment = scheduler.assign_measured(subgraph, backends, choices, options, measured)
    return found


def compile_routine(plan: Plan, options: Options, measured: ExecTimes | None, memory: Budget) -> Routine:
    """The planned subgraph with its kernels.

    The bytes that a run needs are spent from `memory` before anything of that size is allocated.
    """
    lowered = plan.lowered
    memory.spend(
        memory_of(lowered.subgraph, lowered.backends, plan.arenas.values()),
        f"running {_name(lowered.subgraph)} (max_memory)",
    )
    steps = generate(plan.parts, plan.settings)
    dependencies = plan.dependencies
    order: tuple[float, ...] = ()
    if options.executor != "Linear":
        order = ranks(dependencies, estimated_costs(steps) if measured is None else measured_costs(steps, measured))
    work = work_of(lowered.subgraph, lowered.backends)
    groups = [group.operations for step in steps for group in step.sequence.groups]
    return Routine(
        lowered.subgraph,
        steps,
        dependencies,
        plan.arenas,
        lowered.memories,
        order,
        work,
        is_metered(lowered.subgraph),
        plan.updates.roots,
        plan.updates.pairs,
        read_once(lowered.subgraph, groups, set(plan.updates.roots.values())),
    )


def _name(subgraph: Subgraph) -> str:
    return f"subgraph '{subgraph.name}'" if subgraph.name else "the model"


def summary(index: int, routine: Routine) -> str:
    """A sentence saying how many operations of a subgraph each backend runs, and in how many steps."""
    steps = Counter(step.backend for step in routine.steps)
    operations: Counter[str] = Counter()
    for step in routine.steps:
        operations[step.backend] += len(step.sequence.operations)
    shares = (f"{name} runs {count} operations in {steps[name]} steps" for name, count in operations.items())
    return f"subgraph {index}: {', '.join(shares) or 'nothing to run'}"
