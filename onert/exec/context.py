"""What an execution owns besides its entry's memory: frames of subgraphs, variables, state, executions of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import setitem
from typing import Any, Protocol
from weakref import WeakSet, ref

from onert.backend import Program, Stretch
from onert.backend.program import WORK_PER_ARGUMENT_BYTE, WORK_PER_CALL
from onert.exec.frames.frame import Frame, Watch
from onert.ir import Array, CompileError, ExecutionError
from onert.ir.process.budget import MAX_CALL_DEPTH
from onert.ir.process.imports import module

from .atomic import at_once
from .executors import executor
from .journal import Journal, is_kept_by
from .meter import Meter
from .stop import Stop


class Part(Protocol):
    """An execution of a part."""

    def run(self, inputs: Sequence[Any] = (), *, timeout: float | None = None) -> dict[str, Array]: ...
    def cancel(self) -> bool: ...
    def close(self) -> None: ...


class Parts:
    """The executions of the parts of one execution's programs, made by `enter` when a run first calls a part.

    They stay when the execution's own input shapes change: each part takes inputs of any sizes.
    """

    def __init__(self, enter: Callable[[Program], Part], stop: Stop) -> None:
        self._enter = enter
        self._stop = stop
        self._made: dict[Any, Part] = {}

    def run(self, program: Program, part: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run a part of a program. Raises ExecutionError if it cannot be compiled for inputs of these shapes."""
        if program.rest is None:
            raise ExecutionError("what follows a computed size cannot be compiled in this process")
        key = program.rest, part, tuple(array.ndim for array in inputs)
        try:
            found = self._made.get(key)
            if found is None:
                shapes = tuple(array.shape for array in inputs)
                found = self._made.setdefault(key, self._enter(program.rest(part, shapes)))
            return tuple(found.run(inputs, timeout=self._stop.left()).values())
        except CompileError as error:
            raise ExecutionError(str(error)) from error

    def cancel(self) -> None:
        """End the parts that run now before their next step."""
        for part in tuple(self._made.values()):
            part.cancel()

    def close(self) -> None:
        """Close all executions."""
        for part in tuple(self._made.values()):
            part.close()


