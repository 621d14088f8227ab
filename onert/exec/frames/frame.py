"""The memory of one subgraph in one execution, and its kernels bound to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import setitem
from weakref import finalize

import numpy as np

from onert.backend import HOST, Buffer, CopiesAfter, Memory, Routine, Step, Tensor, Tensors, tensor_bytes
from onert.backend.kernel import Redirect, Redirects, together
from onert.backend.registry import OWN
from onert.exec.atomic import at_once
from onert.exec.journal import undo
from onert.ir import Array, Context, DType, ExecutionError, StateUpdate
from onert.ir import shape as shapes
from onert.ir.process.imports import module

from .buffers import copy, empty, is_plain

Calls = tuple[Callable[[], None], ...]
Watch = Callable[[Routine, Tensors, Calls], Calls]
"""Wraps the calls bound to a routine's tensors in calls that do the same and notify observers."""


class Frame:
    """A routine's tensors, and for each of its steps a call without arguments.

    Inputs and outputs are not in the arenas: `place` sets their buffers. Kernels are bound again only after a buffer
    has moved; `bound` are the current calls, None if `calls` must bind them. `stateful` says that a run ends with
    updates, all made at once: variables get new values, unless the only step copies these, and `commit` is called.
    """

    def __init__(
        self, routine: Routine, context: Context, execute: Callable[[Frame], None], watch: Watch | None
    ) -> None:
        self.routine = routine
        self.execute = execute
        self._context = context
        self._watch = watch
        self._is_stateful = self.stateful = False
        self._allocated: list[tuple[Memory, Buffer]] = []
        self._free = finalize(self, _free, self._allocated)
        self._tensors: dict[int, Tensor] = {}
        self._followers: dict[int, list[int]] = {}
        for operand, root in routine.roots.items():
            self._followers.setdefault(root, []).append(operand)
        self._make_constants()
        self._make_planned()
        self._make_rest()
        self._flags = self._make_lasting()
        self.tensors = Tensors(self._tensors)
        self.bound: Calls | None = None
        self._redirectable: tuple[object, ...] = ()
        """What is bound of each step, and may be redirected."""
        self._redirects: dict[int, Redirect | None] = {}
        """What redirects all of these to other arrays for an input, by operand."""
        self.handed: dict[int, Callable[[], object]] = {}
        """Outputs whose buffers callers have, so that the next run must not write to them unless these return None."""
        self.undo = undo(routine.subgraph, self.tensors)
        """Undoes the in-place updates of an incomplete run."""
        self.note: Callable[[Array], None] | None = None
        """Called with each variable's value just before it is overwritten."""
        self._is_stateful = self.stateful = bool(routine.subgraph.state) or bool(self.undo.records)
        self._commit: tuple[Callable[[], object], ...] = ()
        self._updates: tuple[Callable[[], object], ...] | None = None

    def _make_constants(self) -> None:
        for index, operand in enumerate(self.routine.subgraph.operands):
            if operand.data is not None:
                self._tensors[index] = Tensor(operand.type, operand.data)

    def _make_planned(self) -> None:
        """Make the tensors in arenas; those in host memory have no buffer until the frame gets an arena."""
        for name, plan in self.routine.arenas.items():
            arena = None if name == HOST.name else self._allocate(plan.memory, plan.size)
            for index, placement in plan.placements.items():
                type_ = self.routine.subgraph.type(index)
                buffer = None if arena is None else plan.memory.view(arena, placement.offset, type_)
                self._tensors[index] = Tensor(type_, buffer, plan.memory)

    def _make_rest(self) -> None:
        """Make inputs, outputs and dynamic tensors; static outputs get a buffer."""
        for index, operand in enumerate(self.routine.subgraph.operands):
            if index not in self._tensors:
                self._tensors[index] = Tensor(operand.type, None, self.routine.memories.get(index, HOST))
        for index in self.routine.subgraph.outputs:
            tensor = self._tensors[index]
            if tensor.buffer is None and not tensor.dynamic:
                self._lay(index, empty(tensor.type))

    def _make_lasting(self) -> Array:
        """Allocate results that must last to the end of a run; returns an array of the boolean scalars among them."""
        found = {index: self._tensors[index] for index in self.routine.subgraph.lasting}
        flags = [tensor for tensor in found.values() if tensor.type.dtype is DType.BOOL and not tensor.type.shape]
        together: Array = np.zeros(len(flags), np.bool_)
        for at, tensor in enumerate(flags):
            tensor.buffer = together[at : at + 1].reshape(())
        for index, tensor in found.items():
            if tensor.buffer is None:
                self._make_buffer(index)
        return together

    def _make_buffer(self, operand: int) -> None:
        """Allocate the buffer of a result that must last to the end of a run."""
        tensor = self._tensors[operand]
        memory, nbytes = tensor.memory, tensor_bytes(tensor.memory, tensor.type)
        tensor.buffer = memory.view(self._allocate(memory, nbytes), 0, tensor.type)

    def _lay(self, operand: int, array: Array | None) -> None:
        """Set the buffer of a tensor, after that of all tensors that share its memory, in case this is interrupted."""
        for follower in self._followers.get(operand, ()):
            tensor = self._tensors[follower]
            tensor.buffer = None if array is None else array.reshape(shapes.static(tensor.type.shape))
        self._tensors[operand].buffer = array

    def _allocate(self, memory: Memory, nbytes: int) -> Buffer:
        buffer = memory.allocate(nbytes)
        self._allocated.append((memory, buffer))
        return buffer

    def settle(self, arena: Array, start: int) -> None:
        """Place the planned tensors of host memory in `arena`, starting at byte `start`."""
        self._moved()
        plan = self.routine.arenas.get(HOST.name)
        if plan is not None:
            for index, placement in plan.placements.items():
                tensor = self._tensors[index]
                tensor.buffer = HOST.view(arena, start + placement.offset, tensor.type)

    def vacate(self) -> None:
        """Remove the buffers of planned tensors in host memory."""
        plan = self.routine.arenas.get(HOST.name)
        for index in () if plan is None else plan.placements:
            self._tensors[index].buffer = None
        self._moved()

    def settle_alone(self) -> None:
        """Allocate an arena of the frame's own."""
        plan = self.routine.arenas.get(HOST.name)
        if plan is not None:
            self.settle(HOST.allocate(plan.size), 0)

    def close(self) -> None:
        """Free buffers in other memory spaces; the frame does not run again. May be called repeatedly."""
        self._moved()
        _free(self._allocated)

    def commit_with(self, commit: Callable[[], object]) -> None:
        """Call `commit`, a function written in C, when variables get their new values after a run."""
        self._commit = (commit,)
        self._is_stateful = True
        self._moved()

    def share_variables(self, variables: dict[int, Array]) -> None:
        """Share the buffers of variables among the frames of a subgraph; the first frame allocates them."""
        for index, operand in enumerate(self.routine.subgraph.operands):
            tensor = self._tensors[index] if operand.variable and operand.resource is None else None
            if tensor is None or tensor.memory.name != HOST.name:
                continue
            found = variables.get(index)
            if found is None:
                initial = empty(tensor.type)
                initial[...] = tensor.type.cleared
                found = variables.setdefault(index, initial)  # another thread may be making a frame
            self._lay(index, found)
        self._moved()

    def place(self, operand: int, array: Array | None) -> None:
        """Set the buffer of a tensor to `array`, whose type is the tensor's."""
        tensor = self._tensors[operand]
        if tensor.dynamic and array is not None:
            tensor.become(array.shape)
        if tensor.buffer is not array:
            if not self._is_looked_up(operand):
                self._moved()  # first: an interrupt after this costs only another binding
            self._lay(operand, array)

    def _is_looked_up(self, operand: int) -> bool:
        """Whether kernels look for a tensor's buffer when they run, and nothing else depends on it."""
        tensor = self._tensors[operand]
        alone = operand not in self._followers and not self.routine.subgraph.state
        return tensor.declared.dtype.is_handle or (tensor.dynamic and alone)

    put = place
    """Set an input to `array`, whose elements do not change until it is put again."""

    def redirect(self, operand: int, array: Array) -> bool:
        """Like `place` for an input or output and a contiguous array that shares no memory with what else runs write,
        but without binding kernels again. Returns False, with nothing changed, if a kernel needs that."""
        tensor = self._tensors[operand]
        if self.bound is None or tensor.buffer is array:
            self.place(operand, array)
            return True
        redirect = self._redirect(operand)
        if redirect is None:
            return False
        bound, before = self.bound, tensor.buffer  # which kernels read until they are redirected
        self.bound = None  # an interrupt after this costs only another binding
        self._lay(operand, array)
        redirect(array)
        self.bound = bound
        del before
        return True

    def capacity(self, operand: int) -> int:
        """The bytes of the largest tensor that an output may be; 0 if its size is not known before a run."""
        declared = self._tensors[operand].declared
        return declared.nbytes if declared.is_static else 0

    def is_replaceable(self, operand: int) -> bool:
        """Whether an output's memory is only needed for its current elements."""
        return True

    def redirects(self, operand: int) -> bool:
        """Whether kernels are bound and `redirect` would not bind them again."""
        return self.bound is not None and self._redirect(operand) is not None

    def _redirect(self, operand: int) -> Redirect | None:
        """What redirects all bound steps to another array for an operand; None if one cannot be."""
        if operand not in self._redirects:
            self._redirects[operand] = self._found_redirect(operand)
        return self._redirects[operand]

    def _found_redirect(self, operand: int) -> Redirect | None:
        graph, tensor = self.routine.subgraph, self._tensors[operand]
        operands = frozenset((operand, *self._followers.get(operand, ())))
        updated = {i for update in graph.state for i in (update.source, update.variable)}.union(*self.routine.pairs)
        ends = {*graph.inputs, *graph.outputs} - self.routine.roots.keys()
        if tensor.dynamic or tensor.memory.name != HOST.name or graph.operands[operand].data is not None:
            return None
        if len(operands & ends) != 1 or operands & updated or self._is_shared(operand, operands):
            return None
        # Every operand in this memory shares it through operations, one of which crosses each boundary between steps.
        steps = list(zip((step.sequence for step in self.routine.steps), self._redirectable, strict=True))
        using = [own for sequence, own in steps if not operands.isdisjoint((*sequence.inputs, *sequence.outputs))]
        return together(own.redirect(operands) if isinstance(own, Redirects) else None for own in using)

    def _is_shared(self, operand: int, operands: frozenset[int]) -> bool:
        """Whether an input or output was bound to memory that it shares with another one, and that runs write: then
        copies from one to the other were left out."""
        graph, buffer = self.routine.subgraph, self._tensors[operand].buffer
        read = graph.inputs if operand in graph.outputs else ()
        others = {*read, *graph.outputs, *(update.variable for update in graph.state)} - operands
        buffers = [self._tensors[i].buffer for i in others]
        return any(isinstance(b, np.ndarray) and np.may_share_memory(b, buffer) for b in buffers)

    def room(self, operand: int) -> Array:
        """A buffer for an input that is copied, of its type."""
        return empty(self._tensors[operand].type)

    def clear_elsewhere(self) -> None:
        """Clear variables in memory spaces other than the host's."""

    def recover(self) -> None:
        """After an interrupted run: wait for its work in other memory spaces."""

    def _moved(self) -> None:
        """Discard what depends on the buffers, because one has moved."""
        self.bound = self._updates = None
        self._redirects = {}
        self.stateful = self._is_stateful

    def give(self, inputs: Sequence[Array]) -> None:
        """Set the inputs of a call. Raises ExecutionError if a shape or an element type does not fit.

        Inputs of known shape are copied to the frame's own memory, so that calls need to be bound only once.
        """
        wanted = self.routine.subgraph.inputs
        if len(inputs) != len(wanted):
            raise ExecutionError(f"subgraph {self._name()} is given {len(inputs)} inputs, expected {len(wanted)}")
        for operand, array in zip(wanted, inputs, strict=True):
            tensor = self._tensors[operand]
            declared = tensor.declared
            shape = array.shape
            fits = shape == declared.shape or not declared.ranked or shapes.compatible(shape, declared.shape)
            if array.dtype != declared.dtype.numpy or not fits:
                raise ExecutionError(
                    f"subgraph {self._name()}, {self.routine.subgraph.label(operand)} is given {array.dtype}"
                    f"{shapes.text(array.shape)}, expected {declared}"
                )
            if tensor.dynamic:
                self.place(operand, array)
                continue
            if tensor.buffer is None:
                self.place(operand, empty(declared))
            tensor.array[...] = array  # faster than `copyto`

    def take(self) -> tuple[Array, ...]:
        """The results of a call; the caller owns the arrays."""
        found = []
        for operand in self.routine.subgraph.outputs:
            tensor = self._tensors[operand]
            found.append(tensor.array if tensor.dynamic else tensor.array.copy())
        return tuple(found)

    @property
    def calls(self) -> Calls:
        """The steps, bound to the current buffers of the tensors."""
        if self.bound is None:
            self._redirectable = bound = tuple(self._bind(step) for step in self.routine.steps)
            if self._watch is not None:
                bound = self._watch(self.routine, self.tensors, bound)
            elif self.stateful and len(bound) == 1 and isinstance(bound[0], CopiesAfter):
                bound = (self._updating(bound[0]),)
            self._redirects = {}
            self.bound = bound
        return self.bound

    def _updating(self, step: CopiesAfter) -> Callable[[], None]:
        """The only step, ending with the copies that give variables their new values, if these are plain."""
        if not self._is_steady:
            return step
        pairs = self._pairs()
        if not pairs or not all(is_plain(target, source) for target, source in pairs):
            return step
        self._updates = self._other_updates()
        self.stateful = bool(self._updates)
        return step.with_copies(pairs)

    def _bind(self, step: Step) -> Callable[[], None]:
        """Bind a step's kernel. Other packages' kernels get a guard; our own name the place of errors themselves."""
        if step.backend in OWN:
            return step.kernel.bind(self.tensors, self._context)
        call: Callable[[], None] = module("onert.exec.frames.guarded").bound(step, self.tensors, self._context)
        return call

    def update_state(self) -> None:
        """Give variables the values that this run computed for them, all at once. One that was updated in place has its
        value already, and the record of what was overwritten is dropped."""
        at_once(self._updates or self._host_updates())

    def _host_updates(self) -> tuple[Callable[[], object], ...]:
        """The calls that give variables in host memory the values that this run computed for them.

        Raises ExecutionError if a value has another type than its variable.
        """
        if self._updates is not None:
            return self._updates
        pairs = self._pairs()
        updates = (*(copy(target, source) for target, source in pairs), *self._other_updates())
        if self.note is not None:
            for target, _ in pairs:
                self.note(target)
        if self._is_steady:
            self._updates = updates
        return updates

    @property
    def _replaced(self) -> Iterator[StateUpdate]:
        """The updates of variables in host memory that are not made in place."""
        for update in self.routine.subgraph.state:
            in_place = self.routine.roots.get(update.source) == update.variable
            if not in_place and self._tensors[update.variable].memory.name == HOST.name:
                yield update

    @property
    def _is_steady(self) -> bool:
        """Whether the same arrays are copied after every run, and nobody notes what they replace."""
        return self.note is None and not any(self._tensors[u.source].dynamic for u in self._replaced)

    def _pairs(self) -> list[tuple[Array, Array]]:
        """Each changed variable and its next value. Raises ExecutionError if one has another type than its variable."""
        pairs = [(self._tensors[u.variable].array, self._tensors[u.source].array) for u in self._replaced]
        for target, source in pairs:
            if target.dtype != source.dtype or target.shape != source.shape:
                raise ExecutionError(
                    f"subgraph {self._name()}: a variable is given {source.dtype}{shapes.text(source.shape)}, "
                    f"expected {target.dtype}{shapes.text(target.shape)}"
                )
        return pairs

    def _other_updates(self) -> tuple[Callable[[], object], ...]:
        """What else ends a run: variables enter the state, records of overwritten parts are dropped, and `commit`."""
        graph = self.routine.subgraph
        named = [(graph.operands[u.variable].resource, u.variable) for u in graph.state]
        # A variable that has an initial value or is read has been in the state since the run began.
        held = [
            (r, self._tensors[index].array)
            for r, index in named
            if r is not None and r.initial is None and index not in self.routine.read
        ]
        return (
            *(partial(setitem, self._context.state, r.key, array) for r, array in held),
            *((partial(self._flags.fill, False),) if len(self._flags) else ()),
            *self._commit,
        )

    def _name(self) -> str:
        return f"'{self.routine.subgraph.name}'"


def _free(allocated: list[tuple[Memory, Buffer]]) -> None:
    while allocated:
        memory, buffer = allocated.pop()
        memory.free(buffer)
