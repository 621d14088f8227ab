"""The memory of one subgraph in one execution, and its kernels bound to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onert.backend import HOST, Routine, Tensor, Tensors
from onert.ir import Array, Context, ExecutionError, TensorType
from onert.ir import shape as shapes


class Frame:
    """A routine's tensors, and for each of its steps a call without arguments.

    Inputs and outputs lie outside of the arenas: `place` says where. Kernels are bound again only after a place
    changed.
    """

    def __init__(self, routine: Routine, context: Context) -> None:
        self.routine = routine
        self._context = context
        self._arenas = {name: plan.memory.allocate(plan.size) for name, plan in routine.arenas.items()}
        self._tensors: dict[int, Tensor] = {}
        self._make_constants()
        self._make_planned()
        self._make_rest()
        self.tensors = Tensors(self._tensors)
        self._bound: tuple[Callable[[], None], ...] | None = None

    def _make_constants(self) -> None:
        for index, operand in enumerate(self.routine.subgraph.operands):
            if operand.data is None:
                continue
            memory = self.routine.memories.get(index, HOST)
            if memory.name == HOST.name:
                self._tensors[index] = Tensor(operand.type, operand.data.array)
            else:
                buffer = memory.view(memory.allocate(operand.type.nbytes), 0, operand.type)
                memory.copy_in(operand.data.array, buffer, operand.type)
                self._tensors[index] = Tensor(operand.type, buffer, memory)

    def _make_planned(self) -> None:
        for name, plan in self.routine.arenas.items():
            for index, placement in plan.placements.items():
                type_ = self.routine.subgraph.type(index)
                buffer = plan.memory.view(self._arenas[name], placement.offset, type_)
                self._tensors[index] = Tensor(type_, buffer, plan.memory)

    def _make_rest(self) -> None:
        """Inputs, outputs and dynamic tensors: no buffer until one is given or computed."""
        for index, operand in enumerate(self.routine.subgraph.operands):
            if index not in self._tensors:
                self._tensors[index] = Tensor(operand.type, None, self.routine.memories.get(index, HOST))
        for index in self.routine.subgraph.outputs:
            tensor = self._tensors[index]
            if tensor.buffer is None and not tensor.dynamic:
                tensor.buffer = empty(tensor.type)

    def share_variables(self, variables: dict[int, Array]) -> None:
        """Let this frame's variables lie where another's do; the first frame makes them."""
        for index, operand in enumerate(self.routine.subgraph.operands):
            if not operand.variable:
                continue
            tensor = self._tensors[index]
            if index not in variables:
                initial = empty(tensor.type)
                initial[...] = tensor.type.cleared
                variables[index] = initial
            tensor.buffer = variables[index]
        self._bound = None

    def place(self, operand: int, array: Array | None) -> None:
        """Let a tensor lie in `array`, whose type is the tensor's."""
        tensor = self._tensors[operand]
        if tensor.dynamic and array is not None:
            tensor.type = TensorType(tensor.declared.dtype, array.shape, tensor.declared.quantization)
        if tensor.buffer is not array:
            tensor.buffer = array
            self._bound = None

    def give(self, inputs: Sequence[Array]) -> None:
        """Put the inputs of a call in place; ExecutionError where a shape or an element type does not fit."""
        wanted = self.routine.subgraph.inputs
        if len(inputs) != len(wanted):
            raise ExecutionError(f"subgraph {self._name()} is given {len(inputs)} inputs, expected {len(wanted)}")
        for operand, array in zip(wanted, inputs, strict=True):
            declared = self._tensors[operand].declared
            if array.dtype != declared.dtype.numpy or (
                declared.ranked and not shapes.compatible(array.shape, declared.shape)
            ):
                raise ExecutionError(
                    f"subgraph {self._name()}, {self.routine.subgraph.label(operand)} is given {array.dtype}"
                    f"{shapes.text(array.shape)}, expected {declared}"
                )
            self.place(operand, array)

    def take(self) -> tuple[Array, ...]:
        """The results of a call; the arrays are the taker's own."""
        found = []
        for operand in self.routine.subgraph.outputs:
            tensor = self._tensors[operand]
            found.append(tensor.array if tensor.dynamic else tensor.array.copy())
        return tuple(found)

    @property
    def calls(self) -> tuple[Callable[[], None], ...]:
        """The steps, bound to where the tensors lie now."""
        if self._bound is None:
            self._bound = tuple(step.kernel.bind(self.tensors, self._context) for step in self.routine.steps)
        return self._bound

    def update_state(self) -> None:
        """Give variables the values that this run computed for them."""
        for update in self.routine.subgraph.state:
            source, target = self._tensors[update.source], self._tensors[update.variable]
            target.memory.copy_in(source.array, target.buffer, target.type)

    def _name(self) -> str:
        return f"'{self.routine.subgraph.name}'"


def empty(type_: TensorType) -> Array:
    """An array of a static type that starts on a cache line, contents undefined."""
    if type_.dtype.is_handle:
        return np.empty(shapes.static(type_.shape), object)
    return HOST.view(HOST.allocate(type_.nbytes), 0, type_)
