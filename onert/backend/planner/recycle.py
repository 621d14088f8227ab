"""The planner that reuses blocks: TNN's recycling by similar size."""

from __future__ import annotations

from itertools import accumulate

from .problem import PlanningProblem


def recycle(problem: PlanningProblem) -> list[int]:
    """In the order of the run, each tensor in the free block of the nearest size, which grows to hold it.

    A block is free if none of its tensors is alive together with the new one. Of equally near blocks, the one used last
    is chosen; if none is free, a new one is added. Blocks are placed one after the other.
    """
    blocks: list[int] = []
    owner = [-1] * len(problem)
    used: list[int] = []
    for index, size in enumerate(problem.sizes):
        if size == 0:
            continue
        taken = {owner[other] for other in problem.neighbours[index]}
        free = [block for block in range(len(blocks)) if block not in taken]
        if free:
            chosen = min(free, key=lambda block: (abs(blocks[block] - size), -used[block]))
            blocks[chosen] = max(blocks[chosen], size)
            used[chosen] = index
        else:
            chosen = len(blocks)
            blocks.append(size)
            used.append(index)
        owner[index] = chosen
    starts = list(accumulate(blocks, initial=0))
    return [0 if block < 0 else starts[block] for block in owner]
