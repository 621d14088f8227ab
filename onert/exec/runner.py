"""The runs of an execution: their setup, and when a run is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from attrs import Factory, define, field, frozen

from onert.backend import Program, Tensor, TensorInfo
from onert.backend.tasks import Pool, Task
from onert.exec.frames.frame import Frame
from onert.ir import Array, ExecutionError
from onert.ir.value import ByIdentity

from .arguments import Input, copied, is_in_place
from .context import Instance
from .exclusive import Body
from .memory_overlap import is_same, require_apart
from .stop import Stop

_COPIED = 1 << 16
"""The size in bytes up to which an input is copied before each run instead of bound to: a few microseconds."""

if TYPE_CHECKING:
    from .asynchronous import RunFuture


class Fit(Protocol):
    """A program for the current input shapes. `compiled` returns it, and may compile it only then. `shapes` are those
    of the inputs, by position, that the user changed. `settle` ends a change of the frame to these shapes that was
    interrupted."""

    @property
    def inputs(self) -> Sequence[TensorInfo]: ...

    @property
    def outputs(self) -> Sequence[TensorInfo]: ...

    @property
    def shapes(self) -> Mapping[int, tuple[int, ...]]: ...

    def compiled(self) -> Program: ...

    def settle(self) -> None: ...


@frozen(eq=False)
class Fixed(ByIdentity):
    """A `Fit` of a compiled program for fixed shapes."""

    program: Program
    shapes: Mapping[int, tuple[int, ...]]

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        return self.program.inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        return self.program.outputs

    def compiled(self) -> Program:
        return self.program

    def settle(self) -> None:
        return


@define(eq=False)
class Setup(ByIdentity):
    """A program with its memory, and what its user set: the positions of inputs in `given`; source and target of inputs
    `copied` before each run; the execution's buffers for these in `own_inputs`; outputs with a user's buffer in
    `own_outputs`; whether a run has begun, so that outputs have elements, in `ran`; the inputs that the last `run`
    copied in `run_inputs`. `own_arena` says that the arena is no user's, and `outdated` why inputs set before a change
    of shapes must be set again.
    """

    fit: Fit
    instance: Instance
    frame: Frame
    run: Callable[[Frame], None]
    outdated: str = ""
    given: set[int] = Factory(set)
    copied: dict[int, tuple[Array, Array]] = Factory(dict)
    own_inputs: dict[int, Array] = Factory(dict)
    own_outputs: set[int] = Factory(set)
    ran: bool = False
    run_inputs: Sequence[Input] = ()
    own_arena: bool = True
    _ends: Sequence[tuple[str, Tensor, TensorInfo]] = field(default=(), init=False)
    """The name, the tensor and the description of each output."""

    def copies(self, operand: int, array: Array) -> bool:
        """Whether to copy `array` into the bound buffer of an input instead of binding the input to it."""
        small = array.nbytes <= _COPIED and array.dtype != object
        return self.ran and small and self.frame.tensors[operand].buffer is not array

    def own_input(self, position: int) -> Array:
        """The execution's own buffer for an input that is copied."""
        if position not in self.own_inputs:
            self.fit.settle()
            self.own_inputs[position] = self.frame.room(self.input(position))
        return self.own_inputs[position]

    def copies_again(self, position: int, array: object) -> bool:
        """Set an input that is copied before each run to another array like the one before. Returns False, with nothing
        changed, if it is not like that. This spares small models the full check of their inputs."""
        found = self.copied.get(position)
        if found is None or type(array) is not np.ndarray or self.own_outputs:
            return False
        _, mine = found
        if array.shape != mine.shape or array.dtype != mine.dtype or array.nbytes > _COPIED:
            return False
        self.run_inputs = ()
        self.copied[position] = array, mine
        return True

    def set_input(self, position: int, array: Array) -> None:
        """Set an input to an array, which is bound to, or copied before each run. Raises ExecutionError if it overlaps
        memory given to an output."""
        if self.own_outputs:
            require_apart(f"input {self.fit.inputs[position].name!r}", array, self.beside_input(position, array))
        self.run_inputs = ()  # so that the next run sets the input even if this is interrupted
        self.given.discard(position)  # until it is completely set
        self.copied.pop(position, None)
        operand = self.input(position)
        if is_in_place(array) and not self.copies(operand, array):
            self.settle(operand, array)
        else:
            mine = self.own_input(position)
            self.copied[position] = (array, mine)
            self.settle(operand, mine)
        self.given.add(position)

    def settle(self, operand: int, array: Array) -> None:
        """Make an array the buffer of an input or output. Kernels remain bound if runs write nothing else there, as
        the order in which threads may run commands depends on that."""
        graph, tensors = self.frame.routine.subgraph, self.frame.tensors
        others = {*graph.outputs, *(update.variable for update in graph.state)} - {operand}
        written = [tensors[i].buffer for i in others]
        apart = self.own_arena and not any(isinstance(b, np.ndarray) and np.may_share_memory(array, b) for b in written)
        if not (apart and self.frame.redirect(operand, array)):
            self.frame.place(operand, array)

    def lend_input(self, position: int) -> Array:
        """Set an input to its own buffer, and return it."""
        mine = self.own_input(position)
        self.run_inputs = ()
        self.copied.pop(position, None)
        self.settle(self.input(position), mine)
        self.given.add(position)
        return mine

    def copy_inputs(self, arrays: Mapping[int, Array]) -> None:
        """Copy inputs, by position, into own buffers, so that kernels stay bound although each call brings others."""
        run_inputs: list[Input] = []
        for position, array in sorted(arrays.items()):
            operand = self.input(position)
            self.copied.pop(position, None)
            if array.dtype == object:
                self.frame.place(operand, array)
            else:
                mine = self.own_input(position)
                np.copyto(mine, array)
                self.settle(operand, mine)
                self.frame.put(operand, mine)
                run_inputs.append((self.fit.inputs[position].name, operand, mine))
            self.given.add(position)
        self.run_inputs = tuple(run_inputs) if len(run_inputs) == len(arrays) else ()

    def go_on(self) -> None:
        """Forget all inputs, and that there was a run."""
        self.ran = False
        self.outdated = ""
        self.run_inputs = ()
        self.given.clear()
        self.copied.clear()
        self.own_inputs.clear()

    def take_over(self, before: Setup, given: Iterable[int]) -> None:
        """Take over these inputs, by position, from the previous setup, unless their shapes have changed."""
        same = self.frame is before.frame  # their buffers are in place already
        for i in given:
            if self.fit.inputs[i].shape == before.fit.inputs[i].shape:
                if not same:
                    self.frame.place(self.input(i), before.frame.tensors[before.input(i)].buffer)
                self.given.add(i)
                if i in before.copied:
                    self.copied[i] = before.copied[i]

    def buffers(self) -> tuple[tuple[int, Array | None], ...]:
        """The buffers, by operand, of set inputs and of outputs with a user's buffer."""
        operands = (*map(self.input, self.given), *map(self.output, self.own_outputs))
        return tuple((operand, self.frame.tensors[operand].buffer) for operand in operands)

    def restore_buffers(self, buffers: Iterable[tuple[int, Array | None]]) -> None:
        """Restore these buffers."""
        for operand, array in buffers:
            self.frame.place(operand, array)

    def beside_input(self, position: int, array: Array) -> Iterator[tuple[str, Any]]:
        """The buffers, with names, that an input's array must not overlap: outputs that do not update it in place."""
        own = self.input(position)
        for i in self.own_outputs:
            output = self.output(i)
            if (own, output) not in self._pairs or not is_same(array, self.frame.tensors[output].buffer):
                yield f"output {self.fit.outputs[i].name!r}", self.frame.tensors[output].buffer

    def beside_output(self, position: int, buffer: Array) -> Iterator[tuple[str, Any]]:
        """The buffers that an output's must not overlap: other outputs, and inputs that it does not update in place."""
        own = self.output(position)
        for i in self.own_outputs - {position}:
            yield f"output {self.fit.outputs[i].name!r}", self.frame.tensors[self.output(i)].buffer
        for i in self.given:
            placed = self.frame.tensors[self.input(i)].buffer
            if i in self.copied or (self.input(i), own) not in self._pairs or not is_same(buffer, placed):
                yield f"input {self.fit.inputs[i].name!r}", self.copied[i][0] if i in self.copied else placed

    def results(self, infos: Sequence[TensorInfo]) -> dict[str, Array]:
        """All outputs of the last run by name: the user's buffers, otherwise copies; `infos` are the model's."""
        if not self._ends:
            tensors = map(self.frame.tensors.__getitem__, self.frame.routine.subgraph.outputs)
            self._ends = tuple((info.name, tensor, info) for info, tensor in zip(infos, tensors, strict=True))
        own = self.own_outputs
        if not own:
            try:  # these lines take a sixth of the time of a tiny model
                return {name: tensor.array.copy() for name, tensor, _ in self._ends}
            except MemoryError:
                pass  # `copied` raises it again, with the output's name
        ends = enumerate(self._ends)
        return {name: t.array if at in own else copied(t.array, info) for at, (name, t, info) in ends}

    @property
    def _pairs(self) -> tuple[tuple[int, int], ...]:
        return self.frame.routine.pairs

    def input(self, position: int) -> int:
        """The operand of an input."""
        return self.frame.routine.subgraph.inputs[position]

    def output(self, position: int) -> int:
        """The operand of an output."""
        return self.frame.routine.subgraph.outputs[position]


