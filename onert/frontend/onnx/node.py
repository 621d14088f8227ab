"""The interface between nodes and the operator tables: operands, attributes, opset version and the draft subgraph; and
the order in which nodes are imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from onert.ir import Array, DType, ModelError, TensorType
from onert.ir.analysis.ordering import in_order
from onert.ir.process.budget import Budget

from . import messages
from .draft import Draft
from .element_types import element_type
from .messages import Attribute, Graph, Kind, SparseTensor, Tensor, ValueType

NEWEST = 28
"""The newest supported opset of ai.onnx."""


@frozen(eq=False)
class Sequence_:  # noqa: N801 - the name is ONNX's, the underscore keeps it apart from collections.abc
    """An ONNX sequence of known length, as its tensors. `element` is the element type of an empty one."""

    items: tuple[int, ...]
    element: DType | None = None


@frozen(eq=False)
class RuntimeValue:
    """A sequence or optional whose content is known only at run time: an operand of type VARIANT, and its ONNX type."""

    operand: int
    type: ValueType


@frozen(eq=False)
class Optional_:  # noqa: N801
    """An ONNX optional that is known to be empty (None) or not."""

    content: int | Sequence_ | RuntimeValue | None


@frozen(eq=False)
class Fork:
    """Branches whose results differ in rank: what follows is built once inside each branch.

    A branch is a graph, or a function that adds operations to the draft of a subgraph, and returns their results or
    another fork.
    """

    condition: int
    branches: tuple[Graph | Branch, ...]


Branch = Callable[[Draft], "tuple[int, ...] | Fork"]
"""A branch of a fork."""


@frozen(eq=False)
class Splice:
    """A graph whose nodes replace a node, so that what follows it can become part of a fork inside the graph."""

    graph: Graph


Value = int | Sequence_ | Optional_ | RuntimeValue
"""The value of a name: an operand, or what is known of a sequence or an optional."""


class EnclosingGraph(Protocol):
    """What a node with graphs of its own may use of its enclosing graph."""

    def inline(self, graph: Graph, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Inline a graph, and return its results."""

    def nested(self, name: str) -> tuple[Draft, EnclosingGraph]:
        """A new subgraph, and the scope of graphs imported into it; captured values become its inputs."""

    def subgraph_count(self) -> int:
        """The number of subgraphs of the model so far."""

    def truncate_subgraphs(self, count: int) -> None:
        """Remove the subgraphs beyond the first `count`; nothing may run them."""

    def finish(self, draft: Draft, outputs: Sequence[int]) -> int:
        """Add a completed subgraph to the model, and return its index."""

    def array(self, tensor: Tensor) -> tuple[Array, DType]: ...

    def dense(self, tensor: SparseTensor) -> tuple[Array, DType]: ...


_KINDS: Mapping[str, Callable[[DType], bool]] = {
    "numbers": lambda dtype: dtype.is_integer or dtype.is_float,
    "integers": lambda dtype: dtype.is_integer,
    "bytes": lambda dtype: dtype is DType.UINT8,
}


