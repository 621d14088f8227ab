"""The frame of a program for many lengths: its memory suffices for the longest, and its kernels are bound once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from onert.backend import HOST, Buffer, Routine, Stretch, Stretched, Tensor
from onert.backend.memory import touched
from onert.exec.journal import undo
from onert.ir import Array, Context, ExecutionError, Shape, TensorType
from onert.ir.shape import static

from .buffers import fresh
from .frame import Calls, Frame


class Resized(Tensor):
    """A tensor whose `shape` depends on the lengths. Its type is created on demand: most runs only go on to the next
    length.
    """

    __slots__ = ("_type", "shape")

    _type: TensorType
    shape: tuple[int, ...]

    def __init__(self, like: Tensor) -> None:
        super().__init__(like.type, like.buffer, like.memory)

    def _type_now(self) -> TensorType:
        found = self._type
        if found.shape != self.shape:
            found = self._type = TensorType(found.dtype, self.shape, found.quantization)
        return found

    def _retype(self, type_: TensorType) -> None:
        self._type = type_
        self.shape = static(type_.shape)

    type = property(_type_now, _retype)


class Resizable(Resized):
    """A tensor with its own memory, such as an input or output, large enough for the longest lengths; `is_own` says
    whether it is used.

    `view` is that memory as an array of the current shape.
    """

    __slots__ = ("_axis", "_before", "_dtype", "_memory", "_rows", "is_own", "view")

    def __init__(self, like: Tensor, room: Array, opened: Sequence[int]) -> None:
        """`opened` are the axes that lengths change."""
        super().__init__(like)
        self.is_own = False
        self._dtype: Any = like.type.dtype.numpy
        self._memory = room.data
        self._axis = axis = opened[0] if opened else 0
        self._before = (slice(None),) * axis
        before, rest = self.shape[:axis], self.shape[axis + 1 :]
        nbytes = prod(rest, start=like.type.dtype.itemsize)
        self._rows: Array | None = None
        if len(opened) == 1 and prod(before) == 1 and nbytes:
            rows = room[: room.nbytes // nbytes * nbytes].view(self._dtype)
            self._rows = rows.reshape(*before, -1, *rest)  # slicing takes half as long as making an array
        self.view: Array = np.ndarray(self.shape, self._dtype, self._memory)

    @property
    def capacity(self) -> int:
        """The bytes of the own memory."""
        return self._memory.nbytes

    def resize(self, shape: tuple[int, ...]) -> None:
        rows = self._rows
        if rows is None:
            self.view = np.ndarray(shape, self._dtype, self._memory)
        else:
            self.view = rows[(*self._before, slice(shape[self._axis]))]
        self.shape = shape

    @property
    def buffer(self) -> Buffer | None:
        return self.view if self.is_own else self._buffer

    @buffer.setter
    def buffer(self, buffer: Buffer | None) -> None:
        self.is_own = False
        self._buffer = buffer

    @property
    def array(self) -> Array:
        return self.view if self.is_own else super().array


class StretchedFrame(Frame):
    """A frame that `become` changes to other lengths, by changing numbers in the commands that kernels run.

    Inputs and outputs are `Resizable`, in their own memory unless placed elsewhere. `lengths` are those that the
    commands, and the tensors of inputs and outputs, are set up for; None while they change. All other tensors keep the
    types of the first lengths: only kernels use them, and kernels use only their addresses, which are the same for all
    lengths.
    """

    def __init__(self, routine: Routine, context: Context, execute: Callable[[Frame], None], stretch: Stretch) -> None:
        self.lengths: tuple[int, ...] | None = None
        self._stretch = stretch
        first = stretch.numbers.first
        sizes = sorted(
            {d for dims in stretch.shapes.values() for register, d in dims if register < 0 and d is not None}
        )
        of_sizes: dict[int | None, int] = {d: len(first) + at for at, d in enumerate(sizes)}
        self._registers = np.append(first, np.array(sizes, first.dtype))  # all dimensions can be read from registers
        self._words: memoryview[int] = self._registers.data  # yields Python integers
        self._follow = stretch.following.followed(stretch.numbers, self._registers)
        self._become = self._follow
        """Executes the instructions and, once kernels are bound, puts the results into one step's commands."""
        self._stretched: tuple[Stretched, ...] = ()
        """The bound steps."""
        self._others: tuple[Stretched, ...] = ()
        """The bound steps other than that one."""
        self._arena: tuple[Array, int] | None = None
        """The arena, and where this frame's part of it starts."""
        super().__init__(routine, context, execute, None)
        roots = routine.roots
        opened = {
            i: [axis for axis, (register, _) in enumerate(dims) if register >= 0] for i, dims in stretch.shapes.items()
        }
        self.roomy: dict[int, Resizable] = {}
        """What has its own memory, by operand: inputs, outputs and results that last to the end of a run."""
        for i, nbytes in stretch.capacities.items():
            if roots.get(i, i) == i:
                room = touched(HOST.allocate(nbytes))
                self._tensors[i] = self.roomy[i] = Resizable(self._tensors[i], room, opened[i])
        inputs = frozenset(routine.subgraph.inputs)
        self._shapes = [
            (
                self.roomy[i],
                _reading([register if register >= 0 else of_sizes[d] for register, d in dims]),
            )
            for i, dims in stretch.shapes.items()
            if i in self.roomy and opened[i]
        ]
        """Tensors whose shapes depend on the lengths."""
        self._ends = [(i, tensor, i in inputs) for i, tensor in self.roomy.items()]
        self._away = True
        """Whether any of these may be placed outside its own memory."""
        self._within: list[tuple[Resized, int, _Reading]] = []
        """Tensors that share the memory of others."""
        self._planned: list[tuple[Resized, int, _Reading]] = []
        """Tensors in the arena whose shapes kernels read, and where they start."""
        self._unsized: list[tuple[Tensor, int]] = []
        """Tensors of which only a run determines some dimensions, but lengths determine others."""
        plan = routine.arenas.get(HOST.name)
        for i, dims in stretch.shapes.items():
            if self._tensors[i].dynamic:
                if opened[i]:
                    self._unsized.append((self._tensors[i], i))
            elif i not in self.roomy:
                read = _reading([r if r >= 0 else of_sizes[d] for r, d in dims])
                self._tensors[i] = resized = Resized(self._tensors[i])
                if i in roots:
                    self._within.append((resized, roots[i], read))
                elif plan is not None and i in plan.placements and opened[i]:
                    self._planned.append((resized, plan.placements[i].offset, read))
        self._has_more = len(stretch.kernels) > 1 or bool(self._within or self._planned or self._unsized)
        self.undo = undo(routine.subgraph, self.tensors)  # of the tensors that replaced others here

    def _make_buffer(self, operand: int) -> None:
        if operand not in self._stretch.capacities:
            super()._make_buffer(operand)

    def shape(self, operand: int) -> Shape:
        """The shape of an operand in `Stretch.shapes` for the current lengths; None stands for what only a run
        determines."""
        words = self._words
        return tuple([d if register < 0 else words[register] for register, d in self._stretch.shapes[operand]])

    def settle(self, arena: Array, start: int) -> None:
        super().settle(arena, start)
        self._arena = arena, start

    def vacate(self) -> None:
        super().vacate()
        self._arena = None

    def room(self, operand: int) -> Array:
        """The frame's own memory for an input, with the input's current shape."""
        return self.roomy[operand].view

    def place(self, operand: int, array: Array | None) -> None:
        tensor = self.roomy.get(operand)
        if tensor is None:
            super().place(operand, array)
        elif not (tensor.is_own and array is tensor.view):
            self._away = True
            super().place(operand, array)
            tensor.is_own = array is tensor.view

    put = place

    def redirect(self, operand: int, array: Array) -> bool:
        tensor = self.roomy.get(operand)
        if tensor is None:
            return super().redirect(operand, array)
        self._away = True
        redirected = super().redirect(operand, array)
        if redirected:
            tensor.is_own = array is tensor.view
        return redirected

    def capacity(self, operand: int) -> int:
        tensor = self.roomy.get(operand)
        return super().capacity(operand) if tensor is None else tensor.capacity

    def is_replaceable(self, operand: int) -> bool:
        tensor = self.roomy.get(operand)
        return tensor is None or not tensor.is_own

    def become(self, lengths: tuple[int, ...], *, again: bool = False) -> bool:
        """Change to these lengths. Returns False, with the frame unchanged, if they need another program.

        Every output, and an input whose buffer then has another shape, is moved to the frame's own memory. If the frame
        had these lengths before and changes to them `again`, outputs whose buffers have the right shape stay. An
        interrupted call is completed by the next, whatever it has changed: so no part may be skipped because another
        part has been changed already.
        """
        words = self._words
        for at, length in enumerate(lengths):
            words[at] = length
        before, self.lengths = self.lengths, None
        if not self._become():
            self.lengths = before
            return False
        for tensor, read in self._shapes:
            tensor.resize(read(words))
        if self._away:
            for operand, tensor, is_input in self._ends:
                if not tensor.is_own:
                    self._lie(operand, tensor, again or is_input)
            self._away = not all(tensor.is_own for _, tensor, _ in self._ends)
        if self._has_more:
            self._change_more(words)
        self.lengths = lengths
        return True

    def _change_more(self, words: Sequence[int]) -> None:
        """Change what few frames have."""
        for each in self._others:
            each.put()
        for within, root, read in self._within:
            within.shape, place = read(words), self._tensors[root].buffer
            within.buffer = None if place is None else place.reshape(within.shape)
        if self._planned and self._arena is not None:
            arena, start = self._arena
            for planned, offset, read in self._planned:
                planned.shape = read(words)
                planned.buffer = HOST.view(arena, start + offset, planned.type)
        for unsized, operand in self._unsized:
            unsized.declared = unsized.type = unsized.declared.with_shape(self.shape(operand))

    def _lie(self, operand: int, tensor: Resizable, stay: bool) -> None:
        """Move an input or output to its own memory if its buffer has another shape, or if it does not `stay`; an
        output that a caller still has to new memory, as the next result is handed out in turn."""
        buffer = tensor.buffer
        if buffer is None or buffer.shape != tensor.shape or not stay:
            user = self.handed.pop(operand, None)
            replaced = None if user is None or user() is None else fresh(tensor.type)
            bound, redirect = self.bound, None if self.bound is None else self._redirect(operand)
            if redirect is None:
                self._moved()
            self.bound = None
            if replaced is None:
                tensor.is_own = True
            else:
                tensor.buffer = replaced
            if redirect is not None:
                redirect(tensor.view if replaced is None else replaced)
                self.bound = bound
            del buffer  # which kernels have read until here

    @property
    def calls(self) -> Calls:
        """The steps, bound to the current buffers of the tensors, with the numbers of the lengths put into them."""
        if self.bound is None:
            numbers, registers = self._stretch.numbers, self._registers
            following = self._stretch.following
            first = following.bind(self.tensors, self._context, numbers, registers)
            bound = tuple(
                [
                    first if kernel is following else kernel.bind(self.tensors, self._context, numbers, registers)
                    for kernel in self._stretch.kernels
                ]
            )
            for at, length in enumerate(self.lengths or ()):
                self._words[at] = length
            if self.lengths is None or not first.become():
                raise ExecutionError("the program cannot run for these lengths")
            self._stretched = self._redirectable = bound  # these keep the commands' memory alive
            self._others = tuple([each for each in bound if each is not first])
            for other in self._others:
                other.put()
            self._become = first.become
            self._redirects = {}
            self.bound = tuple([each.run for each in bound])
        return self.bound

    def _moved(self) -> None:
        super()._moved()
        self._become = self._follow
        self._stretched = self._others = ()


_Reading = Callable[[Sequence[int]], tuple[int, ...]]


def _reading(registers: Sequence[int]) -> _Reading:
    """A function that reads a shape from registers."""
    if len(registers) == 1:
        (only,) = registers
        return lambda words: (words[only],)
    return itemgetter(*registers) if registers else lambda _: ()
