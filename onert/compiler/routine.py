"""Compiling one subgraph: from operations to kernels with a memory plan."""

from __future__ import annotations

from collections.abc import Sequence

from onert.backend import Backend, Routine
from onert.ir import Effect, Subgraph

from .effects import predecessors
from .kernel_generation import fuse, generate
from .linearize import linearize
from .lowering import lower
from .memory_plan import plan_arenas
from .options import Options
from .partition import partition
from .scheduler.manual import BUILTIN, Choices, assign
from .tensor_registration import register


def compile_routine(
    subgraph: Subgraph,
    effects: Sequence[Effect],
    backends: Sequence[Backend],
    choices: Choices,
    options: Options,
) -> tuple[Routine, tuple[str, ...]]:
    """The routine of a subgraph that the pipeline has prepared, and the scheduler's notes.

    `effects` are those of running each of the model's subgraphs.
    """
    settings = options.settings
    concurrent = options.executor != "Linear"
    assignment = assign(subgraph, backends, choices)
    permuter = next((backend for backend in backends if backend.name == BUILTIN), None)
    lowered = lower(subgraph, assignment.backends, permuter)
    parts = partition(lowered, predecessors(lowered.subgraph, effects), concurrent=concurrent)
    parts = tuple(fuse(part, settings) for part in parts)
    timeline = linearize([part.sequence for part in parts], len(lowered.subgraph.operations))
    registration = register(lowered.subgraph, lowered.memories, timeline)
    dependencies = tuple(part.dependencies for part in parts)
    arenas = plan_arenas(
        lowered.subgraph, registration, timeline, dependencies if concurrent else None, options.planner
    )
    steps = generate(parts, settings)
    return Routine(lowered.subgraph, steps, dependencies, arenas, lowered.memories), assignment.notes
