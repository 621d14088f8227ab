"""Dependencies between commands, by addresses, because tensors with disjoint lifetimes share memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from onert.ir import Array

from .command import Command, Pointer

Place = Callable[[Pointer], int]


class _Ranges:
    """Ranges of addresses, merged where they meet, so that finding one takes a binary search."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def _between(self, start: int, end: int) -> slice:
        """The ranges that share an address with this one."""
        return slice(bisect_right(self._ends, start), bisect_left(self._starts, end))

    def meet(self, start: int, end: int) -> bool:
        found = self._between(start, end)
        return bool(found.start < found.stop)

    def add(self, start: int, end: int) -> None:
        found = self._between(start, end)
        if found.start < found.stop:
            start, end = min(start, self._starts[found.start]), max(end, self._ends[found.stop - 1])
        self._starts[found], self._ends[found] = [start], [end]


def barriers(commands: Sequence[Command], place: Place) -> list[bool]:
    """For each command, whether all threads must have finished the earlier ones: they access memory that one writes."""
    found: list[bool] = []
    read, written = _Ranges(), _Ranges()
    for command in commands:
        own = [(place(a.pointer), place(a.pointer) + a.nbytes, a.write) for a in command.accesses if a.nbytes]
        clash = any(written.meet(start, end) or (write and read.meet(start, end)) for start, end, write in own)
        if clash:
            read, written = _Ranges(), _Ranges()
        for start, end, write in own:
            (written if write else read).add(start, end)
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
