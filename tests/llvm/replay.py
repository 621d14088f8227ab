"""Replays a kernel's commands one after another, each with all memory that it does not declare inverted.

Threads run commands side by side if their declared accesses do not conflict. So a command must neither read nor write
anything else. Its pieces must not depend on one another: they run in reverse order, each as another thread.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import evolve

from onert_llvm.command.command import CONDITION, JUMP, PROGRAM, Access, Area, Command, Pointer, all_steps
from onert_llvm.runtime import native_kernel
from onert_llvm.runtime.bound_commands import BoundCommands, Places
from onert_llvm.runtime.native_kernel import NativeKernel

from .harness import ENTRY, Array

Range = tuple[int, int]


def runner(
    kernel: NativeKernel, commands: Sequence[Command], program: BoundCommands, place: Places, *, adapts: bool = True
) -> Any:
    """Replaces the function of the same name in `native_kernel`."""
    return Replay(kernel, commands, program, place)


class Replay:
    """A call that replays bound commands; fails with the first one that touches what it does not declare."""

    def __init__(
        self, kernel: NativeKernel, commands: Sequence[Command], program: BoundCommands, place: Places
    ) -> None:
        self._kernel = kernel
        self._commands = commands
        self._program = program
        self._place = place
        self._reports = Access(Pointer(Area.REPORT), place.all_reports.nbytes, True)
        whole = [self._reports, Access(Pointer(Area.SCRATCH), place.scratch.nbytes)]
        ranges = [self._range(access) for access in whole]
        for command in commands:
            for access in command.accesses:
                if access.pointer.area is Area.OPERAND:
                    start = place(Pointer(Area.OPERAND, access.pointer.index))
                    ranges.append((start, start + place._operands[access.pointer.index][1].nbytes))
        self._memory = [(start, _bytes(start, stop - start)) for start, stop in _joined(ranges)]

    def __call__(self) -> None:
        self._run(self._commands, self._program)

    def _range(self, access: Access) -> Range:
        start = self._place(access.pointer)
        return start, start + access.nbytes

    def _run(self, commands: Sequence[Command], bound: BoundCommands) -> None:
        at = 0
        while at < len(commands):
            command = commands[at]
            if command.spec == JUMP:
                at += native_kernel._by(command) if self._jumps(bound, at) else 1
                continue
            if command.spec == PROGRAM:
                self._alone(command, lambda command=command, at=at: self._run(command.program, bound.inner[at]))
            else:
                self._pieces(command, bound, at)
            at += 1

    def _jumps(self, bound: BoundCommands, at: int) -> bool:
        first = bound.slot(at, JUMP.layout.slot(CONDITION[0]))
        slots = (ctypes.c_uint64 * len(CONDITION)).from_address(first)
        return not slots[0] or bool(native_kernel.JUMPS(self._kernel.pool[JUMP.symbol])(*slots))

    def _pieces(self, command: Command, bound: BoundCommands, at: int) -> None:
        """Run the pieces of a command, the last one first; those of one thread after another if each thread has memory
        of its own, of which only that thread's is declared then."""
        code, task, tiles, pieces = (int(bound._rows[at, word]) for word in range(4))
        entry, room, threads = ENTRY(code), _room(command, bound, at), self._kernel.threads

        def run(own: Sequence[int]) -> None:
            for piece in reversed(own):
                entry(task, piece * tiles // pieces, (piece + 1) * tiles // pieces, (-1 - piece) % threads)

        def declared(thread: int, rooms: Pointer, nbytes: int) -> Iterator[Access]:
            for access in command.accesses:
                if access.write and access.pointer == rooms:
                    offset = rooms.offset + thread * nbytes
                    assert offset + nbytes <= rooms.offset + access.nbytes
                    access = Access(evolve(rooms, offset=offset), nbytes, True)
                yield access

        if room is None:
            self._alone(command, lambda: run(range(pieces)))
            return
        for thread in range(threads):
            own = evolve(command, accesses=tuple(declared(thread, *room)))
            self._alone(own, lambda thread=thread: run(range(threads - 1 - thread, pieces, threads)))

    def _alone(self, command: Command, run: Callable[[], object]) -> None:
        """Run a command, with the bits of all that it does not declare inverted meanwhile."""
        reports = any(
            isinstance(slot, Pointer) and slot.area is Area.REPORT
            for step in all_steps((command,))
            for slot in step.slots.values()
        )
        touched = (*command.accesses, *((self._reports,) if reports else ()))
        hidden = self._outside(map(self._range, touched))
        kept = self._outside(self._range(access) for access in touched if access.write)
        for each in hidden:
            np.invert(each, out=each)
        before = [each.tobytes() for each in kept]
        run()
        for each, saved in zip(kept, before, strict=True):
            assert each.tobytes() == saved, f"{command.spec.name} writes memory that it does not declare"
        for each in hidden:
            np.invert(each, out=each)

    def _outside(self, ranges: Iterable[Range]) -> list[Array]:
        """All memory except these ranges of addresses."""
        found, left = [], deque(_joined(ranges))
        for start, memory in self._memory:
            at, end = start, start + len(memory)
            while left and left[0][0] < end:
                first, last = left[0]
                if at < first:
                    found.append(memory[at - start : first - start])
                at = max(at, last)
                if last > end:
                    break
                left.popleft()
            if at < end:
                found.append(memory[at - start :])
        return found


def _room(command: Command, bound: BoundCommands, at: int) -> tuple[Pointer, int] | None:
    """The memory of which each thread has a part, and the size of a part; None if there is none."""
    inner = command.program[0] if command.program else command
    rooms, names = inner.slots.get("rooms"), inner.spec.layout.names
    if not isinstance(rooms, Pointer):
        return None
    task = bound.inner[at].slot(0, names.index("room")) if command.program else bound.slot(at, names.index("room"))
    return rooms, ctypes.c_int64.from_address(task).value


def _joined(ranges: Iterable[Range]) -> list[Range]:
    """The ranges in order, with overlapping ones joined."""
    found: list[Range] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        elif start < stop:
            found.append((start, stop))
    return found


def _bytes(address: int, count: int) -> Array:
    return np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(address))
