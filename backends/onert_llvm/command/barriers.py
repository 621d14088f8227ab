"""Dependencies between commands, by addresses, because tensors with disjoint lifetimes share memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onert.ir import Array

from .command import Command, Pointer

Place = Callable[[Pointer], int]


def barriers(commands: Sequence[Command], place: Place) -> list[bool]:
    """For each command, whether all threads must have finished the earlier ones: they access memory that one writes."""
    found: list[bool] = []
    open_ranges: list[tuple[int, int, bool]] = []
    for command in commands:
        own = [(place(a.pointer), place(a.pointer) + a.nbytes, a.write) for a in command.accesses]
        clash = any(
            (write or other_write) and start < other_end and other_start < end
            for start, end, write in own
            for other_start, other_end, other_write in open_ranges
        )
        if clash:
            open_ranges = []
        open_ranges += own
        found.append(clash)
    return found


def has_teams(commands: Sequence[Command]) -> bool:
    """Whether some commands run on different threads than others."""
    return any(command.threads is not None for command in commands) and len({c.threads for c in commands}) > 1


def waits(commands: Sequence[Command], place: Place) -> list[list[int]]:
    """For each command, the earlier ones that it waits for, latest first: those that access memory which either of the
    two writes, except those that another of them already waits for.
    """
    starts, ends, writes, owners = _accesses(commands, place)
    found: list[list[int]] = []
    before: list[int] = []  # per command, as bits: all commands that are done when it begins
    first = np.searchsorted(owners, np.arange(len(commands) + 1))
    for at in range(len(commands)):
        own = slice(first[at], first[at + 1])
        earlier = slice(0, first[at])
        clash = (starts[own, None] < ends[earlier]) & (starts[earlier] < ends[own, None])
        clash &= writes[own, None] | writes[earlier]
        needed: list[int] = []
        covered = 0
        for other in sorted(set(owners[earlier][clash.any(axis=0)].tolist()), reverse=True):
            if not covered >> other & 1:
                needed.append(other)
                covered |= before[other] | 1 << other
        found.append(needed)
        before.append(covered)
    return found


def _accesses(commands: Sequence[Command], place: Place) -> tuple[Array, Array, Array, Array]:
    """The start and end of each access, whether it writes, and the index of its command."""
    rows = [
        (place(access.pointer), access.nbytes, access.write, at)
        for at, command in enumerate(commands)
        for access in command.accesses
    ]
    starts = np.array([row[0] for row in rows], np.uint64)
    return (
        starts,
        starts + np.array([row[1] for row in rows], np.uint64),
        np.array([row[2] for row in rows], np.bool_),
        np.array([row[3] for row in rows], np.int64),
    )
