"""A run's commands with all that is known of their tasks ahead of time: what entry points are written from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from onert.backend import EntryPoint, Place
from onert.ir.value import Value


@frozen
class Report(Value):
    """So many bytes into the reports of checks, which lie on the stack while an entry runs."""

    offset: int


ROW, SHARE = 64, 64
"""Bytes of a command in a program, and of one thread's share: `Command` and `Share` of `codegen/native/pool.ll`."""

Slots = tuple[int | Place | Report, ...]


@frozen
class Bound(Value):
    """A command with all that is known of its task: the kernel's symbol, 64 bits or a place for each slot, tiles.

    `ahead` is the number of the slot with what the next command reads, which this one only fetches into the cache.
    `pieces` and `sync` are for threads that share it: as in `codegen/native/pool.ll`.
    """

    symbol: str
    slots: Slots
    tiles: int
    pieces: int
    sync: bool
    ahead: int | None

    def shared_bytes(self, threads: int) -> int:
        """What it takes of memory that threads share: a row of the program, their shares, and its task."""
        return ROW + SHARE * threads + -(-8 * len(self.slots) // 16) * 16


@frozen
class BoundLoop(Value):
    """`condition`, and as long as the byte at `goes_on` is set then, `body` and `condition` again.

    It ends when a check that reports to one of `reports` is found broken. With a bound there are so many rounds at the
    most; 1 and their number go to its report where it would go on.
    """

    goes_on: Place | Report
    condition: tuple[Run, ...]
    body: tuple[Run, ...]
    reports: tuple[Report, ...]
    bound: tuple[int, Place | Report] | None


@frozen
class BoundBranch(Value):
    """`then` where the byte at `condition` is set, else `otherwise`."""

    condition: Place | Report
    then: tuple[Run, ...]
    otherwise: tuple[Run, ...]


Run = Bound | BoundLoop | BoundBranch


@frozen
class Begun(Value):
    """A variable, which takes so many bytes of what it begins with while the byte at `started` is 0."""

    started: Place
    variable: Place
    initial: Place
    nbytes: int


@frozen(eq=False)
class Body:
    """What an entry point runs: commands layer by layer, `undo` where it fails, and how variables begin.

    Its checks are known to callers by `codes`, in order. `symbol` is that of the function. A layer that only other
    versions of the entry have is empty.
    """

    symbol: str
    entry: EntryPoint
    layers: tuple[tuple[Run, ...], ...]
    codes: tuple[int, ...]
    undo: tuple[Run, ...]
    beginnings: tuple[Begun, ...]

    @property
    def commands(self) -> tuple[Run, ...]:
        return tuple(command for layer in self.layers for command in layer)


def calls(commands: Iterable[Run]) -> Iterator[Bound]:
    """The calls of kernels in commands, those in loops and branches too."""
    for command in commands:
        if isinstance(command, Bound):
            yield command
        elif isinstance(command, BoundLoop):
            yield from calls((*command.condition, *command.body))
        else:
            yield from calls((*command.then, *command.otherwise))


def program_bytes(commands: Sequence[Run], threads: int) -> int:
    """What commands take of memory that threads share: rows, the count of their runs, shares and tasks.

    Loops and branches take none: one thread runs them.
    """
    return ROW + sum(command.shared_bytes(threads) for command in commands if isinstance(command, Bound))


def most_slots(commands: Sequence[Run]) -> int:
    """The slots of the largest task of all commands."""
    return max((len(call.slots) for call in calls(commands)), default=1)
