"""What an execution runs: a program with its memory, and the arrays that the user set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol
from weakref import ref

import numpy as np
from attrs import Factory, define, field, frozen

from onert.backend import Program, Tensor, TensorInfo
from onert.exec.frames.buffers import fresh, lent
from onert.exec.frames.frame import Frame
from onert.ir import Array
from onert.ir.value import ByIdentity

from .arguments import Input, copied, is_in_place
from .context import Instance
from .memory_overlap import Spans, is_same, require_apart

_COPIED, _LARGE, _IN_PLACE, _READ_ONCE = 1 << 16, 1 << 18, 1 << 20, 1 << 17
"""The size in bytes up to which `set_input` makes runs copy an input instead of using it in place: a few microseconds.
The size from which `run` returns an output's memory, which another array replaces before the next run, instead of a
copy. And that from which it uses inputs in place: a copy of a smaller one is in the processor's second-level cache when
it is read, so making it costs nothing, unless a run reads it only once, which has a size of its own.
"""

_MANY = 4
"""From how many inputs and outputs on `Setup.together` looks up the outputs' places."""


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
    `own_outputs`, and those whose own memory the user knows in `kept_outputs`; whether a run has begun, so that outputs
    have elements, in `ran`; the inputs that the last `run` set in `run_inputs`. `own_arena` says that the arena is
    no user's, and `outdated` why inputs set before a change of shapes must be set again.
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
    kept_outputs: set[int] = Factory(set)
    _ends: Sequence[tuple[str, Tensor, TensorInfo]] = field(default=(), init=False)
    """The name, the tensor and the description of each output."""
    _has_lent: bool = field(default=False, init=False)
    """Whether `run_inputs` has arrays used in place."""
    _spans: Spans | None = field(default=None, init=False)
    """Where outputs and variables are while many inputs are set together."""
    _may_be_large: bool = field(default=False, init=False)
    """Whether an output may be too large to be copied."""

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
        if not (self._is_set_apart(operand, array, elements=True) and self.frame.redirect(operand, array)):
            self.frame.place(operand, array)
        self.frame.handed.pop(operand, None)

    def _is_set_apart(self, operand: int, array: Array, *, elements: bool) -> bool:
        """Whether runs write nothing but this operand to an array, if necessary once outputs that callers have were
        replaced, with the same `elements` or not."""
        apart = self._is_apart(operand, array)
        if not apart and self.frame.handed:  # it may be one of these
            self.replace_handed(elements=elements)
            apart = self._is_apart(operand, array)
        return apart

    def _is_apart(self, operand: int, array: Array) -> bool:
        """Whether runs write nothing but this operand to an array."""
        if self._spans is not None and self._spans.are_apart_from(array):
            return self.own_arena
        tensors = self.frame.tensors
        for i in self._written():
            buffer = tensors[i].buffer
            if i != operand and isinstance(buffer, np.ndarray) and np.may_share_memory(array, buffer):
                return False
        return self.own_arena

    def _written(self) -> Sequence[int]:
        """The outputs and the variables that runs write."""
        graph = self.frame.routine.subgraph
        if not graph.state:
            return graph.outputs
        return (*graph.outputs, *(update.variable for update in graph.state))

    def lend_input(self, position: int) -> Array:
        """Set an input to its own buffer, and return it."""
        mine = self.own_input(position)
        self.run_inputs = ()
        self.copied.pop(position, None)
        self.settle(self.input(position), mine)
        self.given.add(position)
        return mine

    def give(self, arrays: Mapping[int, Array]) -> None:
        """Set inputs, by position, for one run: copied into own buffers, or in place if they are large, so that kernels
        stay bound although each call brings other arrays."""
        run_inputs: list[Input] = []
        with self.together(len(arrays)):
            for position, array in sorted(arrays.items()):
                self.copied.pop(position, None)
                name = self.fit.inputs[position].name
                run_inputs.append(self.lent(name, position, array) or self._copied(name, position, array))
                self.given.add(position)
        self.set_run_inputs(run_inputs)

    def together(self, count: int) -> AbstractContextManager[None]:
        """While so many inputs are set, look up where the outputs are only once: with the caches of a language model,
        as many inputs as outputs, comparing each with each takes longer than the copies of small ones."""
        graph = self.frame.routine.subgraph
        if count < _MANY or len(graph.outputs) < _MANY or not set(graph.outputs).isdisjoint(graph.inputs):
            return nullcontext()
        return self._located()

    @contextmanager
    def _located(self) -> Iterator[None]:
        self._spans = Spans(self.frame.tensors[i].buffer for i in self._written())
        try:
            yield
        finally:
            self._spans = None

    def set_run_inputs(self, run_inputs: Sequence[Input]) -> None:
        """Note the inputs that `run` has set."""
        self._has_lent = any(position >= 0 for *_, position in run_inputs)
        self.run_inputs = run_inputs

    def lent(self, name: str, position: int, array: Array) -> Input | None:
        """An input used in place, as strings always are. None if it should be copied: because it is small or not
        contiguous, because runs write to its memory, or because kernels would be bound again."""
        operand, frame = self.input(position), self.frame
        if array.dtype.hasobject:
            frame.place(operand, array)
            return name, operand, array, position
        if self._is_little(position, array.nbytes) or position in self.own_inputs or not is_in_place(array):
            return None
        if frame.bound is not None and not frame.redirects(operand):
            return None
        if not self._is_set_apart(operand, array, elements=False):
            return None
        if not frame.redirect(operand, array):
            frame.place(operand, array)
        return name, operand, array, position

    def _is_little(self, position: int, nbytes: int) -> bool:
        """Whether a copy of an input of this size is faster than its use in place."""
        if nbytes >= _IN_PLACE or nbytes < _READ_ONCE:
            return nbytes < _IN_PLACE
        return self.input(position) not in self.frame.routine.read_once

    def _copied(self, name: str, position: int, array: Array) -> Input:
        """An input copied to the execution's own buffer."""
        operand, mine = self.input(position), self.own_input(position)
        mine[...] = array  # faster than `copyto`
        self.settle(operand, mine)
        self.frame.put(operand, mine)
        return name, operand, mine, -1

    def give_again(self, arrays: Sequence[Array]) -> None:
        """Set the inputs of the last run to other arrays of the same types and shapes."""
        if self._has_lent:
            with self.together(len(arrays)):
                given = zip(self.run_inputs, arrays, strict=True)
                self.set_run_inputs([self._again(found, array) for found, array in given])
            return
        put = self.frame.put
        for (_, operand, mine, _), array in zip(self.run_inputs, arrays, strict=True):
            mine[...] = array
            put(operand, mine)

    def _again(self, found: Input, array: Array) -> Input:
        name, operand, mine, position = found
        if array.dtype.hasobject:
            self.frame.place(operand, array)
            return name, operand, array, position
        if position >= 0:
            if array is mine and self.frame.tensors[operand].buffer is array:
                return found  # set apart already
            return self.lent(name, position, array) or self._copied(name, position, array)
        mine[...] = array
        self.frame.put(operand, mine)
        return found

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
            frame = self.frame
            self._may_be_large = any(frame.capacity(i) >= _LARGE for i in frame.routine.subgraph.outputs)
        if not (self.own_outputs or self._may_be_large):
            try:  # these lines take a sixth of the time of a tiny model
                return {name: tensor.array.copy() for name, tensor, _ in self._ends}
            except MemoryError:
                pass  # `copied` raises it again, with the output's name
        return {name: self._result(at, tensor, info) for at, (name, tensor, info) in enumerate(self._ends)}

    def _result(self, position: int, tensor: Tensor, info: TensorInfo) -> Array:
        """An output: the user's buffer, the frame's if it is large and can be replaced before the next run, or a copy.

        The memory of a frame for many lengths is larger than the output, so it is copied once and replaced all the
        same. Memory that replaced another one is only replaced if the caller still has the array: writing to the same
        memory again, which is in a cache, takes less time.
        """
        array, frame, operand = tensor.array, self.frame, self.output(position)
        if position in self.own_outputs:
            return array
        again = operand in frame.handed or position in self.kept_outputs
        if array.nbytes < _LARGE or again or not self._is_only(operand) or not frame.redirects(operand):
            return copied(array, info)
        own = lent(array)
        if own is not None:
            frame.handed[operand] = ref(own)
            return own
        found = array if frame.is_replaceable(operand) else copied(array, info)
        frame.handed[operand] = lambda: found
        return found

    def _is_only(self, operand: int) -> bool:
        """Whether an operand is one output, not several."""
        return self.frame.routine.subgraph.outputs.count(operand) == 1

    def replace_handed(self, *, elements: bool) -> None:
        """Replace the buffers of outputs that callers still have, with the same elements or arbitrary ones. Raises
        ExecutionError if there is not enough memory."""
        frame = self.frame
        for operand, user in tuple(frame.handed.items()):
            if user() is not None:
                tensor = frame.tensors[operand]
                array = fresh(tensor.type)
                if elements:
                    array[...] = tensor.array
                if not frame.redirect(operand, array):
                    frame.place(operand, array)
            frame.handed.pop(operand, None)
        if self._spans is not None:
            self._spans = Spans(self.frame.tensors[i].buffer for i in self._written())

    def keep_output(self, position: int) -> Tensor:
        """An output's tensor, whose buffer is not handed to callers of `run` from now on."""
        self.kept_outputs.add(position)
        if self.frame.handed:
            self.replace_handed(elements=True)
        return self.frame.tensors[self.output(position)]

    @property
    def _pairs(self) -> tuple[tuple[int, int], ...]:
        return self.frame.routine.pairs

    def input(self, position: int) -> int:
        """The operand of an input."""
        return self.frame.routine.subgraph.inputs[position]

    def output(self, position: int) -> int:
        """The operand of an output."""
        return self.frame.routine.subgraph.outputs[position]
