"""`Execution`: one user's run of a program, with its own memory and state."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import finalize

import numpy as np

from onert.backend import Program, TensorInfo
from onert.ir import Array, ExecutionError
from onert.ir import shape as shapes

from .accompanied import Accompanied, watching
from .apart import require_apart
from .arena import THREAD, SharedArena, callers_arena, thread_arena
from .context import Instance
from .frame import Frame, empty
from .given import elements
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
      in one arena with all other executions that this thread makes with "thread". A `SharedArena`: in one that the
      executions it is given to share. A buffer: in the caller's memory, of at least `program.arena_bytes` from a
      multiple of 64 on; what else uses it between runs is the caller's affair.
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
        wanted = tuple(int(d) for d in shape)
        self._idle()
        if self.program.inputs[position].shape == wanted:
            return
        changed = {**self._shapes, position: wanted}
        program = self._base.specialize(changed)
        self._shapes = changed
        kept = {
            i: self._frame.tensors[self._operand_in(i)].buffer
            for i in self._given
            if i != position and program.inputs[i].shape == self.program.inputs[i].shape
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

    def set_input(self, name: str | int, array: Array) -> None:
        """Give an input its elements. The array is used in place, and read again at every run: change its elements
        between runs and the next run sees them. One that is not contiguous is copied at each run.

        ExecutionError where the element type or the shape is not the input's, or where it lies in memory given to an
        output. An input whose shape has unknown dimensions takes the array's.
        """
        position = self._input(name)
        array = self._fitting(position, array)
        self._idle()
        if self._own_outputs:
            require_apart(f"input {self.program.inputs[position].name!r}", array, self._memory())
        self._unready = True
        self._copied.pop(position, None)
        operand = self._operand_in(position)
        if self._in_place(array):
            self._frame.place(operand, array)
        else:
            mine = self._own_input(position)
            self._copied[position] = (array, mine)
            self._frame.place(operand, mine)
        self._given.add(position)

    def _fitting(self, position: int, given: Any) -> Array:
        """The input as an array; the program is specialised where the input's shape is open and this one is new."""
        info = self.program.inputs[position]
        array = elements(info, given)
        if array.shape != info.shape:
            open_shape = self._base.inputs[position].shape
            if shapes.is_static(open_shape) or not shapes.compatible(open_shape, array.shape):
                raise ExecutionError(
                    f"input {info.name!r} is given shape {shapes.text(array.shape)}, expected "
                    f"{shapes.text(info.shape)}; set_input_shape changes it"
                )
            self.set_input_shape(position, array.shape)
        return array

    @staticmethod
    def _in_place(array: Array) -> bool:
        """Whether kernels can read and write it where it lies."""
        return bool(array.flags.c_contiguous and array.flags.aligned)

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
        if not shapes.is_static(info.shape):
            raise ExecutionError(
                f"output {info.name!r} has shape {shapes.text(info.shape)}, known only at run time; get_output reads it"
            )
        if buffer.dtype != info.dtype.numpy or buffer.shape != info.shape:
            raise ExecutionError(
                f"output {info.name!r} is given a buffer of {buffer.dtype}{shapes.text(buffer.shape)}, expected "
                f"{info.dtype.numpy}{shapes.text(info.shape)}"
            )
        if not (self._in_place(buffer) and buffer.flags.writeable):
            raise ExecutionError(f"output {info.name!r} is given a buffer that is not contiguous or not writeable")
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
        if position in self._own_outputs:
            return array
        try:
            return array.copy()
        except MemoryError as error:
            name = self.program.outputs[position].name
            raise ExecutionError(f"there is no memory for a copy of output {name!r}, {array.nbytes} bytes") from error

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
        for position, given in self._named(inputs):
            array = self._fitting(position, given)
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
        return _position("input", name, self.program.inputs)

    def _output(self, name: str | int) -> int:
        return _position("output", name, self.program.outputs)

    def _refuse_missing(self) -> None:
        missing = [repr(info.name) for i, info in enumerate(self.program.inputs) if i not in self._given]
        raise ExecutionError(f"no elements are given for input {', '.join(missing)}")

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


def _position(side: str, name: str | int, infos: Sequence[TensorInfo]) -> int:
    """The position of an input or output given by name or position; ExecutionError where there is none."""
    if isinstance(name, str):
        for position, info in enumerate(infos):
            if info.name == name:
                return position
        known = ", ".join(repr(info.name) for info in infos)
        raise ExecutionError(f"there is no {side} {name!r}, expected one of {known}")
    if not -len(infos) <= name < len(infos):
        raise ExecutionError(f"there is no {side} {name}, expected 0 to {len(infos) - 1}")
    return name % len(infos)
