"""The kernel of a sequence: its commands bound to the tensors of one execution."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import Self

import numpy as np
from attrs import frozen

from onert.backend import HasParts, Part, Redirect, Redirects, Tensors
from onert.ir import Array, Context, ExecutionError, Stopping
from onert.ir.process import imports
from onert.ir.value import ByIdentity
from onert_llvm.command.barriers import has_teams
from onert_llvm.command.command import (
    CONDITION,
    JUMP,
    PROGRAM,
    Check,
    Command,
    Lowered,
    all_steps,
    is_idle,
    kernel_calls,
)

from .bound_commands import COMMAND_BYTES, Bound, BoundCommands, Places, Redirecting
from .thread_pool import POOLS, Pool

JUMPS = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
)
"""The type of `JUMP`'s code, which takes the slots of `CONDITION`."""
_STATE = 16
"""64-bit words of what is learnt from runs (see `pool.ll`)."""


@frozen(eq=False)
class NativeKernel(ByIdentity):
    """Commands with the code they call; shared by all executions."""

    lowered: Lowered
    kernels: Mapping[str, int]
    pool: Mapping[str, int]
    threads: int

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        return bind(self, tensors, context)


def bind(kernel: NativeKernel, tensors: Tensors, context: Context) -> Callable[[], None]:
    """A call that runs all commands on these tensors, in native code from start to end."""
    lowered = kernel.lowered
    place = Places(lowered, tensors, context.stop)
    run = _bound(kernel, lowered.commands, place, adapts=not lowered.sequential)
    if lowered.sequential:
        other = _bound(kernel, lowered.sequential, place, adapts=True)
        run = imports.module("onert_llvm.runtime.measured_choice").MeasuredChoice(other, run)
    return checked(run, lowered, place)


def checked(run: HasParts, lowered: Lowered, place: Places) -> HasParts:
    """The run, followed by a report of broken rules if there are any checks, and before that by the reason why its
    loops ended early, if they did."""
    if place.stop is not None and any(c.spec == JUMP and c.slots["stop"] for c in all_steps(lowered.commands)):
        run = _Stopped(run, place.stop)
    return _Checked(run, lowered.checks, place.all_reports) if lowered.checks else run


def _bound(kernel: NativeKernel, listed: Sequence[Command], place: Places, *, adapts: bool) -> HasParts:
    """A call that runs these commands; `adapts` as for `runner`."""
    commands = [command for command in listed if not is_idle(command, place)]
    return runner(kernel, commands, BoundCommands(kernel, commands, place), place, adapts=adapts)


def runner(
    kernel: NativeKernel, commands: Sequence[Command], program: BoundCommands, place: Places, *, adapts: bool = True
) -> HasParts:
    """A call that runs bound commands and keeps the memory that they use alive. With `adapts`, it uses fewer threads
    where that is faster; without, measurements by others are undisturbed.
    """
    keep = Bound(kernel, program, place)
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    serial = ctypes.CFUNCTYPE(None, pointer, integer)(kernel.pool["onert_run"])
    state = np.zeros(_STATE, np.int64) if adapts else None  # shared by all runs: each builds on the previous

    def parallel() -> Callable[..., None]:
        return ctypes.CFUNCTYPE(None, pointer, pointer)(kernel.pool["onert_pool_call"])

    def run(start: int, some: Sequence[Command]) -> _Serial | _Parallel:
        of = tuple(command.operation for command in some)
        if not has_teams(some) and (
            kernel.threads <= 1 or _shared_work(some) < max(_SHARED_WORK, _SHARED_EACH * len(some))
        ):
            return _Serial(serial, start, len(some), keep, of)
        return _Parallel(parallel(), start, len(some), keep, of, state)

    def jumps(jump: Command, program: BoundCommands, at: int) -> Callable[[], bool | None]:
        if not jump.slots["flag"]:
            return _always
        ask = JUMPS(kernel.pool[JUMP.symbol])
        first = program.slot(at, JUMP.layout.slot(CONDITION[0]))
        slots = (ctypes.c_uint64 * len(CONDITION)).from_address(first)
        return lambda: ask(*slots)  # lengths may change the slots

    def drive(program: BoundCommands, some: Sequence[Command], of: int | None = None) -> _Serial | _Parallel | _Steps:
        """Run commands in the best way: those with work for threads are split at jumps, which are taken from here."""
        cuts = set(_cuts(some)) if kernel.threads > 1 else set()
        if not cuts:
            return run(program.address(0), some)
        steps: dict[int, tuple[Callable[[], bool | None], int, int]] = {}
        for start, stop in pairwise(sorted({0, len(some), *cuts})):
            command, length = some[start], stop - start
            if command.spec == JUMP:
                steps[start] = jumps(command, program, start), _by(command), 1
            elif length == 1 and _is_long(command):
                steps[start] = drive(program.inner[start], command.program, command.operation), 1, 1
            else:
                steps[start] = run(program.address(start), some[start:stop]), length, length
        return _Steps(steps, len(some), of, keep)

    return drive(program, commands)


