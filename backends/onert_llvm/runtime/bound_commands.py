"""Commands bound to the memory of one execution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from attrs import frozen

from onert.backend import Redirect, Tensors
from onert.ir import Array, Stopping
from onert.ir.dtype import address
from onert.ir.value import ByIdentity
from onert_llvm.command.barriers import barriers, has_teams, waits
from onert_llvm.command.command import JUMP, REPORT_BYTES, Area, Command, Lowered, Pointer
from onert_llvm.command.task_layout import slot_bits

from .aligned_memory import zeros

_WORDS = 8
"""64-bit words of a command in memory or a thread's share of it (see `pool.ll`)."""
COMMAND_BYTES = 8 * _WORDS
_FN, _TASK, _TILES, _PIECES, _SYNC, _SHARES, _RUNS, _THREADS = range(_WORDS)

Slot = tuple[memoryview, int, int]
"""The words of tasks, the index of one that is a pointer, and its offset from the start of its operand in bytes."""


class Code(Protocol):
    """The addresses of native functions by name, those of kernels and those of the thread runtime, and how many threads
    share the work."""

    @property
    def kernels(self) -> Mapping[str, int]: ...

    @property
    def pool(self) -> Mapping[str, int]: ...

    @property
    def threads(self) -> int: ...


class Places:
    """Resolves pointers to addresses, and keeps the arrays alive."""

    def __init__(self, lowered: Lowered, tensors: Tensors, stop: Stopping | None) -> None:
        self._lowered = lowered
        self.stop = stop
        self._tensors = tensors
        self.scratch = zeros(max(lowered.scratch * lowered.teams, 1), np.uint8)
        self.all_reports = np.zeros((max(len(lowered.checks), 1), REPORT_BYTES // 8), np.int64)
        self._operands: dict[int, tuple[int, Array]] = {}

    def hold(self, operands: Iterable[int], array: Array, start: int) -> None:
        """From now on these operands are in `array`, which is at address `start`."""
        found = start, array
        for operand in operands:
            if operand in self._operands:
                self._operands[operand] = found

    def __call__(self, pointer: Pointer) -> int:
        if pointer.area is Area.CONSTANT:
            base = self._lowered.constants[pointer.index].ctypes.data
        elif pointer.area is Area.SCRATCH:
            base = self.scratch.ctypes.data + pointer.index * self._lowered.scratch
        elif pointer.area is Area.REPORT:
            base = self.all_reports.ctypes.data
        elif pointer.area is Area.STOP:
            base = 0 if self.stop is None else self.stop.word.ctypes.data
        else:
            found = self._operands.get(pointer.index)
            if found is None:
                array = np.ascontiguousarray(self._tensors[pointer.index].array)
                found = self._operands[pointer.index] = (array.ctypes.data, array)
            base = found[0]
        return int(base) + pointer.offset


class BoundCommands:
    """The array of commands that native code walks, with their tasks and the programs that some of them run."""

    def __init__(self, code: Code, commands: Sequence[Command], place: Places) -> None:
        self.inner = {at: BoundCommands(code, c.program, place) for at, c in enumerate(commands) if c.program}
        self._commands = commands
        self._tasks = np.array([bits for command in commands for bits in _task(command, place)], np.uint64)
        count, shares = max(len(commands), 1), code.threads if code.threads > 1 else 0
        lines = zeros((count * (1 + shares) + 1) * _WORDS, np.uint64).reshape(-1, _WORDS)
        self._rows, rest = lines[:count], lines[count:]
        at, line = self._tasks.ctypes.data, rest.ctypes.data
        runs = line + 8 * _WORDS * count * shares
        teams = has_teams(commands)
        syncs = self._lists(waits(commands, place)) if teams else barriers(commands, place)
        for number, (row, command, sync) in enumerate(zip(self._rows, commands, syncs, strict=False)):
            row[_TASK] = at
            if command.program:
                row[_FN], row[_TASK] = code.pool[command.spec.symbol], self.inner[number].address(0)
            elif command.spec != JUMP:
                row[_FN] = code.kernels[command.spec.symbol]
            row[_TILES], row[_PIECES], row[_SYNC] = command.tiles, command.pieces, sync
            row[_SHARES], row[_RUNS] = line, runs
            if teams:
                first, threads = command.threads or (0, code.threads)
                row[_THREADS] = first | threads << 32
            at += 8 * len(command.spec.layout.names)
            line += 8 * _WORDS * shares

    def address(self, at: int) -> int:
        """The address of a command."""
        return int(self._rows.ctypes.data) + at * COMMAND_BYTES

    def count(self, at: int, pieces: bool) -> int:
        """The address of a command's number of tiles, or of its number of pieces."""
        return self.address(at) + 8 * (_PIECES if pieces else _TILES)

    def slot(self, at: int, slot: int) -> int:
        """The address of a slot of a command's task."""
        return int(self._rows[at, _TASK]) + 8 * slot

    def pointers(self, operands: frozenset[int]) -> Iterator[Slot]:
        """The slots of tasks with pointers to these operands, those of inner programs included."""
        words, at = self._tasks.data, 0
        for command in self._commands:
            for name in command.spec.layout.names:
                value = command.slots[name]
                if isinstance(value, Pointer) and value.area is Area.OPERAND and value.index in operands:
                    yield words, at, value.offset
                at += 1
        for inner in self.inner.values():
            yield from inner.pointers(operands)

    def _lists(self, needed: Sequence[Sequence[int]]) -> list[int]:
        """For each command, the address of a list of how far back the commands are that it waits for; 0 for none."""
        numbers: list[int] = []
        at: list[int | None] = []
        for number, earlier in enumerate(needed):
            at.append(len(numbers) if earlier else None)
            if earlier:
                numbers += (len(earlier), *(number - other for other in earlier))
        self._needed = np.array(numbers, np.int64)
        base = int(self._needed.ctypes.data)
        return [0 if place is None else base + 8 * place for place in at]


def _task(command: Command, place: Callable[[Pointer], int]) -> Iterator[int]:
    """The values of a command's slots."""
    for value in (command.slots[name] for name in command.spec.layout.names):
        yield place(value) if isinstance(value, Pointer) else slot_bits(value)


@frozen(eq=False)
class Bound(ByIdentity):
    """Bound commands, the code that they call, and the memory that they use."""

    code: Code
    program: BoundCommands
    place: Places

    def redirect(self, operands: frozenset[int]) -> Redirect:
        """As for `Redirects`."""
        slots, hold = tuple(self.program.pointers(operands)), self.place.hold

        def redirected(array: Array) -> None:
            start = address(array)
            for words, at, offset in slots:
                words[at] = start + offset
            hold(operands, array, start)

        return redirected


class Redirecting:
    """A call that runs bound commands, which can be redirected."""

    __slots__ = ()

    bound: Bound

    def redirect(self, operands: frozenset[int]) -> Redirect | None:
        return self.bound.redirect(operands)
