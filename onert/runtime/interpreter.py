"""`Interpreter`: the interface of LiteRT's interpreter, implemented by onert.

Source: the public methods of `ai_edge_litert.interpreter.Interpreter` 2.x and their documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from onert.compiler.program_cache.interfaces import Interface
from onert.ir import Array, OnertError, Signature

from .api import load
from .details import Details, tensor_indices
from .errors import ArgumentError
from .runner import Model, Runner


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
        threads = _thread_count(num_threads)
        if (model_path is None) is (model_content is None):
            raise ArgumentError("expected one of model_path and model_content")
        try:
            package = load(_source(model_path, model_content))
            self._model = Model(package, Interface(package), threads, bool(experimental_preserve_all_tensors), {})
        except OnertError as error:
            raise ArgumentError(str(error)) from error
        self._main = Runner(self._model)
        self._runners: dict[str, Runner] = {}

    # ---- tensors of the primary subgraph

    def allocate_tensors(self) -> None:
        """Compile for the current input shapes, and allocate memory."""
        self._main.allocate()

    def get_input_details(self) -> list[Details]:
        """The details of the inputs, in the model's order."""
        return [self._main.details(i) for i in self._main.ends.inputs]

    def get_output_details(self) -> list[Details]:
        """The details of the outputs, in the model's order."""
        return [self._main.details(i) for i in self._main.ends.outputs]

    def get_tensor_details(self) -> list[Details]:
        """The details of every tensor of the primary subgraph."""
        return [self._main.details(i) for i in tensor_indices(self._main.ends.graph)]

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
        self._model.state.clear()
        for runner in (self._main, *self._runners.values()):
            runner.reset()

    # ---- signatures

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs of every signature."""
        return {
            key: {"inputs": [t.name for t in s.inputs], "outputs": [t.name for t in s.outputs]}
            for key, s in self._model.interface.signatures.items()
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A function that runs a signature on inputs given by name. The key may be omitted if there is only one."""
        keys = list(self._model.interface.signatures)
        if signature_key is None:
            if len(keys) != 1:
                raise ArgumentError(f"the model has {len(keys)} signatures, expected a signature_key")
            signature_key = keys[0]
        if signature_key not in keys:
            raise ArgumentError(f"there is no signature {signature_key!r}, expected one of {', '.join(keys) or 'none'}")
        if signature_key not in self._runners:
            self._runners[signature_key] = Runner(self._model, signature_key)
        return SignatureRunner(self._runners[signature_key], self._model.interface.signatures[signature_key])


class SignatureRunner:
    """Runs one signature: `runner(x=array)` returns a dictionary of outputs by name."""

    def __init__(self, runner: Runner, signature: Signature) -> None:
        self._runner = runner
        self._inputs = {t.name: t.operand for t in signature.inputs}
        self._outputs = {t.name: t.operand for t in signature.outputs}

    def __call__(self, **inputs: Any) -> dict[str, Array]:
        if inputs.keys() != self._inputs.keys():
            raise ArgumentError(
                f"the signature is given {', '.join(sorted(inputs)) or 'nothing'}, "
                f"expected {', '.join(sorted(self._inputs)) or 'nothing'}"
            )
        runner, operands = self._runner, self._inputs
        if not inputs or not all(runner.copied(operands[name], value) for name, value in inputs.items()):
            for name, value in inputs.items():
                runner.resize(operands[name], np.shape(value), strict=False)
            runner.allocate()
            for name, value in inputs.items():
                runner.set_tensor(operands[name], value)
        runner.invoke()
        return {name: runner.get_tensor(operand) for name, operand in self._outputs.items()}

    def get_input_details(self) -> dict[str, Details]:
        """The details of each input by name."""
        return {name: self._runner.details(operand) for name, operand in self._inputs.items()}

    def get_output_details(self) -> dict[str, Details]:
        """The details of each output by name."""
        return {name: self._runner.details(operand) for name, operand in self._outputs.items()}


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
