"""`Interpreter`: the interface of LiteRT's interpreter, implemented by onert.

Source: the public methods of `ai_edge_litert.interpreter.Interpreter` 2.x and their documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from attrs import evolve

from onert import compiler
from onert.backend.registry import load_backends
from onert.compiler import Options
from onert.exec import Execution
from onert.ir import Array, ExecutionError, OnertError, Package, Signature, Subgraph, Subgraphs
from onert.ir import shape as shapes

from .api import load
from .details import Details, operand_details, tensor_indices
from .errors import ArgumentError, RunError


class Interpreter:
    """Runs a TFLite or circle model. Tensors are identified by their numbers in the file.

        interpreter = onert.Interpreter("model.tflite")
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
        interpreter.invoke()
        scores = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    Arguments are LiteRT's. `num_threads` defaults to 1. Delegates and the choice of a resolver are accepted and have no
    effect: onert chooses its own kernels. With `experimental_preserve_all_tensors` the model is also run without any
    optimisation, so that every tensor can be read; results remain those of the optimised run.

    Wrong arguments and models raise a ValueError, failures of `allocate_tensors` and `invoke` a RuntimeError; both are
    `onert.OnertError` too.
    """

    def __init__(
        self,
        model_path: str | PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: Any = None,
        experimental_preserve_all_tensors: bool = False,
        **experimental: Any,
    ) -> None:
        unknown = [name for name in experimental if not name.startswith("experimental_")]
        if unknown:
            raise TypeError(f"Interpreter has no argument {unknown[0]!r}")
        self._threads = _thread_count(num_threads)
        if (model_path is None) is (model_content is None):
            raise ArgumentError("expected one of model_path and model_content")
        try:
            self._package = load(_source(model_path, model_content))
        except OnertError as error:
            raise ArgumentError(str(error)) from error
        self._preserve = experimental_preserve_all_tensors
        self._state: dict[Any, Any] = {}
        self._main = _Runner(self, None)
        self._runners: dict[str, _Runner] = {}

    # ---- tensors of the primary subgraph

    def allocate_tensors(self) -> None:
        """Compile for the current input shapes, and allocate memory."""
        self._main.allocate()

    def get_input_details(self) -> list[Details]:
        """The details of the inputs, in the model's order."""
        return [self._main.details(i) for i in self._main.graph.inputs]

    def get_output_details(self) -> list[Details]:
        """The details of the outputs, in the model's order."""
        return [self._main.details(i) for i in self._main.graph.outputs]

    def get_tensor_details(self) -> list[Details]:
        """The details of every tensor of the primary subgraph."""
        return [self._main.details(i) for i in tensor_indices(self._main.graph)]

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Change the shape of an input; takes effect at the next `allocate_tensors`. With `strict`, only dimensions
        that the model leaves open may change."""
        self._main.resize(input_index, tensor_size, strict=strict)

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy `value` into an input."""
        if not self._main.copied(tensor_index, value):
            self._main.set_tensor(tensor_index, value)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        """A copy of an input, an output or a constant; with `experimental_preserve_all_tensors`, of any tensor."""
        if subgraph_index != 0:
            raise ArgumentError(f"subgraph_index is {subgraph_index}, expected 0; other subgraphs cannot be read")
        return self._main.get_tensor(tensor_index)

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """A function that returns the tensor itself, not a copy: `interpreter.tensor(i)()[...] = x` writes to it."""
        self._main.require_tensor(tensor_index)
        return partial(self._main.view, tensor_index)

    def invoke(self) -> None:
        """Run the model once."""
        self._main.invoke()

    def reset_all_variables(self) -> None:
        """Reset all state to its initial values."""
        self._state.clear()
        for runner in (self._main, *self._runners.values()):
            runner.reset()

    # ---- signatures

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs of every signature."""
        return {
            key: {"inputs": [t.name for t in s.inputs], "outputs": [t.name for t in s.outputs]}
            for key, s in self._package.signatures.items()
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A function that runs a signature on inputs given by name. The key may be omitted if there is only one."""
        keys = list(self._package.signatures)
        if signature_key is None:
            if len(keys) != 1:
                raise ArgumentError(f"the model has {len(keys)} signatures, expected a signature_key")
            signature_key = keys[0]
        if signature_key not in keys:
            raise ArgumentError(f"there is no signature {signature_key!r}, expected one of {', '.join(keys) or 'none'}")
        if signature_key not in self._runners:
            self._runners[signature_key] = _Runner(self, self._package.signatures[signature_key])
        return SignatureRunner(self._runners[signature_key], self._package.signatures[signature_key])


