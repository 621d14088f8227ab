"""The planner that hands blocks on: TNN's recycling by similar size."""

from __future__ import annotations

from itertools import accumulate

from .claims import Claims


def recycle(claims: Claims) -> list[int]:
    """In the order of the run, each tensor in the free block whose size is nearest, which grows to hold it.

    A block is free where none of its tensors is alive with the new one; of blocks equally near, the one used last is
    taken, and where none is free a new one is made. Blocks lie one behind the other.
    """
    blocks: list[int] = []
    owner = [-1] * len(claims)
    used: list[int] = []
    for index, size in enumerate(claims.sizes):
        if size == 0:
            continue
        taken = {owner[other] for other in claims.neighbours[index]}
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
