"""The frame of a program for many lengths: its memory has room for the longest, and kernels are bound once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

import numpy as np

from onert.backend import HOST, Routine, Stretch, Stretched, Tensor
from onert.ir import Array, Context, ExecutionError, TensorType
from onert.ir.shape import static

from .frame import Calls, Frame


class StretchedFrame(Frame):
    """A frame that `become` makes one for other lengths: it changes numbers in the commands that kernels run.

    Each input and each output has memory of the frame's own, with room for the longest, in which it lies unless it is
    placed elsewhere. `lengths` are those that the commands, and the tensors of inputs and outputs, are for; None while
    they change. Tensors between these keep the types of the first lengths: nobody but kernels sees them, and what
    kernels take of them are their places, which are the same for all lengths.
    """

    def __init__(self, routine: Routine, context: Context, execute: Callable[[Frame], None], stretch: Stretch) -> None:
        self.lengths: tuple[int, ...] | None = None
        self._stretch = stretch
        first = stretch.numbers.first
        sizes = sorted({d for dims in stretch.shapes.values() for register, d in dims if register < 0})
        of_sizes = {d: len(first) + at for at, d in enumerate(sizes)}
        self._registers = np.append(first, np.array(sizes, first.dtype))  # so that shapes are read from these alone
        self._words: memoryview[int] = self._registers.data  # gives Python's integers
        self._follow = stretch.kernels[0].followed(stretch.numbers, self._registers)
        self._stretched: tuple[Stretched, ...] = ()
        super().__init__(routine, context, execute, None)
        roots = routine.roots
        self._own = {i: HOST.allocate(n) for i, n in stretch.capacities.items() if roots.get(i, i) == i}
        inputs = frozenset(routine.subgraph.inputs)
        rows = [(i, roots.get(i, i), i in inputs, dims) for i, dims in stretch.shapes.items()]
        rows.sort(key=lambda row: row[0] != row[1])  # what lies in the memory of another comes after it
        self._shapes = [
            (i, root, is_input, _reading([register if register >= 0 else of_sizes[d] for register, d in dims]))
            for i, root, is_input, dims in rows
            if any(register >= 0 for register, _ in dims)
        ]
        """Tensors of which lengths change the shape."""
        self._others = [(i, root, own) for i, root, own, dims in rows if all(r < 0 for r, _ in dims)]
        self._views: dict[int, Array] = {}
        self._placed = dict.fromkeys(self._own, True)
        """Whether an input or output lies elsewhere than in the frame's own memory."""

    def room(self, operand: int) -> Array:
        """The memory of the frame's own for an input, as the input's type is now."""
        found = self._views.get(operand)
        return super().room(operand) if found is None else found

    def place(self, operand: int, array: Array | None) -> None:
        if operand in self._placed and self._tensors[operand].buffer is not array:
            self._placed[operand] = array is not self._views.get(operand)
        super().place(operand, array)

    put = place

    def is_for(self, lengths: tuple[int, ...]) -> bool:
        """Compute the numbers for lengths, and change nothing else; False where these are for another program."""
        for at, length in enumerate(lengths):
            self._words[at] = length
        return self._follow()

    def become(self, lengths: tuple[int, ...], *, again: bool = False) -> bool:
        """Become the frame for these lengths; False, and as it was, where they are for another program.

        An input that lies in memory of another shape then, and every output, comes to lie in the frame's own memory;
        where it was for these lengths before and becomes so `again`, outputs that lie in memory of their shape stay. A
        call that is broken off is made up for by the next, whatever it has changed: so nothing is left as it is because
        another part has been changed already.
        """
        if not self.is_for(lengths):
            return False
        self.lengths = None
        for each in self._stretched:
            each.put()
        words, tensors = self._words, self._tensors
        for operand, root, is_input, read in self._shapes:
            tensor = tensors[operand]
            shape = read(words)
            if shape != tensor.type.shape:
                tensor.type = TensorType(tensor.type.dtype, shape, tensor.type.quantization)
            if root == operand:
                self._lie(operand, tensor, shape, again or is_input)
                continue
            place = tensors[root].buffer
            tensor.buffer = None if place is None else place.reshape(shape)
        for operand, root, is_input in self._others:
            tensor = tensors[operand]
            if root != operand:
                place = tensors[root].buffer
                tensor.buffer = None if place is None else place.reshape(static(tensor.type.shape))
            elif self._placed[operand]:
                self._lie(operand, tensor, static(tensor.type.shape), again or is_input)
        self.lengths = lengths
        return True

    def _lie(self, operand: int, tensor: Tensor, shape: tuple[int, ...], stays: bool) -> None:
        """Have an input or output of this shape lie in the frame's own memory, if it lies in memory of another, and
        unless it `stays`."""
        view = self._views.get(operand)
        if view is None or view.shape != shape:
            view = self._views[operand] = _view(self._own[operand], shape, tensor.type)
        buffer = tensor.buffer
        if buffer is not view and (buffer is None or buffer.shape != shape or not stays):
            if self._placed[operand]:
                self._moved()
                self._placed[operand] = False
            tensor.buffer = view

    def execute_for(self, lengths: tuple[int, ...], frame: Frame) -> None:
        """Run for these lengths, even if one was interrupted who went on to others."""
        if self.lengths is not lengths and not self.become(lengths, again=True):
            raise ExecutionError("a program is run for lengths that it is not for")
        self.execute(frame)

    @property
    def calls(self) -> Calls:
        """The steps, bound to where the tensors lie now, with the numbers of the lengths put into them."""
        if self.bound is None:
            numbers, registers = self._stretch.numbers, self._registers
            bound = tuple(
                kernel.bind(self.tensors, self._context, numbers, registers) for kernel in self._stretch.kernels
            )
            if self.lengths is None or not self.is_for(self.lengths):
                raise ExecutionError("a program is run for lengths that it is not for")
            for each in bound:
                each.put()
            self._stretched = bound
            self.bound = tuple(each.run for each in bound)
        return self.bound

    def _moved(self) -> None:
        super()._moved()
        self._stretched = ()


def _view(memory: Array, shape: tuple[int, ...], type_: TensorType) -> Array:
    return np.ndarray(shape, type_.dtype.numpy, memory)


def _reading(registers: Sequence[int]) -> Callable[[Sequence[int]], tuple[int, ...]]:
    """What reads a shape from registers."""
    if len(registers) > 1:
        return itemgetter(*registers)
    (only,) = registers
    return lambda words: (words[only],)