class SignatureRunner:
    """Runs one signature: `runner(x=array)` returns a dictionary of outputs by name."""

    def __init__(self, runner: _Runner, signature: Signature) -> None:
        self._runner = runner
        self._inputs = {t.name: t.operand for t in signature.inputs}
        self._outputs = {t.name: t.operand for t in signature.outputs}

    def __call__(self, **inputs: Any) -> dict[str, Array]:
        if inputs.keys() != self._inputs.keys():
            raise ArgumentError(
                f"the signature is given {', '.join(sorted(inputs)) or 'nothing'}, "
                f"expected {', '.join(sorted(self._inputs)) or 'nothing'}"
            )
        for name, value in inputs.items():
            self._runner.resize(self._inputs[name], np.shape(value), strict=False)
        self._runner.allocate()
        for name, value in inputs.items():
            self._runner.set_tensor(self._inputs[name], value)
        self._runner.invoke()
        return {name: self._runner.get_tensor(operand) for name, operand in self._outputs.items()}

    def get_input_details(self) -> dict[str, Details]:
        """The details of each input by name."""
        return {name: self._runner.details(operand) for name, operand in self._inputs.items()}

    def get_output_details(self) -> dict[str, Details]:
        """The details of each output by name."""
        return {name: self._runner.details(operand) for name, operand in self._outputs.items()}


