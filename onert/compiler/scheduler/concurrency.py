"""Concurrent steps: the threads that each of them gets, and their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from onert.backend import Step
from onert.backend.planner.liveness import MOST_STEPS, reachability
from onert.ir.analysis.cost import cost
from onert.ir.symbolic.trace import hint

if TYPE_CHECKING:
    from .exec_time import ExecTimes

BYTES_PER_FLOP = 4
"""The memory traffic that takes about as long as one multiplication and addition, for rough guesses."""

Dependencies = Sequence[Sequence[int]]


def concurrent_steps(dependencies: Dependencies) -> list[int]:
    """For each step, the number of steps that may run concurrently with it."""
    count = len(dependencies)
    if count > MOST_STEPS:
        return [count - 1] * count
    before = reachability(dependencies)
    concurrent = ~(before | before.T)
    np.fill_diagonal(concurrent, val=False)
    return [int(n) for n in concurrent.sum(axis=1)]


def threads_for(dependencies: Dependencies, threads: int) -> list[int]:
    """Threads for each step's kernel: all if it runs alone, otherwise an equal share among concurrent steps."""
    return [max(1, threads // min(threads, 1 + others)) for others in concurrent_steps(dependencies)]


def ranks(dependencies: Dependencies, costs: Sequence[float]) -> tuple[float, ...]:
    """The cost of the longest path from each step to the end, including its own."""
    found = list(costs)
    longest = [0.0] * len(costs)
    for step in range(len(costs) - 1, -1, -1):
        found[step] = costs[step] + longest[step]
        for dependency in dependencies[step]:
            longest[dependency] = max(longest[dependency], found[step])
    return tuple(found)


def estimated_costs(steps: Sequence[Step]) -> list[float]:
    """The cost of each step by arithmetic and memory traffic, if nothing was measured."""
    found = []
    for step in steps:
        subgraph = step.sequence.subgraph
        each = [cost(operation.op, subgraph.types(operation)) for operation in step.sequence.body]
        found.append(hint(sum(c.flops + c.nbytes / BYTES_PER_FLOP for c in each)))
    return found


def measured_costs(steps: Sequence[Step], known: ExecTimes) -> list[float]:
    """The measured time of each step; operations that were not measured count as 0."""
    found = []
    for step in steps:
        subgraph = step.sequence.subgraph
        times = [known.operation(step.backend, o.op, subgraph.types(o)) for o in step.sequence.body]
        found.append(sum(time for time in times if time is not None and isfinite(time)))
    return found