_SHARED_PIECE, _SHARED_EACH, _SHARED_WORK, _SHARED_ROUND = 1 << 16, 1 << 16, 1 << 19, 1 << 22
"""Operations or bytes below which threads take longer to synchronise than they save: of one command, per command of a
run, of a whole run, and of one round of a loop.
"""


def _shared_work(commands: Sequence[Command]) -> int:
    """The work that threads can share, without commands of little work."""
    works = (max(c.flops, sum(a.nbytes for a in c.accesses), _packed(c)) for c in commands if c.pieces > 1)
    return sum(work for work in works if work >= _SHARED_PIECE)


def _packed(command: Command) -> int:
    """The bytes of packed weights that a command reads, which dominate the time of a one-row product."""
    panels, size = (command.slots.get(name) for name in ("panels", "panel_bytes"))
    return panels * size if isinstance(panels, int) and isinstance(size, int) else 0


def _is_long(command: Command) -> bool:
    """Whether a command is a program with steps that are worth sharing."""
    return command.spec == PROGRAM and _shared_work(tuple(kernel_calls((command,)))) >= _SHARED_ROUND


def _always() -> None:
    """A jump without a condition."""


def _by(jump: Command) -> int:
    """The offset of a jump's target, in steps."""
    by = jump.slots["by"]
    assert isinstance(by, int)
    return by


def _cuts(commands: Sequence[Command]) -> Iterator[int]:
    """The starts of steps that are targets of jumps, or that cannot run natively together with the previous ones."""
    for at, command in enumerate(commands):
        if command.spec == JUMP:
            yield from (at, at + 1, at + _by(command))
        elif _is_long(command):
            yield from (at, at + 1)


class _Steps(Redirecting):
    """Calls by the number of their first step, with the offset of the next step; the second offset is for a jump that
    is not taken (False). `operation` is the program's, None for all commands of a kernel."""

    __slots__ = ("_end", "_operation", "_steps", "bound")

    def __init__(
        self,
        steps: Mapping[int, tuple[Callable[[], bool | None], int, int]],
        end: int,
        operation: int | None,
        bound: Bound,
    ) -> None:
        self.bound = bound
        self._steps = steps
        self._end = end
        self._operation = operation

    @property
    def parts(self) -> tuple[Part, ...]:
        """The program as a whole, or the parts of its runs."""
        if self._operation is not None:
            return (Part((self._operation,), self),)
        return tuple(part for run, *_ in self._steps.values() if isinstance(run, HasParts) for part in run.parts)

    def __call__(self) -> None:
        at = 0
        while at < self._end:
            call, by, otherwise = self._steps[at]
            at += otherwise if call() is False else by


