"""Traverse a TensorFlow graph, or the body of a function, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from onert.flow.builder import Builder
from onert.flow.graph import Graph, Operation, Variable
from onert.ir import Array, ModelError

from .node import Node
from .operations import RULES
from .values import LISTS, Resource, Value, known

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_LOOPS = ("While", "StatelessWhile")
_BRANCHES = ("If", "StatelessIf")
_VARIABLES = ("Variable", "VariableV2")
_MOVES = ("ExpandDims", "Reshape", "Squeeze", "Transpose")
_MOST_ROUNDS = 4096
_DEEPEST = 64
_FOLDED = 4096
"""The most elements of integers and Booleans for constant folding."""


class Unprefixed(Builder):
    """A builder that names operations as TensorFlow does, without the name of the function.

    Unnamed operations are named after the operation `at`, followed by their own type.
    """

    at = ""

    def _prefixed(self, name: str) -> str:
        return name

    def rawop(self, optype: str, name: str | None = None) -> Operation:
        return super().rawop(optype, f"{self.at}/{optype}" if name is None else name)


@frozen(eq=False)
class Extraction:
    """What all graphs of one extraction share: TensorFlow, the flow, a builder for the function, and a function that
    reads the elements of a variable.
    """

    tf: Any
    flow: Graph
    builder: Unprefixed
    read: Callable[[Resource, Any], Array]


@define(eq=False)
class Walk:
    """A graph with the values of its tensors by name; `prefix` is prepended to the names of what it adds."""

    shared: Extraction
    graph: Any
    prefix: str = ""
    depth: int = 0
    values: dict[str, Value] = field(factory=dict)

    def computed(self, outputs: Iterable[Any]) -> list[Value]:
        """The values of tensors; adds the operations that compute them.

        Raises ModelError if they depend on a placeholder without a value, if the rank of a tensor is unknown, or if a
        loop has no known trip count.
        """
        wanted = list(outputs)
        for operation in self._needed(wanted):
            self._add(operation)
        return [self.values[tensor.name] for tensor in wanted]

    def _needed(self, outputs: Sequence[Any]) -> list[Any]:
        """The operations that outputs depend on, in topological order."""
        done: dict[Any, None] = {}
        waiting = [(t.op, False) for t in outputs if t.name not in self.values]
        while waiting:
            operation, is_ready = waiting.pop()
            if operation in done:
                continue
            if is_ready:
                done[operation] = None
                continue
            waiting.append((operation, True))
            if operation.type not in _VARIABLES and not self._is_static(operation):
                waiting += [(t.op, False) for t in operation.inputs if t.name not in self.values]
        return list(done)

    def _is_static(self, operation: Any) -> bool:
        return bool(operation.outputs) and all(self._static(t) is not None for t in operation.outputs)

    def _static(self, tensor: Any) -> Array | None:
        """The elements of a tensor if they are known before the graph runs."""
        if tensor.dtype.base_dtype in (self.shared.tf.resource, self.shared.tf.variant):
            return None
        found = self.shared.tf.get_static_value(tensor)
        return None if found is None else np.asarray(found)

    # ---- operations

    def _add(self, operation: Any) -> None:
        """Add an operation of the graph, or find its results."""
        if all(t.name in self.values for t in operation.outputs):
            return
        for tensor, value in zip(operation.outputs, self._results(operation), strict=True):
            self.values[tensor.name] = value

    def _results(self, operation: Any) -> Sequence[Value]:
        kind = operation.type
        self.shared.builder.at = self._name(operation)
        if self._is_static(operation):
            return [np.asarray(self._static(tensor)) for tensor in operation.outputs]
        if kind in _VARIABLES or kind == "VarHandleOp":
            (handle,) = operation.outputs
            resource = Resource(handle.name, handle)
            return [self._learned(resource, handle) if kind in _VARIABLES else resource]
        if kind.startswith("Placeholder"):
            name = f"{self.prefix}{operation.name}"
            raise ModelError(f"the outputs depend on '{name}', a placeholder that is not an input")
        given = [self.values[t.name] for t in operation.inputs]
        if kind == "ReadVariableOp":
            return [self._read(given[0], operation.outputs[0])]
        if kind == "Identity" and not isinstance(given[0], Variable):
            return given
        if kind in _CALLS:
            return self._called(operation, "f", given, self._name(operation))
        if kind in _LOOPS:
            return self._looped(operation, given)
        if kind in _BRANCHES:
            chosen = bool(known(given[0], f"the condition of '{self._name(operation)}'"))
            return self._called(operation, "then_branch" if chosen else "else_branch", given[1:], self._name(operation))
        if kind in LISTS:
            builder, name = self.shared.builder, self._name(operation)
            before = len(self._operations)
            found = LISTS[kind](builder, name, given, self._as_variable)
            self._register(before)
            return [found]
        folded = self._folded(operation, given)
        return self._translated(operation, given) if folded is None else folded

    def _name(self, operation: Any) -> str:
        return f"{self.prefix}{operation.name}"

    def _called(self, operation: Any, attribute: str, given: Sequence[Value], prefix: str) -> list[Value]:
        """The results of the function that an attribute names."""
        if self.depth >= _DEEPEST:
            raise ModelError(f"'{prefix}' calls functions more than {_DEEPEST} deep")
        body = self.graph._get_function(operation.get_attr(attribute).name).graph
        inside = Walk(self.shared, body, f"{prefix}/", self.depth + 1)
        inside.values.update((t.name, value) for t, value in zip(body.inputs, given, strict=True))
        return inside.computed(body.outputs)

    def _looped(self, operation: Any, given: Sequence[Value]) -> list[Value]:
        """The results of a loop, unrolled; its condition must be known."""
        found, name = list(given), self._name(operation)
        for round_ in range(_MOST_ROUNDS):
            (more,) = self._called(operation, "cond", found, f"{name}/{round_}/cond")
            if not known(more, f"the condition of '{name}'"):
                return found
            found = self._called(operation, "body", found, f"{name}/{round_}")
        raise ModelError(f"'{name}' takes more than {_MOST_ROUNDS} rounds")

    def _folded(self, operation: Any, given: Sequence[Value]) -> Sequence[Value] | None:
        """Constant-fold an operation on small integer operands, or one that moves the elements of a constant; None for
        any other.
        """
        arrays = [_elements(value) for value in given]
        known_ones = [array for array in arrays if array is not None]
        if not operation.outputs or len(known_ones) != len(arrays):
            return None
        small = all(array.dtype.kind in "iub" and array.size <= _FOLDED for array in known_ones)
        whole = all(t.dtype.base_dtype.is_integer or t.dtype.base_dtype.is_bool for t in operation.outputs)
        if operation.type not in _MOVES and not (small and whole):
            return None
        tf = self.shared.tf
        with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
            made = graph.create_op(
                operation.type,
                [tf.constant(array) for array in known_ones],
                [t.dtype.base_dtype for t in operation.outputs],
                attrs=dict(operation.node_def.attr),
            )
            return [np.asarray(array) for array in session.run(list(made.outputs))]

    def _translated(self, operation: Any, given: Sequence[Value]) -> Sequence[Value]:
        """Add the operation as one of flows, or with TensorFlow's own type if flows have none."""
        name, builder = self._name(operation), self.shared.builder
        if operation.type == "ResourceGather":
            table = self._read(given[0], operation.outputs[0])
            given = [table, given[1], np.array(0, np.int32)]
        names = [t.name for t in operation.inputs] + ["axis:0"]
        inputs = [self._as_variable(value, f"{self.prefix}{n}") for value, n in zip(given, names, strict=False)]
        attributes = {n: operation.get_attr(n) for n in operation.node_def.attr}
        kind = "GatherV2" if operation.type == "ResourceGather" else operation.type
        node = Node(kind, name, inputs, attributes, [shape_of(t) for t in operation.outputs])
        before, rule = len(self._operations), RULES.get(kind)
        found = None if rule is None else rule(builder, node)
        if found is None:
            found = self._as_it_is(node, operation)
        results = found if isinstance(found, tuple) else (found,)
        self._register(before)
        for tensor, variable in zip(operation.outputs, results, strict=True):
            if variable.producer is not None:
                variable.type, variable.shape = tensor.dtype.base_dtype.name, self._settled(tensor, variable)
        return list(results)

    def _settled(self, tensor: Any, variable: Variable) -> list[int]:
        """The declared shape, with sizes that are only known here, after the unrolling of loops."""
        declared = shape_of(tensor)
        if len(declared) != variable.rank():
            return declared
        return [here if size == -1 else size for size, here in zip(declared, variable.shape, strict=True)]

    def _as_it_is(self, node: Node, operation: Any) -> tuple[Variable, ...]:
        """An operation with TensorFlow's own type, and its attributes as text."""
        builder = self.shared.builder
        added = builder.rawop(node.type, node.name)
        for variable in node.inputs:
            added.add_input(variable)
        for name, value in node.attributes.items():
            if not name.startswith("_"):
                added.add_attr(name, text_of(value))
        return tuple(
            builder.result(added, tensor.dtype.base_dtype.name, shape, number)
            for number, (tensor, shape) in enumerate(zip(operation.outputs, node.shapes, strict=True))
        )

    # ---- variables

    @property
    def _operations(self) -> list[Operation]:
        function = self.shared.builder.func
        assert function is not None
        return function.ops

    def _as_variable(self, value: Value, name: str) -> Variable:
        """The variable for a tensor; a constant is added to the flow once an operation reads it."""
        if isinstance(value, Variable):
            return value
        if not isinstance(value, np.ndarray):
            raise ModelError(f"'{name}' is not a tensor, but is an operand")
        present = self.shared.flow.vars.get(name)
        if present is not None and present.data is value:
            return present
        made = Variable(name if present is None else self.shared.builder.varname(name))
        made.type, made.shape, made.data = value.dtype.name, list(value.shape), value
        return made

    def _register(self, before: int) -> None:
        """Add to the flow the constants that operations read, starting at operation number `before`."""
        for operation in self._operations[before:]:
            for variable in operation.inputs:
                self.shared.flow.vars.setdefault(variable.name, variable)

    def _read(self, value: Value, tensor: Any) -> Variable:
        """The constant for a variable given by its handle."""
        if not isinstance(value, Resource):
            raise ModelError(f"'{self.prefix}{tensor.op.name}' reads a variable that is chosen when the graph runs")
        return self._learned(value, tensor)

    def _learned(self, resource: Resource, tensor: Any) -> Variable:
        """A TensorFlow variable as a constant with its current elements, named after the variable."""
        present = self.shared.flow.vars.get(resource.name)
        if present is None:
            data = np.asarray(self.shared.read(resource, tensor.dtype.base_dtype))
            present = self.shared.flow.var(resource.name, tensor.dtype.base_dtype.name, data.shape)
            present.data = data
        alias = f"{self.prefix}{tensor.name}"
        if not self.prefix and alias not in (present.name, *present.aliases):
            present.aliases.append(alias)
        return present

    def variable(self, tensor: Any) -> Variable:
        """The variable for an output of the graph."""
        value = self.values[tensor.name]
        if isinstance(value, np.ndarray):
            variable = self._as_variable(value, tensor.name)
            self.shared.flow.vars.setdefault(variable.name, variable)
            return variable
        if not isinstance(value, Variable):
            raise ModelError(f"'{tensor.name}' is not a tensor and cannot be an output")
        if tensor.name not in self.shared.flow.vars and tensor.name not in value.aliases:
            value.aliases.append(tensor.name)
        return value


def _elements(value: Value) -> Array | None:
    """The elements of a constant; None if they are computed."""
    if isinstance(value, Variable):
        return None if value.data is None else np.asarray(value.data)
    return value if isinstance(value, np.ndarray) else None


def shape_of(tensor: Any) -> list[int]:
    """The sizes of a tensor's dimensions, -1 for unknown ones. Raises ModelError if the rank is unknown.

    With TensorFlow's version 1 behaviour, sizes are objects, but `as_list` contains numbers in both versions.
    """
    if tensor.shape.rank is None:
        raise ModelError(f"'{tensor.name}' has unknown rank")
    return [-1 if size is None else int(size) for size in tensor.shape.as_list()]


def text_of(value: Any) -> str:
    """The value of an attribute: lists as `a,b`, shapes as `2x3`, element types by name."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list | tuple):
        return ",".join(map(text_of, value))
    if hasattr(value, "as_numpy_dtype"):
        return str(value.name)
    if hasattr(value, "dim"):
        return "x".join(str(d.size) for d in value.dim)
    return str(value)
