"""A run's commands with all that is known of their tasks ahead of time: what entry points are written from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from onert.backend import EntryPoint, Place
from onert.ir.value import Value
from onert_llvm.command.command import JUMP


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
class Program(Value):
    """Steps that one thread runs: calls of kernels, jumps (whose symbol is `JUMP`'s), programs."""

    steps: tuple[Run, ...]


Run = Bound | Program


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


def steps(commands: Iterable[Run]) -> Iterator[Bound]:
    """The commands, with the steps of programs in their place."""
    for command in commands:
        if isinstance(command, Bound):
            yield command
        else:
            yield from steps(command.steps)


def calls(commands: Iterable[Run]) -> Iterator[Bound]:
    """Those of all steps that call kernels."""
    return (step for step in steps(commands) if step.symbol != JUMP.symbol)


def program_bytes(commands: Sequence[Run], threads: int) -> int:
    """What commands take of memory that threads share: rows, the count of their runs, shares and tasks.

    Programs take none: one thread runs them.
    """
    return ROW + sum(command.shared_bytes(threads) for command in commands if isinstance(command, Bound))


def most_slots(commands: Sequence[Run]) -> int:
    """The slots of the largest task of all commands."""
    return max((len(step.slots) for step in steps(commands)), default=1)