class Runner:
    """The runs of one execution. Its `body` is an `Exclusive`'s: it is sent a timeout, or something else to call.

    The setup of a run is replaced in one step. `unready` says that the next run must check more: whether inputs must be
    copied, or whether it may run at all.
    """

    __slots__ = ("_beginning", "closed", "pending", "setup", "stop", "unready")

    def __init__(self, setup: Setup, stop: Stop) -> None:
        self.setup = setup
        self.stop = stop
        self.unready = True
        self.closed = False
        self.pending: RunFuture | None = None
        """The last background run."""
        self._beginning: RunFuture | None = None

    def body(self) -> Body:
        # Every statement in the loop adds to the run time of the smallest model.
        self._recover()
        stop = self.stop
        try:
            while True:
                asked = yield
                if (asked is not None or self.unready or stop.armed) and self._is_other(asked):
                    continue
                setup = self.setup
                setup.run(setup.frame)
        except GeneratorExit:
            raise
        except BaseException:
            self._recover()
            raise

    def _recover(self) -> None:
        """Clean up after a call that failed or was interrupted."""
        begun = self._beginning
        if begun is not None:  # its caller was interrupted, so nobody has the future
            begun.cancel()
            self._beginning = None
        self.setup.instance.recover()

    def _is_other(self, asked: Callable[[], object] | float | None) -> bool:
        """Handle anything sent but a plain run and return True; otherwise prepare a run and return False."""
        if callable(asked):
            asked()
            return True
        self.require_idle()
        if asked is not None or self.stop.armed:
            self.stop.start(asked)
        self.prepare()
        return False

    def require_idle(self) -> None:
        """Raises ExecutionError if a run is not allowed now."""
        self.require_open()
        if self.awaits:
            raise ExecutionError("this execution is running; use one execution for each thread")

    def require_open(self) -> None:
        """Raises ExecutionError if the execution is closed."""
        if self.closed:
            raise ExecutionError("this execution is closed")

    @property
    def awaits(self) -> bool:
        """Whether a background run is active or pending."""
        return self.pending is not None and self.pending.goes_on

    def prepare(self) -> None:
        """Prepare a run: copy inputs that cannot be used in place. Raises ExecutionError if one is missing."""
        setup = self.setup
        if len(setup.given) != len(setup.frame.routine.subgraph.inputs):
            missing = [repr(info.name) for i, info in enumerate(setup.fit.inputs) if i not in setup.given]
            why = f"; shapes set earlier conflict with newer ones: {setup.outdated}" if setup.outdated else ""
            raise ExecutionError(f"no value is given for input {', '.join(missing)}{why}")
        for source, target in setup.copied.values():
            target[...] = source  # faster than `copyto`
        self.ready()

    def ready(self) -> None:
        """Mark that the next run needs no checks, unless inputs are copied for each."""
        setup = self.setup
        setup.ran = True
        self.unready = bool(setup.copied)
        if self.closed or self.awaits:  # changed meanwhile; `close` sets `closed`, then `unready`
            self.unready = True

    def begin(self, future: RunFuture, pool: Pool, task: Task[None], timeout: float | None) -> None:
        """Have the pool's thread do a run. Called by the body."""
        self.require_idle()
        self.stop.start(timeout)
        self.unready = True
        self._beginning = self.pending = future
        try:
            pool.give(task)
        except RuntimeError as error:
            raise ExecutionError(f"no thread can be started to run in the background ({error}); use execute") from error
        self._beginning = None

    def in_background(self) -> None:
        """The run that `begin` scheduled. Called by the body."""
        self.prepare()
        self.setup.run(self.setup.frame)


def require_program(given: object) -> None:
    """Raises ExecutionError unless an execution is given a program."""
    if not isinstance(given, Program):
        raise ExecutionError(
            f"Execution is given a {type(given).__name__}, expected a program: onert.compile(onert.load(...))"
        )