class Instance:
    """The frames, variables and state of one execution; concurrent steps may access them.

    With a `stretch`, the entry, which calls no other subgraph, has a frame for all of its lengths.
    """

    def __init__(
        self,
        program: Program,
        stop: Stop,
        state: dict[Any, Any],
        watch: Watch | None,
        parts: Parts,
        stretch: Stretch | None = None,
    ) -> None:
        self.program = program
        self.stop = stop
        self.parts = parts
        self._stretch = stretch
        self._watch = watch
        # Steps that can only follow one another are run by the executor with the least overhead per step.
        in_turn = program.executor == "Parallel" and all(routine.is_chain for routine in program.routines)
        self._executor = executor("Linear" if in_turn else program.executor, program.num_threads, stop)
        self._in_order = program.executor == "Linear"
        self.state = state
        self.meter = Meter(program.max_memory, program.max_work)
        self._variables: dict[int, dict[int, Array]] = {}
        self.journal = Journal(state) if is_kept_by(program) else None
        self._undo: Callable[[], None] | None = None
        # Callers hold the frames, starting at the entry's: a cycle would keep arenas until it is collected.
        self._frames: WeakSet[Frame] = WeakSet()
        self._unplaced = set(range(len(program.routines)))
        self._placed: list[tuple[int, ref[Frame]]] = []
        self._arena: Array | None = None

    def frame(self, subgraph: int, depth: int = 0) -> Frame:
        """A new frame for a subgraph. All frames of a subgraph share its variables.

        The first frame of a subgraph is in the execution's arena. Another one (of a subgraph that is entered while it
        runs) has its own memory.
        """
        routine, context = self.program.routines[subgraph], Context(self, depth + 1)
        if self._stretch is not None:
            stretched = module("onert.exec.frames.stretched")
            frame: Frame = stretched.StretchedFrame(routine, context, self._executor.run, self._stretch)
        elif routine.is_on_host:
            frame = Frame(routine, context, self._executor.run, self._watch)
        else:
            elsewhere = module("onert.exec.frames.elsewhere")  # imported only for other memory spaces
            frame = elsewhere.ElsewhereFrame(
                routine, context, self._executor.run, self._watch, self.program.residents, self._in_order
            )
        frame.share_variables(self._variables.setdefault(subgraph, {}))
        if depth == 0:
            self._undo = frame.undo
        elif self.journal is not None:
            frame.note = self.journal.note
        self._frames.add(frame)
        if self._arena is None or not self._takes(subgraph):
            frame.settle_alone()
        else:
            self._placed.append((subgraph, ref(frame)))
            frame.settle(self._arena, self.program.arena_offsets[subgraph])
        return frame

    def _takes(self, subgraph: int) -> bool:
        """Whether a frame may use the subgraph's place in the arena; true for only one of several threads."""
        try:
            self._unplaced.remove(subgraph)
        except KeyError:
            return False
        return True

    def settle(self, arena: Array) -> None:
        """Move the frames to `arena`; called between runs."""
        self._arena = arena
        for subgraph, place in self._placed:
            frame = place()
            if frame is not None:
                frame.settle(arena, self.program.arena_offsets[subgraph])

    def vacate(self) -> None:
        """Remove the frames from the arena; none is run again."""
        self._arena = None
        for _, place in self._placed:
            frame = place()
            if frame is not None:
                frame.vacate()

    def recover(self) -> None:
        """After an interrupted run: wait for steps that are still running, and undo changes of state."""
        self._executor.settle()
        for frame in tuple(self._frames):
            frame.recover()
        if self._undo is not None:
            self._undo()
        if self.journal is not None:
            self.journal.restore()

    def reset(self) -> None:
        """Reset all state: variables are cleared, tables and resource variables are removed."""
        at_once(
            [
                *(
                    partial(setitem, array, ..., self.program.routines[subgraph].subgraph.operands[index].type.cleared)
                    for subgraph, variables in self._variables.items()
                    for index, array in variables.items()
                ),
                self.state.clear,
            ]
        )
        for frame in tuple(self._frames):
            frame.clear_elsewhere()

    def close(self) -> None:
        """Free buffers in memory spaces other than the host's."""
        for frame in tuple(self._frames):
            frame.close()


class Context:
    """The context of kernels that run subgraphs or have state, at one call depth.

    A subgraph's frame is reused for the next call; a subgraph that is entered again while it runs gets another frame.
    """

    def __init__(self, instance: Instance, depth: int) -> None:
        self._instance = instance
        self._depth = depth
        self._idle: dict[int, list[Frame]] = {}

    @property
    def state(self) -> dict[Any, Any]:
        return self._instance.state

    @property
    def max_iterations(self) -> int | None:
        return self._instance.program.max_iterations

    @property
    def stop(self) -> Stop:
        return self._instance.stop

    def spend(self, work: int) -> None:
        """Count work of this run. Raises RuleError if the limit is exceeded."""
        self._instance.meter.spend(work)

    def hold(self, nbytes: int, beside: int = 0) -> None:
        """Count bytes that a tensor of unknown size will occupy. Raises RuleError if the limit is exceeded."""
        self._instance.meter.hold(nbytes, beside)

    def call(self, subgraph: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run a subgraph, or a part of the entry, on `inputs`; the caller owns its results.

        Raises ExecutionError if nested too deeply.
        """
        if subgraph >= len(self._instance.program.routines):
            return self._instance.parts.run(self._instance.program, subgraph, inputs)
        if self._depth > MAX_CALL_DEPTH:
            raise ExecutionError(f"subgraphs call one another more than {MAX_CALL_DEPTH} deep")
        handed = sum(array.nbytes for array in inputs)
        work = WORK_PER_CALL + WORK_PER_ARGUMENT_BYTE * handed + self._instance.program.routines[subgraph].work
        self._instance.meter.spend(work)
        idle = self._idle.setdefault(subgraph, [])
        try:
            frame = idle.pop()  # without a check: another thread may take the last one in between
        except IndexError:
            frame = self._instance.frame(subgraph, self._depth)
        try:
            frame.give(inputs)
            frame.execute(frame)
            return frame.take()
        finally:
            idle.append(frame)