class _Runner:
    """One entry of the model (the primary subgraph or a signature), with its shapes and its execution."""

    def __init__(self, owner: Interpreter, signature: Signature | None) -> None:
        self._owner = owner
        self._key = None if signature is None else signature.key
        self.graph: Subgraph = owner._package.model[0 if signature is None else signature.subgraph]
        self._index = 0 if signature is None else signature.subgraph
        self._shapes: dict[int, tuple[int, ...]] = {
            i: tuple(1 if d is None else d for d in self.graph.type(i).shape) for i in self.graph.inputs
        }
        ends = (*self.graph.inputs, *self.graph.outputs)
        self._strings = frozenset(i for i in ends if self.graph.type(i).dtype.is_handle)
        self._allocated: dict[int, tuple[int, ...]] | None = None
        self._execution: Execution | None = None
        self._runs: tuple[Callable[[], None], ...] = ()
        self._watching: Execution | None = None
        self._watched: Mapping[int, int] = {}
        self._whole = owner._package
        if owner._preserve:
            self._watched, self._whole = _with_all_outputs(owner._package, self._index, self.graph)
        self._held: dict[int, Array] = {}
        self._sources: dict[int, Array] = {}
        """The memory of inputs that are copied to it; none while shapes are to change."""

    # ---- preparation

    def resize(self, tensor: int, shape: Sequence[int], *, strict: bool) -> None:
        self._require_input(tensor, "resized")
        wanted = tuple(int(d) for d in shape)
        declared = self.graph.operands[tensor].signature_shape or self.graph.type(tensor).shape
        if strict and not shapes.compatible(wanted, declared):
            raise ArgumentError(f"{self.graph.label(tensor)} is given shape {shapes.text(wanted)}, expected {declared}")
        if any(d < 0 for d in wanted):
            raise ArgumentError(f"{self.graph.label(tensor)} is given shape {shapes.text(wanted)}, a size is negative")
        if wanted != self._shapes[tensor]:
            self._sources = {}
            self._shapes[tensor] = wanted

    def allocate(self) -> None:
        if self._allocated == self._shapes:
            return
        owner = self._owner
        self._allocated = None  # until everything is allocated, even if a signal handler raises
        try:
            self._execution = self._fitted(self._execution, owner._package, optimize=True)
            if owner._preserve:
                self._watching = self._fitted(self._watching, self._whole, optimize=False)
        except OnertError as error:
            raise RunError(str(error)) from error
        self._hold(self._execution)
        self._runs = tuple(each.execute for each in self._executions)
        self._allocated = dict(self._shapes)
        self._sources = {i: self._held[i] for i in self.graph.inputs if i not in self._strings}

    def _fitted(self, execution: Execution | None, package: Package, *, optimize: bool) -> Execution:
        """The execution for the current input shapes: the previous one, if there is one."""
        given: dict[int | str, tuple[int, ...]] = {at: self._shapes[i] for at, i in enumerate(self.graph.inputs)}
        if execution is not None:
            execution.set_input_shapes(given)
            return execution
        options = Options(num_threads=self._owner._threads, optimize=optimize, signature=self._key, input_shapes=given)
        backends = load_backends(options.with_config(package.config).backends)
        program = compiler.compile(package, options, backends)
        return Execution(program, self._owner._state if optimize else None)

    def _hold(self, execution: Execution) -> None:
        """Set inputs and outputs to arrays of zeros that `tensor` can return, in the execution's own memory."""
        self._held = {}
        for position, tensor in enumerate(self.graph.inputs):
            if tensor in self._strings:
                self._place(position, tensor, _no_strings(self._shapes[tensor]))
                continue
            self._held[tensor] = own = execution.input_buffer(position)
            own.fill(0)
            if self._watching is not None:
                self._watching.set_input(position, own)
        for position, tensor in enumerate(self.graph.outputs):
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
        position = self.graph.inputs.index(tensor)
        dtype = self.graph.type(tensor).dtype
        if not dtype.is_handle and array.dtype != dtype.numpy:
            raise ArgumentError(
                f"{self.graph.label(tensor)} is given elements of type {array.dtype}, expected {dtype.numpy}"
            )
        if array.shape != self._shapes[tensor]:
            raise ArgumentError(
                f"{self.graph.label(tensor)} is given shape {shapes.text(array.shape)}, "
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
        operand = self.graph.operands[tensor]
        if operand.data is not None:
            return operand.data.array
        execution = self._ready()
        if tensor in self._held:
            return self._held[tensor]
        try:
            if tensor in self.graph.outputs:
                return execution.get_output(self.graph.outputs.index(tensor))
            if self._watching is not None and tensor in self._watched:
                return self._watching.get_output(self._watched[tensor])
        except ExecutionError as error:
            raise ArgumentError(str(error)) from error
        raise ArgumentError(
            f"{self.graph.label(tensor)} is not stored; with experimental_preserve_all_tensors=True every tensor is"
        )

    def reset(self) -> None:
        for execution in self._executions:
            execution.reset_variables()

    # ---- descriptions

    def details(self, tensor: int) -> Details:
        """The details of a tensor, with its shape after `allocate_tensors`."""
        shape: tuple[int, ...] | None = self._shapes.get(tensor)
        if shape is None and self._execution is not None and tensor in self.graph.outputs:
            info = self._execution.outputs[self.graph.outputs.index(tensor)]
            shape = shapes.static(info.shape) if shapes.is_static(info.shape) else None
        return operand_details(tensor, self.graph.operands[tensor], shape)

    def require_tensor(self, tensor: int) -> None:
        if not 0 <= tensor < len(self.graph.operands):
            raise ArgumentError(f"there is no tensor {tensor}, expected 0 to {len(self.graph.operands) - 1}")

    def _require_input(self, tensor: int, done: str) -> None:
        self.require_tensor(tensor)
        if tensor not in self.graph.inputs:
            raise ArgumentError(f"{self.graph.label(tensor)} is {done}, expected one of inputs {self.graph.inputs}")


def _source(path: object, content: object) -> Any:
    """The model to load. Raises ArgumentError if `path` is not a path, or `content` not bytes."""
    if content is None:
        if not isinstance(path, str | PathLike):
            raise ArgumentError(f"model_path is a {type(path).__name__}, expected a path")
        return path
    if not isinstance(content, bytes | bytearray | memoryview):
        raise ArgumentError(f"model_content is a {type(content).__name__}, expected bytes")
    return content


def _thread_count(given: object) -> int:
    """The number of threads; 1 by default, as in LiteRT."""
    if given is None:
        return 1
    if not isinstance(given, int) or given < 1:
        raise ArgumentError(f"num_threads is {given!r}, expected an integer of at least 1")
    return given


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
