"""One entry of a model as an interpreter runs it: its tensors by number, its shapes and its execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert import compiler
from onert.backend.registry import load_backends
from onert.compiler import Options
from onert.compiler.program_cache.interfaces import Ends, Interface
from onert.exec import Execution
from onert.ir import Array, ExecutionError, OnertError, Package, Subgraph, Subgraphs
from onert.ir import shape as shapes
from onert.ir.value import ByIdentity

from .details import Details, operand_details
from .errors import ArgumentError, RunError


@frozen(eq=False)
class Model(ByIdentity):
    """What the entries of an interpreter share: its package, the number of threads, the state of variables, and whether
    every tensor can be read."""

    package: Package
    interface: Interface
    threads: int
    preserves: bool
    state: dict[Any, Any]


class Runner:
    """One entry of the model (the primary subgraph or a signature), with its shapes and its execution."""

    def __init__(self, model: Model, key: str | None = None) -> None:
        self._model = model
        self._key = key
        self.ends: Ends = model.interface[0 if key is None else model.interface.signatures[key].subgraph]
        self._shapes: dict[int, tuple[int, ...]] = {
            i: tuple(1 if d is None else d for d in self.ends.operand(i).type.shape) for i in self.ends.inputs
        }
        ends = (*self.ends.inputs, *self.ends.outputs)
        self._strings = frozenset(i for i in ends if self.ends.operand(i).type.dtype.is_handle)
        self._allocated: dict[int, tuple[int, ...]] | None = None
        self._execution: Execution | None = None
        self._runs: tuple[Callable[[], None], ...] = ()
        self._watching: Execution | None = None
        self._watched: Mapping[int, int] = {}
        self._whole = model.package
        if model.preserves:
            self._watched, self._whole = _with_all_outputs(model.package, self.ends.index, self.ends.graph)
        self._held: dict[int, Array] = {}
        self._sources: dict[int, Array] = {}
        """The memory of inputs that are copied to it; none while shapes are to change."""

    # ---- preparation

    def resize(self, tensor: int, shape: Sequence[int], *, strict: bool) -> None:
        self._require_input(tensor, "resized")
        wanted = tuple(int(d) for d in shape)
        declared = self.ends.operand(tensor).open_shape
        if strict and not shapes.compatible(wanted, declared):
            raise ArgumentError(f"{self.ends.label(tensor)} is given shape {shapes.text(wanted)}, expected {declared}")
        if any(d < 0 for d in wanted):
            raise ArgumentError(f"{self.ends.label(tensor)} is given shape {shapes.text(wanted)}, a size is negative")
        if wanted != self._shapes[tensor]:
            self._sources = {}
            self._shapes[tensor] = wanted

    def allocate(self) -> None:
        if self._allocated == self._shapes:
            return
        self._allocated = None  # until everything is allocated, even if a signal handler raises
        try:
            self._execution = self._fitted(self._execution, self._model.package, optimize=True)
            if self._model.preserves:
                self._watching = self._fitted(self._watching, self._whole, optimize=False)
        except OnertError as error:
            raise RunError(str(error)) from error
        self._hold(self._execution)
        self._runs = tuple(each.execute for each in self._executions)
        self._allocated = dict(self._shapes)
        self._sources = {i: self._held[i] for i in self.ends.inputs if i not in self._strings}

    def _fitted(self, execution: Execution | None, package: Package, *, optimize: bool) -> Execution:
        """The execution for the current input shapes: the previous one, if there is one."""
        given: dict[int | str, tuple[int, ...]] = {at: self._shapes[i] for at, i in enumerate(self.ends.inputs)}
        if execution is not None:
            execution.set_input_shapes(given)
            return execution
        options = Options(num_threads=self._model.threads, optimize=optimize, signature=self._key, input_shapes=given)
        backends = load_backends(options.with_config(package.config).backends)
        program = compiler.compile(package, options, backends)
        self._model.interface.keep()
        return Execution(program, self._model.state if optimize else None)

    def _hold(self, execution: Execution) -> None:
        """Set inputs and outputs to arrays of zeros that `tensor` can return, in the execution's own memory."""
        self._held = {}
        for position, tensor in enumerate(self.ends.inputs):
            if tensor in self._strings:
                self._place(position, tensor, _no_strings(self._shapes[tensor]))
                continue
            self._held[tensor] = own = execution.input_buffer(position)
            own.fill(0)
            if self._watching is not None:
                self._watching.set_input(position, own)
        for position, tensor in enumerate(self.ends.outputs):
            array = execution.output_buffer(position)
            if array is not None and tensor not in self._held and tensor not in self._strings:
                self._held[tensor] = array
                array.fill(0)

    def _place(self, position: int, tensor: int, array: Array) -> None:
        self._held[tensor] = array
        for execution in self._executions:
            execution.set_input(position, array)

    @property
    def _executions(self) -> tuple[Execution, ...]:
        return tuple(e for e in (self._execution, self._watching) if e is not None)

    def _ready(self) -> Execution:
        if self._execution is None or self._allocated != self._shapes:
            raise RunError("the tensors are not allocated; call allocate_tensors first")
        return self._execution

    # ---- elements

    def copied(self, tensor: object, value: object) -> bool:
        """Copy an array of the right type and shape into an input. Returns False, with nothing changed, for anything
        else. This spares small models a full check."""
        mine = self._sources.get(tensor) if isinstance(tensor, int) else None
        if mine is None or type(value) is not np.ndarray or value.shape != mine.shape or value.dtype != mine.dtype:
            return False
        mine[...] = value
        return True

    def set_tensor(self, tensor: int, value: Any) -> None:
        self._require_input(tensor, "set")
        self._ready()
        array = np.asarray(value)
        position = self.ends.inputs.index(tensor)
        dtype = self.ends.operand(tensor).type.dtype
        if not dtype.is_handle and array.dtype != dtype.numpy:
            raise ArgumentError(
                f"{self.ends.label(tensor)} is given elements of type {array.dtype}, expected {dtype.numpy}"
            )
        if array.shape != self._shapes[tensor]:
            raise ArgumentError(
                f"{self.ends.label(tensor)} is given shape {shapes.text(array.shape)}, "
                f"expected {shapes.text(self._shapes[tensor])}; resize_tensor_input changes it"
            )
        if dtype.is_handle:
            self._place(position, tensor, _strings(array))
        else:
            np.copyto(self._held[tensor], array)

    def invoke(self) -> None:
        if self._allocated != self._shapes:
            self._ready()
        try:
            for execute in self._runs:
                execute()
        except OnertError as error:
            raise RunError(str(error)) from error

    def get_tensor(self, tensor: Any) -> Array:
        found = self._held.get(tensor) if self._sources and isinstance(tensor, int) else None
        return (self.view(tensor) if found is None else found).copy()

    def view(self, tensor: int) -> Array:
        """A tensor itself, not a copy."""
        self.require_tensor(tensor)
        operand = self.ends.operand(tensor)
        if operand.data is not None:
            return operand.data.array
        execution = self._ready()
        if tensor in self._held:
            return self._held[tensor]
        try:
            if tensor in self.ends.outputs:
                return execution.get_output(self.ends.outputs.index(tensor))
            if self._watching is not None and tensor in self._watched:
                return self._watching.get_output(self._watched[tensor])
        except ExecutionError as error:
            raise ArgumentError(str(error)) from error
        raise ArgumentError(
            f"{self.ends.label(tensor)} is not stored; with experimental_preserve_all_tensors=True every tensor is"
        )

    def reset(self) -> None:
        for execution in self._executions:
            execution.reset_variables()

    # ---- descriptions

    def details(self, tensor: int) -> Details:
        """The details of a tensor, with its shape after `allocate_tensors`."""
        shape: tuple[int, ...] | None = self._shapes.get(tensor)
        if shape is None and self._execution is not None and tensor in self.ends.outputs:
            info = self._execution.outputs[self.ends.outputs.index(tensor)]
            shape = shapes.static(info.shape) if shapes.is_static(info.shape) else None
        return operand_details(tensor, self.ends.operand(tensor), shape)

    def require_tensor(self, tensor: int) -> None:
        if not 0 <= tensor < self.ends.count:
            raise ArgumentError(f"there is no tensor {tensor}, expected 0 to {self.ends.count - 1}")

    def _require_input(self, tensor: int, done: str) -> None:
        self.require_tensor(tensor)
        if tensor not in self.ends.inputs:
            raise ArgumentError(f"{self.ends.label(tensor)} is {done}, expected one of inputs {self.ends.inputs}")


def _no_strings(shape: tuple[int, ...]) -> Array:
    out = np.empty(shape, object)
    out[...] = b""
    return out


def _strings(array: Array) -> Array:
    """Strings and bytes as an array of bytes objects."""
    out = np.empty(array.shape, object)
    out.reshape(-1)[:] = [x.encode() if isinstance(x, str) else bytes(x) for x in array.reshape(-1).tolist()]
    return out


def _with_all_outputs(package: Package, index: int, graph: Subgraph) -> tuple[Mapping[int, int], Package]:
    """The position of each output, and the package with all operations' results as additional outputs of a subgraph."""
    made = [o for operation in graph.operations for o in operation.outputs if o not in graph.outputs]
    whole = evolve(graph, outputs=(*graph.outputs, *made))
    model = package.model
    graphs = tuple(whole if i == index else g for i, g in enumerate(model.subgraphs))
    places = {operand: position for position, operand in enumerate(whole.outputs)}
    return places, evolve(package, models=(Subgraphs(graphs, model.signatures, model.description),))
