"""`Execution`: one user's runs of a program, with their own memory and state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from weakref import finalize

import numpy as np

from onert.backend import Program, Stretch, TensorInfo
from onert.backend.tasks import Pool
from onert.exec.frames.frame import Frame
from onert.ir import Array, CompileError, ExecutionError, Shape
from onert.ir import shape as shapes
from onert.ir.process.imports import module

from .arena import THREAD, SharedArena, callers_arena, thread_arena
from .arguments import allows, copied, fitting, given_again, named, position_of, require_holds, reusable, whole_shape
from .context import Instance, Parts
from .exclusive import REFUSED, BusyError, Exclusive, is_refusal
from .memory_overlap import require_apart
from .meter import metered
from .runner import Runner, require_program
from .setup import Fixed, Setup
from .stop import Stop

if TYPE_CHECKING:
    from concurrent.futures import Future

    from onert.exec.observers.observer import Observer
    from onert.exec.observers.watching import Watching

    from .asynchronous import RunFuture
    from .lengths import Lengths

Inputs = Mapping[str, Any] | Sequence[Any]
Changed = Mapping[int, tuple[int, ...]]


class Execution:
    """Runs a program: set inputs, execute, get outputs.

    It owns the arenas, variables and tables of its runs, so any number of executions of one program may run at the same
    time. One execution runs one inference at a time. Arrays passed to `set_input` and `set_output` are used in place
    and kept alive.

    - `state`: a dictionary through which executions of one model (for example of its signatures, one after another)
      share resource variables and tables. Without it an execution has its own state, and resets it when input shapes
      change.
    - `arena`: the memory of intermediate tensors. None: the execution's own. "thread": one arena for all executions
      that this thread creates with "thread". A `SharedArena`: one for the executions it is passed to. A buffer: the
      caller's memory, at least `program.arena_bytes` after the first multiple of 64; the caller may use it for other
      purposes between runs.
    - `observers`: called for each piece of each run, with every executor. Without observers they cost nothing.
    """

    def __init__(
        self,
        program: Program,
        state: dict[Any, Any] | None = None,
        *,
        arena: Any = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        require_program(program)
        self._base = program
        self._state = state
        self._arena = thread_arena() if isinstance(arena, str) and arena == THREAD else arena
        self._stop = Stop()
        self._parts = Parts(Execution, self._stop)
        self._pool: Pool | None = None
        self._lengths: Lengths | None = None
        own = observers or program.recordings
        self._watching: Watching | None = module("onert.exec.run_modes").watching(program, observers) if own else None
        self._observers = [] if self._watching is None else list(self._watching.observers)
        finalize(self, _close, self._observers)
        self._runner = Runner(self._made(program, {}), self._stop)
        self._runs = Exclusive(self._runner.body)

    def __repr__(self) -> str:
        return f"<Execution of {self.program!r}>"

    @property
    def program(self) -> Program:
        """The program that runs, compiled for the current input shapes."""
        return self._runner.setup.fit.compiled()

    @property
    def _frame(self) -> Frame:
        return self._runner.setup.frame

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """The inputs, with their current shapes."""
        return self._runner.setup.fit.inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The outputs, with their shapes for the current input shapes; None stands for what only a run determines."""
        return self._runner.setup.fit.outputs

    def _made(self, program: Program, changed: Changed, outdated: str = "", stretch: Stretch | None = None) -> Setup:
        """Set up a program to run, for the other lengths of its `stretch` too."""
        state = {} if self._state is None else self._state
        instance = Instance(program, self._stop, state, self._watching, self._parts, stretch)
        shared = self._arena if isinstance(self._arena, SharedArena) else None
        if shared is not None:
            shared.admit(instance, program.arena_bytes)
        elif self._arena is not None:
            instance.settle(callers_arena(self._arena, program.arena_bytes))
        elif stretch is not None and self._lengths is not None:
            instance.settle(self._lengths.arena(program))
        frame = instance.frame(program.entry)
        run: Callable[[Frame], None] = frame.execute
        if self._watching is not None or shared is not None:
            run = module("onert.exec.run_modes").Accompanied(program, shared, self._watching, instance.meter)
        elif program.main.metered:
            run = partial(metered, run, instance.meter)
        if instance.journal is not None or any(o.resource is not None for o in program.main.subgraph.operands):
            run = module("onert.exec.run_modes").prepared(run, frame, instance)
        return Setup(Fixed(program, changed), instance, frame, run, outdated, own_arena=self._arena is None)

    # ---- inputs

    def set_input_shape(self, name: str | int, shape: Sequence[int]) -> None:
        """Change the shape of an input. The program for the new shape is compiled, or taken from a cache.

        The other inputs keep their arrays. State is reset. Raises CompileError if an operation rejects the shape.
        """
        self.set_input_shapes({name: shape})

    def set_input_shapes(self, given: Mapping[str | int, Sequence[int]]) -> None:
        """Change the shapes of several inputs together, as `set_input_shape` changes one."""
        positions = {self._input(name): shape for name, shape in given.items()}
        wanted = {at: whole_shape(self._base.inputs[at].name, shape) for at, shape in positions.items()}
        self._idle()
        lengths = self._lengths if len(wanted) == len(self._base.inputs) else None
        if lengths is None or not lengths.resized(self._runner, [wanted[at] for at in sorted(wanted)]):
            self._reshape(wanted)

    def _reshape(self, wanted: Changed) -> None:
        """Change the shapes of inputs, by position."""
        self._idle()
        setup, inputs = self._runner.setup, self._runner.setup.fit.inputs
        if all(inputs[position].shape == shape for position, shape in wanted.items()):
            return
        own = {i: shapes.static(inputs[i].shape) for i in setup.given if self._base.inputs[i].is_open}
        changed, buffers = {**setup.fit.shapes, **own, **wanted}, setup.buffers()
        try:
            made = (self._lengths and self._lengths.setup(changed)) or self._specialized(changed, wanted)
            made.take_over(setup, setup.given - wanted.keys())
            self._runner.unready = True
            self._runner.setup = made
        except BaseException:
            if self._runner.setup is setup:  # its frame may have begun to change to other lengths
                setup.restore_buffers(buffers)
            raise
        if isinstance(self._arena, SharedArena):
            self._arena.leave(setup.instance)

    def _specialized(self, changed: dict[int, tuple[int, ...]], wanted: Changed) -> Setup:
        """Set up the program for new shapes. Raises CompileError if an operation rejects them.

        Inputs get new shapes one at a time. If shapes that other inputs were given earlier conflict with the new ones,
        and the model leaves those dimensions open, these inputs must be set again.
        """
        outdated, alone = "", self._arena is None and self._watching is None
        reused = reusable(self._base, changed) if alone else None
        if reused is not None and (made := self._stretched(*reused, changed)) is not None:
            return made
        try:
            program = self._base.specialize(changed)
        except CompileError as error:
            stays = {i: s for i, s in changed.items() if i in wanted or not allows(self._base.inputs[i], s)}
            if stays.keys() == changed.keys():
                raise
            program, changed, outdated = self._base.specialize(stays), stays, str(error)
        given = tuple(info.shape for info in program.inputs)
        return self._stretched(program, given, changed, outdated) or self._made(program, changed, outdated)

    def _stretched(
        self, program: Program, given: Sequence[Shape], changed: Changed, outdated: str = ""
    ) -> Setup | None:
        """Set up a program for all lengths of its stretch, first for inputs of the given shapes; None if that fails."""
        if program.stretch is None or self._arena is not None or self._watching is not None:
            return None
        lengths = self._lengths = self._lengths or module("onert.exec.lengths").Lengths(self._base)
        return lengths.kept(program, partial(self._made, program, changed, outdated, program.stretch), given)

    def set_input(self, name: str | int, array: Array) -> None:
        """Set the array of an input. Every run reads it again, so later changes of its elements take effect.

        It is used in place, or copied before each run if it is not contiguous, or is small and not the input's first
        array. Dimensions that the model leaves open are taken from the array. Raises ExecutionError if the element type
        or the shape does not fit the input, or if the array overlaps memory given to an output.
        """
        position = self._input(name)
        self._idle()
        self._runner.unready = True
        if self._runner.setup.copies_again(position, array):
            return
        array = fitting(self.inputs[position], self._base.inputs[position], array)
        if array.shape != self._runner.setup.fit.inputs[position].shape:
            self._reshape({position: array.shape})
        self._runner.setup.set_input(position, array)

    def input_buffer(self, name: str | int) -> Array:
        """Set an input to the execution's own memory, and return it: every run reads what is stored there. It remains
        the input until another array is given or the input's shape changes. Its first elements are arbitrary."""
        position = self._input(name)
        self._idle()
        self._runner.unready = True
        return self._runner.setup.lend_input(position)

    # ---- outputs

    def set_output(self, name: str | int, buffer: Array) -> None:
        """Write an output into `buffer`. Raises ExecutionError if the buffer's type, shape or layout does not fit, or
        if it shares memory with an input, another output or the arena.

        One input of the same type may occupy exactly the memory of `buffer`: for example a key cache of which this
        output is a partial update, and which nothing reads after the update (`program.main.pairs`). Then only the
        updated parts are written, and a failed run leaves the memory unchanged.

        An output whose shape is known only at run time cannot have a buffer: read it with `get_output`.
        """
        position = self._output(name)
        info = self._runner.setup.fit.outputs[position]
        self._idle()
        require_holds(info, buffer)
        setup = self._runner.setup
        require_apart(f"output {info.name!r}", buffer, setup.beside_output(position, buffer))
        if self._arena is not None and not isinstance(self._arena, SharedArena):
            arena = callers_arena(self._arena, self.program.arena_bytes)
            require_apart(f"output {info.name!r}", buffer, [("the arena", arena)])
        setup.own_outputs.add(position)
        setup.settle(setup.output(position), buffer)

    def get_output(self, name: str | int) -> Array:
        """Return an output of the last run: the buffer given to `set_output`, otherwise a new array.

        Raises ExecutionError before the first run, or if there is not enough memory for the array.
        """
        return self._result(self._output(name))

    def output_buffer(self, name: str | int) -> Array | None:
        """Return the memory that runs write an output into: the buffer given to `set_output`, otherwise the execution's
        own, which later runs overwrite. None if only a run determines the shape, or if the output is a constant."""
        tensor = self._runner.setup.keep_output(self._output(name))
        return tensor.buffer if isinstance(tensor.buffer, np.ndarray) and not tensor.dynamic else None

    def _result(self, position: int) -> Array:
        setup = self._runner.setup
        tensor = setup.frame.tensors[setup.output(position)]
        if tensor.buffer is None or not setup.ran:
            name = setup.fit.outputs[position].name
            raise ExecutionError(f"output {name!r} has no elements before the first run")
        return tensor.array if position in setup.own_outputs else copied(tensor.array, self._base.outputs[position])

    # ---- runs

    def execute(self, timeout: float | None = None) -> None:
        """Run once. Raises ExecutionError if an input is missing, an element breaks a rule, or another run is active.

        `timeout` is in seconds; a step that would begin later raises RunTimeoutError instead.
        """
        # Every statement here adds to the run time of the smallest model.
        send = self._runs.send
        try:
            send(timeout)
        except REFUSED as error:
            if not is_refusal(error):
                raise
        else:
            return
        self._call(timeout)

    def _call(self, given: object) -> None:
        """Pass a run or another call to the runner. Raises ExecutionError if it is running."""
        try:
            self._runs.call(given)
        except BusyError:
            pass
        else:
            return
        self._refuse()

    def execute_async(
        self, callback: Callable[[Future[None]], object] | None = None, *, timeout: float | None = None
    ) -> Future[None]:
        """Run once in this execution's own thread; the future raises what `execute` would raise.

        `callback` is called once with the future, whatever the outcome, when the execution is free again. Until then
        inputs and outputs cannot be changed. `timeout` counts from this call. Cancelling the future ends an active run
        before its next step.
        """
        if isinstance(self._arena, SharedArena):
            raise ExecutionError("an execution in a shared arena runs on the thread that made the arena")
        asynchronous = module("onert.exec.asynchronous")  # imported on first use
        if self._pool is None:
            self._pool = Pool(1, "onert-execution")
        future: RunFuture = asynchronous.RunFuture(self._stop, self._pool)
        if callback is not None:
            future.add_done_callback(callback)
        self._call(partial(self._runner.begin, future, self._pool, future.task(self._in_background), timeout))
        return future

    def _in_background(self) -> None:
        self._runs.call_next(self._runner.in_background)

    def cancel(self) -> bool:
        """End the active run before its next step, from any thread. Returns False if there is none."""
        if not (self._runs.running or self._runner.awaits):
            return False
        self._stop.cancel()
        self._parts.cancel()
        return True

    def run(self, inputs: Inputs = (), *, timeout: float | None = None) -> dict[str, Array]:
        """Set inputs by name or in order, run once (`execute`), and return all outputs by name as new arrays.

        Inputs of a megabyte and more, and of 128 KiB if a run reads each element only once, are used in place, like
        those of `set_input`.
        """
        self._idle()
        setup = self._runner.setup
        arrays, reshaped = given_again(setup.run_inputs, inputs, len(self._base.inputs))
        if arrays is not None and not reshaped and not setup.copied:
            setup.give_again(arrays)
        elif arrays is None or self._lengths is None or not self._lengths.given(self._runner, arrays, reshaped):
            self._give(inputs)
        self.execute(timeout)
        return self._runner.results(self._base.outputs)

    def _give(self, inputs: Inputs) -> None:
        infos = self._runner.setup.fit.inputs
        found = {at: fitting(infos[at], self._base.inputs[at], array) for at, array in named(inputs, infos)}
        if any(array.shape != infos[position].shape for position, array in found.items()):
            self._reshape({position: array.shape for position, array in found.items()})
        self._runner.setup.give(found)

    def reset_variables(self) -> None:
        """Reset all state: variables, tables, random generators."""
        self._idle()
        self._runner.setup.instance.reset()

    def close(self) -> None:
        """Wait for an active run, reject further ones, and free device memory.

        May be called from any thread and repeatedly; an interrupted call is completed by the next one.
        Raises ExecutionError inside a run of this execution, which would wait for itself.
        """
        if self._runs.is_own:
            raise ExecutionError("this execution is running and cannot be closed by its own run; close it afterwards")
        self._runner.closed = True
        self._runner.unready = True
        self._runs.wait()
        pending = self._runner.pending
        if pending is not None:
            pending.settle()
            self._runs.wait()
        self._pool = None
        self._parts.close()
        instance = self._runner.setup.instance
        instance.close()
        if isinstance(self._arena, SharedArena):
            self._arena.leave(instance)
        _close(self._observers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- names and states

    def _input(self, name: str | int) -> int:
        return position_of("input", name, self._base.inputs)

    def _output(self, name: str | int) -> int:
        return position_of("output", name, self._base.outputs)

    def _idle(self) -> None:
        runner = self._runner
        runner.require_open()
        if self._runs.running or (runner.pending is not None and runner.pending.goes_on):
            raise ExecutionError("this execution is running; change its inputs and outputs between runs")

    def _refuse(self) -> None:
        self._runner.require_open()
        raise ExecutionError("this execution is running; use one execution for each thread")


def _close(observers: list[Observer]) -> None:
    """Close each observer once."""
    while observers:
        observers.pop(0).close()
