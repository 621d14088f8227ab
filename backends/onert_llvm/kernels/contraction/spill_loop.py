"""Values on their way to memory through the stack and a loop, so that the code for what becomes of them is there once.

Generating code takes the longer the more of it there is, and what follows a sum is often longer than the sum: written
out for every row of a tile it would be most of a kernel. What a loop costs is a store and a load of each value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from onert_llvm.irbuilder import Kernel, Val


@contextmanager
def parked(k: Kernel, rows: Sequence[Sequence[Val]]) -> Iterator[tuple[Val, list[Val]]]:
    """Loop over rows of values, all of the same types: which, and its values."""
    columns = []
    for column in zip(*rows, strict=True):
        element, lanes = column[0].type.element, column[0].lanes
        room = k.view(k.scratch(element, len(rows) * lanes), element, lanes)
        for i, value in enumerate(column):
            room[i].store(value)
        columns.append((room, lanes))
    with k.loop(len(rows)) as row:
        yield row, [room[row].load(lanes) for room, lanes in columns]
