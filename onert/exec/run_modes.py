"""Runs that do more than run the steps: in a shared arena, observed, or metered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING

from attrs import frozen

from onert.backend import Program
from onert.exec.frames.frame import Frame
from onert.exec.frames.variables import Variables
from onert.ir.process.imports import module

from .arena import SharedArena
from .meter import Meter

if TYPE_CHECKING:
    from onert.exec.observers.observer import Observer
    from onert.exec.observers.watching import Watching

    from .context import Instance


def watching(program: Program, observers: Sequence[Observer]) -> Watching:
    """The given observers, and those that the program's options ask for."""
    own = module("onert.exec.observers.recording").recorders(program.recordings)
    found: Watching = module("onert.exec.observers.watching").Watching((*observers, *own))
    return found


@frozen(eq=False)
class Prepared:
    """Calls each of `before`, which preserve state until the run has succeeded, and then runs a frame."""

    run: Callable[[Frame], None]
    before: tuple[Callable[[], None], ...]

    def __call__(self, frame: Frame) -> None:
        for each in self.before:
            each()
        self.run(frame)


@frozen(eq=False)
class Accompanied:
    """Runs a program's frame once, in its arena's turn, with observers notified and work counted from 0."""

    program: Program
    arena: SharedArena | None
    watching: Watching | None
    meter: Meter

    def __call__(self, frame: Frame) -> None:
        self.meter.begin()
        run = frame.execute if self.watching is None else partial(self._watched, watching=self.watching)
        if self.arena is None:
            run(frame)
        else:
            self.arena.lend(partial(run, frame))

    def _watched(self, frame: Frame, watching: Watching) -> None:
        for observer in watching.observers:
            observer.run_begins(self.program, frame.tensors)
        failed: BaseException | None = None
        start = perf_counter_ns()
        try:
            frame.execute(frame)
        except BaseException as error:
            failed = error
            raise
        finally:
            end = perf_counter_ns()
            for observer in watching.observers:
                observer.run_ends(self.program, start, end, failed)


def prepared(run: Callable[[Frame], None], frame: Frame, instance: Instance) -> Prepared:
    """Runs of a frame that first start its journal and fetch resource variables from the shared state."""
    before: list[Callable[[], None]] = []
    if instance.journal is not None:
        frame.commit_with(instance.journal.commit)
        before.append(instance.journal.begin)
    if any(operand.resource is not None for operand in frame.routine.subgraph.operands):
        before.append(Variables(frame, instance.state).begin)
    return Prepared(run, tuple(before))
