"""`Execution`: one user's run of a program, with its own memory and state."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import finalize

import numpy as np

from onert.backend import Program
from onert.ir import Array, CompileError, ExecutionError
from onert.ir import shape as shapes

from .accompanied import Accompanied, watching
from .apart import require_apart
from .arena import THREAD, SharedArena, callers_arena, thread_arena
from .context import Instance
from .frame import Frame, empty
from .given import copied, elements, is_in_place, position_of, require_holds
from .stop import Stop

if TYPE_CHECKING:
    from concurrent.futures import Future

    from .asynchronous import RunFuture, Worker
    from .observers.observer import Observer

Inputs = Mapping[str, Any] | Sequence[Any]


class Execution:
    """Runs a program: give inputs, execute, get outputs.

    It owns the arenas, the variables and the tables of the run, so that any number of executions of one program may run
    at once; one execution runs one inference at a time. Arrays given with `set_input` and `set_output` are used in
    place and kept alive.

    - `state`: lets executions of programs of one model share resource variables and tables (its signatures', one after
      the other); without it an execution has its own, and forgets it with a change of input shapes.
    - `arena`: where tensors between the inputs and the outputs lie. None: in memory of the execution's own. "thread":
      in one arena with all others that this thread makes so. A `SharedArena`: with those that it is given to. A buffer:
      in the caller's memory, of at least `program.arena_bytes` from a multiple of 64 on, and the caller's between runs.
    - `observers`: told of every piece of every run, whatever the executor; none cost nothing.
    """

    def __init__(
        self,
        program: Program,
        state: dict[Any, Any] | None = None,
        *,
        arena: Any = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._base = program
        self._state = state
        self._arena = thread_arena() if isinstance(arena, str) and arena == THREAD else arena
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._lock = Lock()
        self._stop = Stop()
        self._worker: Worker | None = None
        self._closed = False
        self._own_inputs: dict[int, Array] = {}
        self._copied: dict[int, tuple[Array, Array]] = {}
        self._given: set[int] = set()
        self._own_outputs: set[int] = set()
        self._unready = True
        self._outdated = ""
        self._watching = watching(program, observers)
        self._finish = finalize(self, _close, () if self._watching is None else self._watching.observers)
        self._enter(program)

    def _enter(self, program: Program, before: Instance | None = None) -> None:
        """Make this the program that runs, in place of the one that ran `before`."""
        instance = Instance(program, self._stop, {} if self._state is None else self._state, self._watching)
        if isinstance(self._arena, SharedArena):
            self._arena.admit(instance, program.arena_bytes)
        elif self._arena is not None:
            instance.settle(callers_arena(self._arena, program.arena_bytes))
        frame = instance.frame(program.entry)
        if isinstance(self._arena, SharedArena) and before is not None:
            self._arena.leave(before)
        self.program = program
        self._instance = instance
        self._frame: Frame = frame
        shared = self._arena if isinstance(self._arena, SharedArena) else None
        plain = self._watching is None and shared is None and not program.main.metered
        self._run: Callable[[Frame], None] = (
            frame.execute if plain else Accompanied(program, shared, self._watching, instance.meter)
        )

    # ---- inputs

    def set_input_shape(self, name: str | int, shape: Sequence[int]) -> None:
        """Give an input another shape; the program for it is compiled, or taken from where it was kept.

        The other inputs stay as they were given. State starts anew. CompileError where an operation cannot bear the
        shape.
        """
        position = self._input(name)
        self._reshape({position: tuple(int(d) for d in shape)})

    def _reshape(self, wanted: Mapping[int, tuple[int, ...]]) -> None:
        """Give inputs, by position, other shapes."""
        self._idle()
        inputs = self.program.inputs
        if all(inputs[position].shape == shape for position, shape in wanted.items()):
            return
        own = {i: inputs[i].shape for i in self._given if not shapes.is_static(self._base.inputs[i].open_shape)}
        changed = {**self._shapes, **{i: shapes.static(shape) for i, shape in own.items()}, **wanted}
        program, changed = self._specialized(changed, wanted)
        self._shapes = changed
        kept = {
            i: self._frame.tensors[self._operand_in(i)].buffer
            for i in self._given
            if i not in wanted and program.inputs[i].shape == self.program.inputs[i].shape
        }
        copied = {i: self._copied[i] for i in kept if i in self._copied}
        self._own_inputs.clear()
        self._own_outputs.clear()
        self._copied = copied
        self._unready = True
        self._given = set(kept)
        self._enter(program, self._instance)
        for i, buffer in kept.items():
            self._frame.place(self._operand_in(i), buffer)

    def _specialized(
        self, changed: dict[int, tuple[int, ...]], wanted: Mapping[int, tuple[int, ...]]
    ) -> tuple[Program, dict[int, tuple[int, ...]]]:
        """The program for new shapes, and these; CompileError where an operation refuses them.

        Inputs get new shapes one at a time. Where shapes that others were given before do not go with the new ones,
        and the model leaves them open, these others must be given again.
        """
        self._outdated = ""
        try:
            return self._base.specialize(changed), changed
        except CompileError as error:
            stays = {i: s for i, s in changed.items() if i in wanted or not self._allows(i, s)}
            if stays.keys() == changed.keys():
                raise
            program = self._base.specialize(stays)
            self._outdated = str(error)
            return program, stays

    def set_input(self, name: str | int, array: Array) -> None:
        """Give an input its elements. The array is used in place, and read again at every run: change its elements
        between runs and the next run sees them. One that is not contiguous is copied at each run.

        ExecutionError where the element type or the shape is not the input's, or where it lies in memory given to an
        output. An input of which the model leaves dimensions open takes the array's.
        """
        position = self._input(name)
        array = self._fitting(position, array)
        if array.shape != self.program.inputs[position].shape:
            self._reshape({position: array.shape})
        self._idle()
        if self._own_outputs:
            require_apart(f"input {self.program.inputs[position].name!r}", array, self._memory())
        self._unready = True
        self._copied.pop(position, None)
        operand = self._operand_in(position)
        if is_in_place(array):
            self._frame.place(operand, array)
        else:
            mine = self._own_input(position)
            self._copied[position] = (array, mine)
            self._frame.place(operand, mine)
        self._given.add(position)

    def _fitting(self, position: int, given: Any) -> Array:
        """The input as an array; ExecutionError unless its shape is the input's, or one that the model allows."""
        info = self.program.inputs[position]
        array = elements(info, given)
        if array.shape != info.shape and not self._allows(position, array.shape):
            raise ExecutionError(
                f"input {info.name!r} is given shape {shapes.text(array.shape)}, expected "
                f"{shapes.text(info.shape)}; set_input_shape changes it"
            )
        return array

    def _allows(self, position: int, shape: tuple[int, ...]) -> bool:
        """Whether an input may have another shape without being given it first: the model leaves dimensions open."""
        open_shape = self._base.inputs[position].open_shape
        return not shapes.is_static(open_shape) and shapes.compatible(open_shape, shape)

    def _own_input(self, position: int) -> Array:
        """A buffer for an input that must be copied."""
        if position not in self._own_inputs:
            self._own_inputs[position] = empty(self.program.inputs[position].type)
        return self._own_inputs[position]

    # ---- outputs

    def set_output(self, name: str | int, buffer: Array) -> None:
        """Let an output be written into `buffer`; ExecutionError where it cannot hold it as it lies, or where it shares
        memory with an input, with another output or with the arena.

        An output whose shape is known only at run time cannot be given a buffer: read it with `get_output`.
        """
        position = self._output(name)
        info = self.program.outputs[position]
        self._idle()
        require_holds(info, buffer)
        require_apart(f"output {info.name!r}", buffer, self._memory(position))
        self._frame.place(self._operand_out(position), buffer)
        self._own_outputs.add(position)

    def _memory(self, output: int | None = None) -> Iterator[tuple[str, Any]]:
        """What the caller gave to outputs; where it is for another `output`, to inputs and as the arena too."""
        made = self._frame.tensors
        own = None if output is None else self._operand_out(output)
        for i in self._own_outputs:
            if self._operand_out(i) != own:
                yield f"output {self.program.outputs[i].name!r}", made[self._operand_out(i)].buffer
        if output is not None:
            for i in self._given:
                given = self._copied[i][0] if i in self._copied else made[self._operand_in(i)].buffer
                yield f"input {self.program.inputs[i].name!r}", given
            if self._arena is not None and not isinstance(self._arena, SharedArena):
                yield "the arena", callers_arena(self._arena, self.program.arena_bytes)

    def get_output(self, name: str | int) -> Array:
        """An output of the last run: the buffer given with `set_output`, else an array of its own.

        ExecutionError before the first run, and where there is no memory for the array.
        """
        position = self._output(name)
        tensor = self._frame.tensors[self._operand_out(position)]
        if tensor.buffer is None:
            raise ExecutionError(f"output {self.program.outputs[position].name!r} has no elements before the first run")
        array = tensor.array
        return array if position in self._own_outputs else copied(array, self.program.outputs[position].name)

    # ---- runs

    def execute(self, timeout: float | None = None) -> None:
        """Run once. ExecutionError where an input is missing, an element breaks a rule, or a run is under way.

        With `timeout`, RunTimeoutError at the first step that would begin later than so many seconds from now.
        """
        # Every statement here is paid for by each run of the smallest model.
        lock = self._lock
        if not lock.acquire(False):
            self._refuse()
        try:
            if timeout is not None or self._stop.armed:
                self._stop.start(timeout)
            if self._unready:
                self._prepare()
            self._run(self._frame)
        finally:
            lock.release()

    def _once(self) -> None:
        if self._unready:
            self._prepare()
        self._run(self._frame)

    def _prepare(self) -> None:
        """Copy inputs that cannot be used in place; ExecutionError where one is missing."""
        if len(self._given) != len(self.program.inputs):
            self._refuse_missing()
        for source, target in self._copied.values():
            np.copyto(target, source)
        self._unready = bool(self._copied)

    def execute_async(
        self, callback: Callable[[Future[None]], object] | None = None, *, timeout: float | None = None
    ) -> Future[None]:
        """Run once in a thread of this execution's own; the future raises what `execute` would.

        `callback` is called with the future, once, whatever comes of the run; the execution is free again by then.
        Until then its inputs and outputs stay as they are. `timeout` counts from now on. `cancel` of the future ends a
        run that is under way before its next step.
        """
        if isinstance(self._arena, SharedArena):
            raise ExecutionError(
                "an execution in a shared arena runs on the thread that made the arena, not in another"
            )
        if not self._lock.acquire(blocking=False):
            self._refuse()
        try:
            asynchronous = importlib.import_module("onert.exec.asynchronous")  # read by those who call this
            if self._worker is None or not self._worker.here:
                self._worker = asynchronous.Worker()
            self._stop.start(timeout)
            future: RunFuture = asynchronous.RunFuture(self._stop, self._lock.release)
            if callback is not None:
                future.add_done_callback(callback)
            self._worker.submit(future.fulfil, self._once)
        except BaseException:
            self._lock.release()
            raise
        return future

    def cancel(self) -> bool:
        """End the run under way before its next step, from any thread; False where there is none."""
        if not self._lock.locked() or self._closed:
            return False
        self._stop.cancel()
        return True

    def run(self, inputs: Inputs = ()) -> dict[str, Array]:
        """Give inputs by name or in order, run once, and get every output by name; the arrays are the caller's own."""
        self._require_open()
        found = {position: self._fitting(position, given) for position, given in self._named(inputs)}
        infos = self.program.inputs
        if any(array.shape != infos[position].shape for position, array in found.items()):
            self._reshape({position: array.shape for position, array in found.items()})
        for position, array in found.items():
            if array.dtype == object:
                self._frame.place(self._operand_in(position), array)
            else:
                # Copied, so that kernels stay bound to one place although every call brings another array.
                mine = self._own_input(position)
                np.copyto(mine, array)
                self._frame.place(self._operand_in(position), mine)
            self._copied.pop(position, None)
            self._given.add(position)
        self.execute()
        return {info.name: self.get_output(i) for i, info in enumerate(self.program.outputs)}

    def _named(self, inputs: Inputs) -> list[tuple[int, Any]]:
        if isinstance(inputs, Mapping):
            return [(self._input(name), array) for name, array in inputs.items()]
        if len(inputs) > len(self.program.inputs):
            raise ExecutionError(f"{len(inputs)} inputs are given, expected {len(self.program.inputs)}")
        return list(enumerate(inputs))

    def reset_variables(self) -> None:
        """Let all state start anew: variables, tables, random generators."""
        self._idle()
        self._instance.reset()

    def close(self) -> None:
        """Wait for a run under way and refuse others. What lies elsewhere than in host memory is given back."""
        if self._closed:
            return
        self._lock.acquire()  # after the run under way, and kept: no other begins
        if self._worker is not None:
            self._worker.shutdown(wait=False)  # it may be the worker's own thread that closes, in a callback
            self._worker = None
        self._closed = True
        self._instance.close()
        if isinstance(self._arena, SharedArena):
            self._arena.leave(self._instance)
            self._run = self._frame.execute
            self._arena = None
        self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- names and states

    def _operand_in(self, position: int) -> int:
        return self.program.main.subgraph.inputs[position]

    def _operand_out(self, position: int) -> int:
        return self.program.main.subgraph.outputs[position]

    def _input(self, name: str | int) -> int:
        return position_of("input", name, self.program.inputs)

    def _output(self, name: str | int) -> int:
        return position_of("output", name, self.program.outputs)

    def _refuse_missing(self) -> None:
        missing = [repr(info.name) for i, info in enumerate(self.program.inputs) if i not in self._given]
        why = f"; shapes given before do not go with newer ones: {self._outdated}" if self._outdated else ""
        raise ExecutionError(f"no elements are given for input {', '.join(missing)}{why}")

    def _require_open(self) -> None:
        if self._closed:
            raise ExecutionError("this execution is closed")

    def _idle(self) -> None:
        self._require_open()
        if self._lock.locked():
            raise ExecutionError("this execution is running; change its inputs and outputs between runs")

    def _refuse(self) -> None:
        self._require_open()
        raise ExecutionError("this execution is running; use one execution for each thread")


def _close(observers: Sequence[Observer]) -> None:
    for observer in observers:
        observer.close()
