"""A run's commands with all that is known of their tasks ahead of time; entry points are generated from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from onert.backend import EntryPoint, Place
from onert.ir.value import Value
from onert_llvm.command.command import JUMP


@frozen
class Report(Value):
    """An offset in bytes into the reports of checks, which are on the stack while an entry runs."""

    offset: int


ROW, SHARE = 64, 64
"""Bytes of a command in a program, and of one thread's share: `Command` and `Share` of `codegen/native/pool.ll`."""

Slots = tuple[int | Place | Report, ...]


@frozen
class BoundCommand(Value):
    """A command with its task as far as it is known: the kernel's symbol, 64 bits or a place for each slot, and tiles.

    `ahead` is the index of the slot with what the next command reads, which this one only prefetches. `pieces` and
    `sync` are for threads that share the command, as in `codegen/native/pool.ll`.
    """

    symbol: str
    slots: Slots
    tiles: int
    pieces: int
    sync: bool
    ahead: int | None

    def shared_bytes(self, threads: int) -> int:
        """The bytes it needs in memory that threads share: a row of the program, the threads' shares, and its task."""
        return ROW + SHARE * threads + -(-8 * len(self.slots) // 16) * 16


@frozen
class Program(Value):
    """Steps that one thread runs: kernel calls, jumps (their symbol is `JUMP`'s) and nested programs."""

    steps: tuple[Run, ...]


Run = BoundCommand | Program


@frozen
class Initialization(Value):
    """A variable that is initialised with `nbytes` bytes of `initial` while the byte at `started` is 0."""

    started: Place
    variable: Place
    initial: Place
    nbytes: int


@frozen(eq=False)
class Body:
    """What an entry point runs: commands layer by layer, `undo` if it fails, and the initial values of variables.

    `codes` are the error codes of its checks, in order. `symbol` names the function. A layer that only other versions
    of the entry have is empty.
    """

    symbol: str
    entry: EntryPoint
    layers: tuple[tuple[Run, ...], ...]
    codes: tuple[int, ...]
    undo: tuple[Run, ...]
    beginnings: tuple[Initialization, ...]

    @property
    def commands(self) -> tuple[Run, ...]:
        return tuple(command for layer in self.layers for command in layer)


def steps(commands: Iterable[Run]) -> Iterator[BoundCommand]:
    """The commands, with programs replaced by their steps."""
    for command in commands:
        if isinstance(command, BoundCommand):
            yield command
        else:
            yield from steps(command.steps)


def calls(commands: Iterable[Run]) -> Iterator[BoundCommand]:
    """The steps that call kernels."""
    return (step for step in steps(commands) if step.symbol != JUMP.symbol)


def program_bytes(commands: Sequence[Run], threads: int) -> int:
    """The bytes that commands need in memory that threads share: rows, the count of their runs, shares and tasks.

    Programs need none: one thread runs them.
    """
    return ROW + sum(command.shared_bytes(threads) for command in commands if isinstance(command, BoundCommand))


def most_slots(commands: Sequence[Run]) -> int:
    """The number of slots of the largest task."""
    return max((len(step.slots) for step in steps(commands)), default=1)
