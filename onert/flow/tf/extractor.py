"""The part of a graph of TensorFlow that computes some tensors from others, as a function of a flow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from onert.flow.builder import Builder
from onert.flow.graph import Function, Graph, Variable
from onert.ir import Array, ModelError

from .operations import RULES, Node

_VARIABLES = ("Variable", "VariableV2")
_READS = ("ReadVariableOp", "ResourceGather")


class _Unprefixed(Builder):
    """A builder that calls operations as TensorFlow does, without the name of the function."""

    def _prefixed(self, name: str) -> str:
        return name


class Extractor:
    """Adds functions to a flow from a session's graph, or from a concrete function of TensorFlow.

    Variables have the names of TensorFlow's tensors, such as `y:0`. Operations are those of flows where there are such;
    others keep their type and attributes, for kernels of a user's own. What is known before the graph runs, weights
    included, becomes constant. A size that is not known is -1.
    """

    def __init__(self, sess: Any, flow: Graph) -> None:
        import tensorflow  # noqa: PLC0415 (heavy and optional)

        self._tf = tensorflow
        self._flow = flow
        self._session = sess if hasattr(sess, "run") else None
        self._graph = sess.graph
        self._captured: dict[str, Any] = {}
        if self._session is None:
            captured = list(sess.captured_inputs)
            stand_in = self._graph.inputs[len(self._graph.inputs) - len(captured) :]
            self._captured = {t.name: value for t, value in zip(stand_in, captured, strict=True)}
            self._given = [t for t in sess.inputs if t.name not in self._captured]
            self._results = list(sess.outputs)

    def add(self, func: Function, inputs: Sequence[Any] = (), outputs: Sequence[Any] = ()) -> None:
        """Add what computes `outputs` from `inputs` to a function; a concrete function's own where none are given.

        ModelError where an output depends on a tensor that is to be fed and is no input, or where the rank of a tensor
        is not known.
        """
        if self._session is None:
            inputs, outputs = inputs or self._given, outputs or self._results
        builder = _Unprefixed(self._flow, func)
        made: dict[str, Variable] = {}
        for tensor in inputs:
            variable = self._variable(builder, tensor)
            variable.input = True
            made[tensor.name] = variable
        for operation in self._needed(outputs, set(made)):
            self._add(builder, operation, made)
        for tensor in outputs:
            made[tensor.name].output = True

    def _needed(self, outputs: Iterable[Any], known: set[str]) -> list[Any]:
        """The operations that outputs depend on, each behind those that it depends on."""
        done: dict[Any, None] = {}
        waiting = [(t.op, False) for t in outputs if t.name not in known]
        while waiting:
            operation, is_ready = waiting.pop()
            if operation in done:
                continue
            if is_ready:
                done[operation] = None
                continue
            waiting.append((operation, True))
            if operation.type not in (*_VARIABLES, *_READS) and not self._is_known(operation):
                waiting += [(t.op, False) for t in operation.inputs if t.name not in known]
        return list(done)

    def _is_known(self, operation: Any) -> bool:
        return bool(operation.outputs) and all(self._static(t) is not None for t in operation.outputs)

    def _static(self, tensor: Any) -> Array | None:
        """The elements of a tensor if they are known before the graph runs."""
        if tensor.dtype.base_dtype in (self._tf.resource, self._tf.variant):
            return None
        return self._tf.get_static_value(tensor)  # type: ignore[no-any-return]

    def _variable(self, f: Builder, tensor: Any, data: Array | None = None) -> Variable:
        """A new variable for a tensor that no operation of the flow computes."""
        if tensor.name in self._flow.vars:
            return self._flow.vars[tensor.name]
        variable = self._flow.var(tensor.name, tensor.dtype.base_dtype.name, _shape(tensor))
        variable.data = None if data is None else np.asarray(data)
        if data is not None:
            variable.shape = list(np.shape(data))
        return variable

    def _add(self, f: Builder, operation: Any, made: dict[str, Variable]) -> None:
        """Add an operation of the graph, or the constants that it gives."""
        if all(t.name in made for t in operation.outputs):
            return
        if operation.type in _VARIABLES or operation.type == "ReadVariableOp":
            source = operation.inputs[0] if operation.inputs else operation.outputs[0]
            made[operation.outputs[0].name] = self._learned(f, operation, source)
            return
        if self._is_known(operation):
            for tensor in operation.outputs:
                made[tensor.name] = self._variable(f, tensor, self._static(tensor))
            return
        if operation.outputs and operation.outputs[0].name in self._captured:
            tensor = operation.outputs[0]
            made[tensor.name] = self._variable(f, tensor, self._captured[tensor.name].numpy())
            return
        if operation.type.startswith("Placeholder"):
            raise ModelError(f"the outputs depend on '{operation.name}', which is to be fed and is no input")
        given = [made[t.name] for t in operation.inputs]
        attributes = {name: operation.get_attr(name) for name in operation.node_def.attr}
        node = Node(operation.type, operation.name, given, attributes, [_shape(t) for t in operation.outputs])
        rule = RULES.get(operation.type)
        found = None if rule is None else rule(f, node)
        if found is None:
            found = self._as_it_is(f, operation, node)
        results = found if isinstance(found, tuple) else (found,)
        for tensor, variable in zip(operation.outputs, results, strict=True):
            variable.type, variable.shape = tensor.dtype.base_dtype.name, _shape(tensor)
            made[tensor.name] = variable

    def _learned(self, f: Builder, operation: Any, source: Any) -> Variable:
        """A variable of TensorFlow as a constant of its present elements, by the name of the variable."""
        (result,) = operation.outputs
        if source.name in self._flow.vars:
            return self._flow.vars[source.name]
        if self._session is not None:
            data = self._session.run(result)
        else:
            data = self._tf.raw_ops.ReadVariableOp(resource=self._captured[source.name], dtype=result.dtype).numpy()
        variable = self._flow.var(source.name, result.dtype.base_dtype.name, np.shape(data))
        variable.data = np.asarray(data)
        if result.name != source.name:
            variable.aliases.append(result.name)
        return variable

    def _as_it_is(self, f: Builder, operation: Any, node: Node) -> tuple[Variable, ...]:
        """An operation of TensorFlow's own type, with its attributes as text."""
        added = f.rawop(node.type, node.name)
        for variable in node.inputs:
            added.add_input(variable)
        for name, value in node.attributes.items():
            if not name.startswith("_"):
                added.add_attr(name, _text(value))
        return tuple(
            f.result(added, tensor.dtype.base_dtype.name, shape, number)
            for number, (tensor, shape) in enumerate(zip(operation.outputs, node.shapes, strict=True))
        )


def _shape(tensor: Any) -> list[int]:
    """The sizes of a tensor's dimensions, -1 for those that are not known."""
    if tensor.shape.rank is None:
        raise ModelError(f"the rank of '{tensor.name}' is not known")
    return [-1 if size is None else int(size) for size in tensor.shape]


def _text(value: Any) -> str:
    """The value of an attribute: lists as `a,b`, shapes as `2x3`, element types by name."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    if hasattr(value, "as_numpy_dtype"):
        return str(value.name)
    if hasattr(value, "dim"):
        return "x".join(str(d.size) for d in value.dim)
    return str(value)