@frozen(eq=False)
class Node:
    """One node. Accessors raise ModelError naming the attribute or input; the caller adds the node's place."""

    op_type: str
    domain: str
    version: int
    """The opset version of the node's domain."""
    inputs: tuple[Value | None, ...]
    outputs: tuple[str, ...]
    """Names of the results; empty for an unused one."""
    attributes: Mapping[str, Attribute]
    draft: Draft
    enclosing: EnclosingGraph

    def has(self, index: int) -> bool:
        """Whether an input is present."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def any(self, index: int) -> Value:
        """An input of any kind. Raises ModelError if it is absent."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise ModelError(f"input {index} is absent, expected a tensor")
        return found

    def input(self, index: int) -> int:
        """The operand of a tensor input. Raises ModelError if it is absent or not a tensor."""
        found = self.any(index)
        if isinstance(found, Optional_) and isinstance(found.content, int):
            return found.content
        if not isinstance(found, int):
            kind = found.type.kind if isinstance(found, RuntimeValue) else type(found).__name__.strip("_").lower()
            raise ModelError(f"input {index} is {'an' if kind == 'optional' else 'a'} {kind}, expected a tensor")
        return found

    def optional(self, index: int) -> int | None:
        """The operand of an optional input; None if it is absent."""
        return self.input(index) if self.has(index) else None

    def operands(self) -> tuple[int, ...]:
        """All inputs, which must be tensors."""
        return tuple(self.input(i) for i in range(len(self.inputs)))

    def type(self, index: int) -> TensorType:
        return self.draft.type(self.input(index))

    def value(self, index: int) -> Array | None:
        """The elements of a constant input; None if it is absent or not constant."""
        return self.draft.value(self.input(index)) if self.has(index) else None

    def constant(self, index: int, name: str, kind: str = "numbers", count: int | None = None) -> Array:
        """The elements of an input that must be constant, of one of `_KINDS`, and with `count` elements if given."""
        found = self.value(index)
        if found is None:
            raise ModelError(f"{name} (input {index}) is not constant, which is not supported")
        if not _KINDS[kind](self.type(index).dtype):
            raise ModelError(f"{name} (input {index}) is {self.type(index)}, expected {kind}")
        if count not in (None, found.size):
            raise ModelError(f"{name} (input {index}) is {self.type(index)}, expected {count} elements")
        return found

    def uses_output(self, index: int) -> bool:
        """Whether a result is used."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def _content(self, name: str, kind: Kind) -> object:
        found = self.attributes.get(name)
        if found is None:
            return None
        if found.kind is not kind:
            raise ModelError(f"attribute {name} is of kind {found.kind.name}, expected {kind.name}")
        return found.content

    def has_attribute(self, name: str) -> bool:
        """Whether an attribute is present."""
        return name in self.attributes

    def integer(self, name: str, default: int = 0) -> int:
        found = self._content(name, Kind.INT)
        return found if isinstance(found, int) else default

    def flag(self, name: str, *, default: bool = False) -> bool:
        return bool(self.integer(name, int(default)))

    def number(self, name: str, default: float = 0.0) -> float:
        found = self._content(name, Kind.FLOAT)
        return found if isinstance(found, float) else default

    def text(self, name: str, default: str = "") -> str:
        found = self._content(name, Kind.STRING)
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else default

    def choice(self, name: str, known: Iterable[str], default: str = "") -> str:
        """A string attribute. Raises ModelError if it is not one of `known`."""
        found = self.text(name, default)
        if found not in known:
            *others, last = known
            raise ModelError(f"{name} is {found!r}, expected {', '.join(others)} or {last}")
        return found

    def integers(self, name: str) -> tuple[int, ...] | None:
        """An integer list attribute; None if it is absent."""
        found = self._content(name, Kind.INTS)
        return found if isinstance(found, tuple) else None

    def numbers(self, name: str) -> tuple[float, ...] | None:
        found = self._content(name, Kind.FLOATS)
        return found if isinstance(found, tuple) else None

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._content(name, Kind.STRINGS)
        return tuple(s.decode("utf-8", "replace") for s in found) if isinstance(found, tuple) else ()

    def element_type(self, name: str, default: DType | None = None) -> DType:
        """The element type whose number an attribute holds."""
        if default is not None and not self.has_attribute(name):
            return default
        return element_type(self.integer(name))

    def graph(self, name: str) -> Graph:
        found = self._content(name, Kind.GRAPH)
        if not isinstance(found, Graph):
            raise ModelError(f"attribute {name} is absent, expected a graph")
        return found

    def tensor(self, name: str) -> tuple[Array, DType] | None:
        """The elements of a tensor attribute; None if it is absent."""
        attribute = self.attributes.get(name)
        if attribute is None:
            return None
        if isinstance(attribute.content, SparseTensor):
            return self.enclosing.dense(attribute.content)
        if not isinstance(attribute.content, Tensor):
            raise ModelError(f"attribute {name} is of kind {attribute.kind.name}, expected TENSOR")
        return self.enclosing.array(attribute.content)

    def value_type(self, name: str) -> ValueType | None:
        found = self._content(name, Kind.TYPE_PROTO)
        return found if isinstance(found, ValueType) else None


Results = Value | tuple[Value | None, ...] | Fork | Splice
Importer = Callable[[Node], Results]
"""Adds a node's operations to the draft, and returns its results. Raises ModelError or RuleError without the place."""


def execution_order(nodes: Sequence[messages.Node], steps: Budget) -> Sequence[int]:
    """The nodes' indices in topological order, otherwise in file order. Names read by nested graphs count.

    The format requires sorted nodes, but converters append nodes and ONNX Runtime sorts them. Nodes on a cycle come
    last.
    """
    made = {name: at for at, node in enumerate(nodes) for name in node.outputs if name}
    needed = [{made[name] for name in names_read(node, steps) if name in made} for node in nodes]
    if all(at > max(before, default=-1) for at, before in enumerate(needed)):
        return range(len(nodes))
    found = in_order(needed)
    return [*found, *sorted({*range(len(nodes))} - {*found})]


def names_read(node: messages.Node, steps: Budget) -> Iterator[str]:
    """Yield the names that a node reads, including those that its nested graphs read from outside."""
    steps.spend(1, "sorting its nodes")
    yield from node.inputs
    for graph in node.graphs:
        own = {name for each in graph.nodes for name in each.outputs}
        own |= {declared.name for declared in graph.inputs} | {tensor.name for tensor in graph.initializers}
        inner = (name for each in graph.nodes for name in names_read(each, steps))
        yield from {*inner, *(declared.name for declared in graph.outputs)} - own
