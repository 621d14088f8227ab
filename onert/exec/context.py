"""What one execution owns beside its entry's memory: subgraphs' frames, variables, state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import setitem
from typing import Any
from weakref import WeakSet, ref

from onert.backend import Program, Stretch
from onert.backend.program import WORK_OF_A_CALL, WORK_OF_A_HANDED_BYTE
from onert.exec.frames.frame import Frame, Watch
from onert.ir import Array, ExecutionError
from onert.ir.process.budget import MAX_CALL_DEPTH
from onert.ir.process.imports import module

from .atomic import at_once
from .executors import executor
from .journal import Journal, is_kept_by
from .meter import Meter
from .stop import Stop


class Instance:
    """The frames, the variables and the state of one execution; steps that run at a time may ask for them.

    With a `stretch` the entry's frame, which calls no other subgraph, is for all of its lengths.
    """

    def __init__(
        self, program: Program, stop: Stop, state: dict[Any, Any], watch: Watch | None, stretch: Stretch | None = None
    ) -> None:
        self.program = program
        self._stretch = stretch
        self._watch = watch
        # Steps that can only follow one another are left to the executor that takes least for each.
        in_turn = program.executor == "Parallel" and all(routine.is_chain for routine in program.routines)
        self._executor = executor("Linear" if in_turn else program.executor, program.num_threads, stop)
        self._in_order = program.executor == "Linear"
        self.state = state
        self.meter = Meter(program.max_memory, program.max_work)
        self._variables: dict[int, dict[int, Array]] = {}
        self.journal = Journal(state) if is_kept_by(program) else None
        self._undo: Callable[[], None] | None = None
        # Frames are held by their callers, from the entry's down: a circle would keep arenas until it is collected.
        self._frames: WeakSet[Frame] = WeakSet()
        self._unplaced = set(range(len(program.routines)))
        self._placed: list[tuple[int, ref[Frame]]] = []
        self._arena: Array | None = None

    def frame(self, subgraph: int, depth: int = 0) -> Frame:
        """A new frame for a subgraph, which shares the subgraph's variables with every other one.

        The first frame of a subgraph lies in the execution's arena, another (of a subgraph that is entered while it
        runs) has memory of its own.
        """
        routine, context = self.program.routines[subgraph], Context(self, depth + 1)
        if self._stretch is not None:
            stretched = module("onert.exec.frames.stretched")
            frame: Frame = stretched.StretchedFrame(routine, context, self._executor.run, self._stretch)
        elif routine.is_on_host:
            frame = Frame(routine, context, self._executor.run, self._watch)
        else:
            elsewhere = module("onert.exec.frames.elsewhere")  # read by those who have such a memory space
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
        """Whether a frame may take the subgraph's place in the arena: one of several threads is told so."""
        try:
            self._unplaced.remove(subgraph)
        except KeyError:
            return False
        return True

    def settle(self, arena: Array) -> None:
        """Let the frames lie in `arena` from now on; called between runs."""
        self._arena = arena
        for subgraph, place in self._placed:
            frame = place()
            if frame is not None:
                frame.settle(arena, self.program.arena_offsets[subgraph])

    def vacate(self) -> None:
        """Let the frames lie in no arena any more: none is run again."""
        self._arena = None
        for _, place in self._placed:
            frame = place()
            if frame is not None:
                frame.vacate()

    def recover(self) -> None:
        """After a run that was broken off: wait for steps that are still under way, and undo changes of state."""
        self._executor.settle()
        for frame in tuple(self._frames):
            frame.recover()
        if self._undo is not None:
            self._undo()
        if self.journal is not None:
            self.journal.restore()

    def reset(self) -> None:
        """Forget all state: variables are cleared, tables and resource variables are gone."""
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
        """Give back what lies in memory spaces other than the host's."""
        for frame in tuple(self._frames):
            frame.close()


class Context:
    """What kernels that run subgraphs or keep state are given, at one depth of calls.

    A subgraph's frame is kept for the next call; a subgraph that is entered again while it runs gets another frame.
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

    def spend(self, work: int) -> None:
        """Count work of this run; RuleError if it is too much."""
        self._instance.meter.spend(work)

    def hold(self, nbytes: int, beside: int = 0) -> None:
        """Count bytes that a tensor of unknown size comes to hold; RuleError for too many."""
        self._instance.meter.hold(nbytes, beside)

    def call(self, subgraph: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run a subgraph on `inputs`; its results are the caller's own. ExecutionError when nested too deep."""
        if self._depth > MAX_CALL_DEPTH:
            raise ExecutionError(f"subgraphs call one another more than {MAX_CALL_DEPTH} deep")
        handed = sum(array.nbytes for array in inputs)
        work = WORK_OF_A_CALL + WORK_OF_A_HANDED_BYTE * handed + self._instance.program.routines[subgraph].work
        self._instance.meter.spend(work)
        idle = self._idle.setdefault(subgraph, [])
        try:
            frame = idle.pop()  # another thread may have taken the last one since anyone looked
        except IndexError:
            frame = self._instance.frame(subgraph, self._depth)
        try:
            frame.give(inputs)
            frame.execute(frame)
            return frame.take()
        finally:
            idle.append(frame)