class _Serial(Redirecting, partial[None]):
    """Runs the commands on the calling thread: just the native function with its arguments, for minimal overhead."""

    __slots__ = ("_address", "_operations", "bound")

    _address: int
    _operations: tuple[int, ...]

    def __new__(
        cls, run: Callable[..., None], address: int, count: int, bound: Bound, operations: tuple[int, ...]
    ) -> Self:
        self = super().__new__(cls, run, ctypes.c_void_p(address), ctypes.c_int64(count))
        self._address = address
        self.bound = bound
        self._operations = operations
        return self

    def with_copies(self, pairs: Iterable[tuple[Array, Array]]) -> Callable[[], None]:
        """The same run, which then copies the second array of each pair to the first."""
        run = self.bound.code.pool["onert_run_and_copy"]
        copying: Callable[[], None] = imports.module("onert_llvm.runtime.copying").Copying(run, self.args, pairs, self)
        return copying

    @property
    def parts(self) -> tuple[Part, ...]:
        """The commands of each operation separately."""
        return tuple(
            Part((at,), _Serial(self.func, self._address + skipped, count, self.bound, (at,) * count))
            for at, skipped, count in _stretches(self._operations)
        )


class _Parallel(Redirecting):
    """Runs the commands on a borrowed pool of threads."""

    __slots__ = ("_address", "_call", "_idle", "_operations", "_run", "_state", "_words", "bound")

    def __init__(
        self,
        run: Callable[..., None],
        address: int,
        count: int,
        bound: Bound,
        operations: tuple[int, ...],
        state: Array | None,
    ) -> None:
        self._run = run
        self._operations = operations
        self._idle = POOLS.idle(bound.code.threads)
        self._address = address
        self._words = np.array([address, count, 0 if state is None else state.ctypes.data], np.int64)
        self._call = ctypes.c_void_p(self._words.ctypes.data)
        self._state = state
        self.bound = bound

    @property
    def parts(self) -> tuple[Part, ...]:
        """The commands of each operation separately."""
        some = partial(_Parallel, self._run, state=None, bound=self.bound)
        return tuple(
            Part((at,), some(address=self._address + skipped, count=count, operations=(at,) * count))
            for at, skipped, count in _stretches(self._operations)
        )

    def __call__(self) -> None:
        try:
            pool = self._idle.pop()
        except IndexError:
            pool = Pool(self.bound.code.pool, self.bound.code.threads)
        try:
            self._run(pool.pointer, self._call)
        finally:
            self._idle.append(pool)


class _Followed:
    """A run that something follows: `_after` makes a call and what follows it."""

    __slots__ = ("_run",)

    def __init__(self, run: HasParts) -> None:
        self._run = run

    def __call__(self) -> None:
        self._after(self._run)

    def _after(self, run: Callable[[], None]) -> None:
        raise NotImplementedError

    def redirect(self, operands: frozenset[int]) -> Redirect | None:
        return self._run.redirect(operands) if isinstance(self._run, Redirects) else None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the run, each with what follows it."""
        return tuple(Part(p.operations, partial(self._after, p.call)) for p in self._run.parts)


class _Stopped(_Followed):
    """A run with loops, which raises ExecutionError if these ended because the run is to end."""

    __slots__ = ("_stop", "_word")

    def __init__(self, run: HasParts, stop: Stopping) -> None:
        super().__init__(run)
        self._stop, self._word = stop, stop.word

    def _after(self, run: Callable[[], None]) -> None:
        run()
        if self._word[0]:
            self._stop.check()


class _Checked(_Followed):
    """A run that raises ExecutionError for the first broken rule."""

    __slots__ = ("_checks", "_clean", "_none", "_reports")

    def __init__(self, run: HasParts, checks: Sequence[Check], reports: Array) -> None:
        super().__init__(run)
        self._clean = True
        self._checks = checks
        self._reports, self._none = reports, bytes(reports.nbytes)

    def _after(self, run: Callable[[], None]) -> None:
        if not self._clean:  # the previous run was interrupted
            self._reports[:] = 0
        self._clean = False
        run()
        if self._reports.tobytes() != self._none:  # a tenth of the time of `any`
            number = int(self._reports[:, 0].argmax())
            element = int(self._reports[number, 1])
            raise ExecutionError(self._checks[number].sentence(element))
        self._clean = True


def _stretches(operations: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Runs of commands for the same operation: the operation, the offset of the first in bytes, and their number."""
    start = 0
    for at, row in groupby(operations):
        count = len(list(row))
        yield at, start * COMMAND_BYTES, count
        start += count
