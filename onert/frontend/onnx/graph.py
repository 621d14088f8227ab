"""Imports graphs: names, nodes in execution order, and nested graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, evolve, field, frozen

from onert.ir import Array, DType, ModelError, RuleError, Subgraph, TensorType
from onert.ir.errors import MISHAPS
from onert.ir.process.budget import Budget

from . import messages
from .branching import BranchBuilder, add_if
from .draft import Draft, capture
from .elements import Storage
from .messages import Attribute, Function, Graph, SparseTensor, Tensor, ValueType
from .node import (
    Branch,
    EnclosingGraph,
    Fork,
    Node,
    Optional_,
    Results,
    RuntimeValue,
    Sequence_,
    Splice,
    Value,
    execution_order,
)
from .table import importer


@define(eq=False)
class Context:
    """What all graphs of a model share: opsets, functions, constant storage, and the subgraphs built so far."""

    opsets: Mapping[str, int]
    functions: Mapping[tuple[str, str, str], Function]
    storage: Storage
    steps: Budget
    subgraphs: list[Subgraph | None] = field(factory=lambda: [None])
    notes: list[str] = field(factory=list)

    def version(self, domain: str) -> int:
        return self.opsets.get(domain, 1)


@frozen(eq=False)
class Scope:
    """The names of one graph, and the import of its nodes into a draft."""

    context: Context
    draft: Draft
    outer: Scope | None = None
    attributes: Mapping[str, Attribute] = field(factory=dict)
    """Attribute values passed to the function whose body this is."""
    types: Mapping[str, ValueType] = field(factory=dict)
    names: dict[str, Value | None] = field(factory=dict)
    """The value of each name; None for a function input that the caller omits."""

    def find(self, name: str) -> Value:
        """The value of a name, in this scope or an enclosing one. Raises ModelError if there is none."""
        value = self._lookup(name)
        if value is None:
            raise ModelError(f"'{name}' is read, but the function's caller omits it")
        return value

    def _lookup(self, name: str) -> Value | None:
        """Like `find`, but returns None for an input that a function's caller omits."""
        scope: Scope | None = self
        crossed: list[Scope] = []
        while scope is not None and name not in scope.names:
            crossed.append(scope)
            scope = scope.outer
        if scope is None:
            raise ModelError(f"'{name}' is read, but nothing before it defines it")
        value = scope.names[name]
        for inner in reversed(crossed):
            if value is not None and inner.draft is not scope.draft:
                value = _capture_value(scope.draft, inner.draft, value)
            scope = inner
        return value

    def bind(self, name: str, value: Value) -> None:
        """Define a name. Raises ModelError if it is already defined."""
        if name in self.names:
            raise ModelError(f"'{name}' is defined twice")
        self.names[name] = value
        if isinstance(value, int | RuntimeValue):
            self.draft.name_operand(value if isinstance(value, int) else value.operand, name)

    def read_initializers(self, graph: Graph) -> None:
        for tensor in graph.initializers:
            array, dtype = self.context.storage.initializer(tensor)
            self.bind(tensor.name, self.draft.constant(array, dtype, tensor.name))
        for sparse in graph.sparse:
            array, dtype = self.context.storage.dense(sparse)
            self.bind(sparse.values.name, self.draft.constant(array, dtype, sparse.values.name))

    def read_nodes(self, nodes: Sequence[messages.Node], outputs: Sequence[str]) -> tuple[Value, ...]:
        """Import the nodes, and return the values of the named outputs."""
        return self._read_located(self._located(nodes), outputs)

    def _located(self, nodes: Sequence[messages.Node], before: str = "") -> list[LocatedNode]:
        """The nodes in execution order, each with its place in the file."""
        return [
            (f"{before}node {at} {_label(nodes[at])}", nodes[at]) for at in execution_order(nodes, self.context.steps)
        ]

    def _read_located(self, nodes: Sequence[LocatedNode], outputs: Sequence[str]) -> tuple[Value, ...]:
        """Like `read_nodes`, for nodes with their names in errors."""
        for at, (place, node) in enumerate(nodes):
            before = self.draft.place
            self.draft.place = place if not before else f"{before}, {place}"
            try:
                found = self._read(node)
            except (ModelError, RuleError) as error:
                raise ModelError(f"{place}: {error}") from error
            finally:
                self.draft.place = before
            if isinstance(found, Fork):
                try:
                    return self._fork(found, node, nodes[at + 1 :], outputs)
                except (ModelError, RuleError) as error:
                    raise ModelError(f"{place}: {error}") from error
            if isinstance(found, Splice):
                return self._splice(found.graph, (place, node), nodes[at + 1 :], outputs)
        return tuple(self.find(name) for name in outputs)

    def _fork(
        self, fork: Fork, node: messages.Node, rest: Sequence[LocatedNode], outputs: Sequence[str]
    ) -> tuple[Value, ...]:
        """Branches that each include all following nodes, because within one branch the ranks are known."""

        def builder(branch: Graph | Branch) -> BranchBuilder:
            def build(scope: EnclosingGraph) -> tuple[Value, ...]:
                assert isinstance(scope, Scope)
                made = scope.inline(branch, ()) if isinstance(branch, Graph) else branch(scope.draft)
                if isinstance(made, Fork):
                    return scope._fork(made, node, rest, outputs)
                for name, value in zip(node.outputs, made, strict=True):
                    if name:
                        scope.bind(name, value)
                return scope._read_located(rest, outputs)

            return build

        return add_if(self.draft, self, fork.condition, [builder(branch) for branch in fork.branches])

    def _splice(
        self, graph: Graph, placed: LocatedNode, rest: Sequence[LocatedNode], outputs: Sequence[str]
    ) -> tuple[Value, ...]:
        """Import a graph in place of a node, and the nodes after it, in one scope."""
        place, node = placed
        scope = Scope(self.context, self.draft, self, self.attributes, {**self.types, **graph.values})
        mine = [*graph.nodes]
        for declared, name in zip(graph.outputs, node.outputs, strict=True):
            if name:
                mine.append(messages.Node("Identity", "", "", (declared.name,), (name,), {}))
        scope.read_initializers(graph)
        return scope._read_located([*self._located(mine, f"{place}: "), *rest], outputs)

    def _read(self, node: messages.Node) -> Fork | Splice | None:
        """Add a node's operations. An If whose branches must include what follows is returned instead."""
        self.context.steps.spend(10, "reading its nodes")
        inputs = tuple(self._lookup(name) if name else None for name in node.inputs)
        attributes = {a.name: a for a in map(self._resolve, node.attributes.values()) if a is not None}
        function = self.context.functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            results: Sequence[Value | None] = self._call(function, inputs, attributes)
        else:
            version = self.context.version(node.domain)
            seen = Node(node.op_type, node.domain, version, inputs, node.outputs, attributes, self.draft, self)
            given = _import(seen)
            if isinstance(given, Fork | Splice):
                return given
            results = given if isinstance(given, tuple) else (given,)
        for index, name in enumerate(node.outputs):
            if not name:
                continue
            value = results[index] if index < len(results) else None
            if value is None:
                raise ModelError(f"output {index} '{name}' is not supported")
            self._declare(name, value)
            self.bind(name, value)
        return None

    def _declare(self, name: str, value: Value) -> None:
        """Use the rank declared in the file if the operation cannot infer it."""
        if isinstance(value, int) and not self.draft.type(value).ranked:
            said = self.types.get(name)
            if said is not None and said.shape is not None:
                dims = tuple(d if isinstance(d, int) else None for d in said.shape)
                self.draft.declare(value, TensorType(self.draft.type(value).dtype, dims))

    def _resolve(self, attribute: Attribute) -> Attribute | None:
        """The attribute with a reference replaced by the function caller's value; None if the caller passes none."""
        if not attribute.reference:
            return attribute
        found = self.attributes.get(attribute.reference)
        return None if found is None else evolve(found, name=attribute.name)

    def _call(
        self, function: Function, inputs: Sequence[Value | None], attributes: Mapping[str, Attribute]
    ) -> tuple[Value | None, ...]:
        """Inline a function, and return its results."""
        if len(inputs) > len(function.inputs):
            raise ModelError(f"has {len(inputs)} inputs, expected at most {len(function.inputs)}")
        given = {**function.defaults, **attributes}
        names = dict.fromkeys(function.inputs) | dict(zip(function.inputs, inputs, strict=False))
        context = evolve(self.context, opsets={**self.context.opsets, **function.opsets})
        body = Scope(context, self.draft, None, given, names=names)
        return body.read_nodes(function.nodes, function.outputs)

    # the interface for nodes that have graphs of their own

    def array(self, tensor: Tensor) -> tuple[Array, DType]:
        return self.context.storage.array(tensor)

    def dense(self, tensor: SparseTensor) -> tuple[Array, DType]:
        return self.context.storage.dense(tensor)

    def inline(self, graph: Graph, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Inline a graph, and return its results."""
        scope = Scope(self.context, self.draft, self, self.attributes, graph.values)
        return scope._body(graph, arguments)

    def nested(self, name: str) -> tuple[Draft, Scope]:
        """A new subgraph, and the scope of graphs imported into it; captured values become its inputs."""
        draft = Draft(name, self.draft.steps, self.draft.memory)
        draft.place = self.draft.place
        return draft, Scope(self.context, draft, self, self.attributes)

    def _body(self, graph: Graph, arguments: Sequence[Value]) -> tuple[Value, ...]:
        if len(arguments) != len(graph.inputs):
            raise ModelError(f"graph '{graph.name}' has {len(graph.inputs)} inputs, expected {len(arguments)}")
        for declared, value in zip(graph.inputs, arguments, strict=True):
            self.names[declared.name] = value
        self.read_initializers(graph)
        return self.read_nodes(graph.nodes, [declared.name for declared in graph.outputs])

    def subgraph_count(self) -> int:
        """The number of subgraphs of the model so far."""
        return len(self.context.subgraphs)

    def truncate_subgraphs(self, count: int) -> None:
        """Remove the subgraphs beyond the first `count`; nothing may run them."""
        del self.context.subgraphs[count:]

    def finish(self, draft: Draft, outputs: Sequence[int]) -> int:
        """Add a completed subgraph to the model, and return its index."""
        self.context.subgraphs.append(draft.subgraph(own_results(draft, outputs, passes=True)))
        return len(self.context.subgraphs) - 1


def _import(node: Node) -> Results:
    """Import a node through the table. Raises ModelError for any failure caused by the file's content.

    Importers check what they read; an unforeseen exception is reported with the types of all inputs.
    """
    found = importer(node.domain, node.op_type)
    if found is None:
        raise ModelError("has no implementation")
    try:
        return found(node)
    except MISHAPS as error:
        given = [str(node.type(at)) if isinstance(each, int) else "none" for at, each in enumerate(node.inputs)]
        inputs = ", ".join(given) or "no inputs"
        raise ModelError(f"is not defined for {inputs} ({type(error).__name__}: {error})") from error


def own_results(draft: Draft, outputs: Sequence[int], names: Sequence[str] = (), *, passes: bool = False) -> list[int]:
    """The outputs as distinct results of operations: inputs, constants and repetitions are copied, others renamed.

    With `passes`, an input may be the output at the same position, so that a loop is known to leave it unchanged.
    """
    found: list[int] = []
    for at, operand in enumerate(outputs):
        name = names[at] if at < len(names) else ""
        if passes and at < len(draft.inputs) and operand == draft.inputs[at]:
            found.append(operand)
            continue
        if operand in found or draft.is_input(operand) or draft.value(operand) is not None:
            operand = draft.add_copy(operand, name)
        elif name:
            draft.rename(operand, name)
        found.append(operand)
    return found


LocatedNode = tuple[str, messages.Node]
"""A node, and its name in errors."""


def _label(node: messages.Node) -> str:
    return f"{node.op_type} '{node.name}'" if node.name else node.op_type


def _capture_value(outer: Draft, inner: Draft, value: Value) -> Value:
    """A value of an enclosing subgraph inside a nested one: constants are repeated, others become added inputs."""
    if isinstance(value, Sequence_):
        return Sequence_(tuple(capture(outer, inner, i) for i in value.items), value.element)
    if isinstance(value, RuntimeValue):
        return RuntimeValue(capture(outer, inner, value.operand), value.type)
    if isinstance(value, Optional_):
        content = None if value.content is None else _capture_value(outer, inner, value.content)
        assert not isinstance(content, Optional_)
        return Optional_(content)
    return capture(outer, inner, value)
