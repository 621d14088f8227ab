"""A node as the tables see it: operands, attributes, the opset's version, and the subgraph that is being made; and the
order in which nodes are read."""

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


@frozen(eq=False)
class Sequence_:  # noqa: N801 - the name is ONNX's, the underscore keeps it apart from collections.abc
    """An ONNX sequence whose length is known: the tensors in it. `element` is their type where there are none."""

    items: tuple[int, ...]
    element: DType | None = None


@frozen(eq=False)
class Held:
    """A sequence or optional of which only the run tells what is in it: an operand of type VARIANT, and its type."""

    operand: int
    type: ValueType


@frozen(eq=False)
class Optional_:  # noqa: N801
    """An ONNX optional of which it is known whether something is in it."""

    content: int | Sequence_ | Held | None


@frozen(eq=False)
class Fork:
    """Branches that give tensors of different rank: what follows is made once for each.

    A branch is a graph, or adds operations to the draft of a subgraph.
    """

    condition: int
    branches: tuple[Graph | Callable[[Draft], tuple[int, ...]], ...]


@frozen(eq=False)
class Spliced:
    """A graph whose nodes stand in the place of a node, so that what follows may become part of a fork in it."""

    graph: Graph


Value = int | Sequence_ | Optional_ | Held
"""What a name of a graph stands for: an operand, or what is known of a sequence or an optional."""


class Surroundings(Protocol):
    """What a node with graphs of its own may ask of the graph that it stands in."""

    def inline(self, graph: Graph, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """The results of a graph's nodes, made here."""

    def nested(self, name: str) -> tuple[Draft, Surroundings]:
        """A new subgraph, and the scope of graphs that are read into it; what these capture becomes inputs of it."""

    def made(self) -> int:
        """How many subgraphs the model has so far."""

    def forget(self, made: int) -> None:
        """Take back the subgraphs beyond so many: nothing runs them."""

    def finish(self, draft: Draft, outputs: Sequence[int]) -> int:
        """The number of a finished subgraph of the model."""

    def array(self, tensor: Tensor) -> tuple[Array, DType]: ...

    def dense(self, tensor: SparseTensor) -> tuple[Array, DType]: ...


_KINDS: Mapping[str, Callable[[DType], bool]] = {
    "numbers": lambda dtype: dtype.is_integer or dtype.is_float,
    "integers": lambda dtype: dtype.is_integer,
    "bytes": lambda dtype: dtype is DType.UINT8,
}


@frozen(eq=False)
class Node:
    """One node; accessors raise ModelError with the attribute's or input's name, the caller adds the place."""

    op_type: str
    domain: str
    version: int
    """The version of its domain's opset."""
    inputs: tuple[Value | None, ...]
    outputs: tuple[str, ...]
    """Names of the results, empty where nobody wants one."""
    attributes: Mapping[str, Attribute]
    draft: Draft
    around: Surroundings

    def has(self, index: int) -> bool:
        """Whether an input is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def any(self, index: int) -> Value:
        """An input of whatever kind."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise ModelError(f"input {index} is absent, expected a tensor")
        return found

    def input(self, index: int) -> int:
        """The operand of an input that is a tensor."""
        found = self.any(index)
        if isinstance(found, Optional_) and isinstance(found.content, int):
            return found.content
        if not isinstance(found, int):
            kind = found.type.kind if isinstance(found, Held) else type(found).__name__.strip("_").lower()
            raise ModelError(f"input {index} is {'an' if kind == 'optional' else 'a'} {kind}, expected a tensor")
        return found

    def optional(self, index: int) -> int | None:
        """The operand of an input that may be absent."""
        return self.input(index) if self.has(index) else None

    def operands(self) -> tuple[int, ...]:
        """All inputs, which are tensors."""
        return tuple(self.input(i) for i in range(len(self.inputs)))

    def type(self, index: int) -> TensorType:
        return self.draft.type(self.input(index))

    def value(self, index: int) -> Array | None:
        """The elements of an input that is a constant; None where it is absent or not known."""
        return self.draft.value(self.input(index)) if self.has(index) else None

    def constant(self, index: int, name: str, kind: str = "numbers", count: int | None = None) -> Array:
        """The elements of an input that must be known: of a kind of `_KINDS`, and so many where `count` is given."""
        found = self.value(index)
        if found is None:
            raise ModelError(f"{name} (input {index}) is not known before the run, which is not supported")
        if not _KINDS[kind](self.type(index).dtype):
            raise ModelError(f"{name} (input {index}) is {self.type(index)}, expected {kind}")
        if count not in (None, found.size):
            raise ModelError(f"{name} (input {index}) is {self.type(index)}, expected {count} elements")
        return found

    def wants(self, index: int) -> bool:
        """Whether somebody reads a result."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def _content(self, name: str, kind: Kind) -> object:
        found = self.attributes.get(name)
        if found is None:
            return None
        if found.kind is not kind:
            raise ModelError(f"attribute {name} is of kind {found.kind.name}, expected {kind.name}")
        return found.content

    def given(self, name: str) -> bool:
        """Whether an attribute is there."""
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
        """A text that is one of those that are known."""
        found = self.text(name, default)
        if found not in known:
            *others, last = known
            raise ModelError(f"{name} is {found!r}, expected {', '.join(others)} or {last}")
        return found

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Integers; None where the attribute is absent."""
        found = self._content(name, Kind.INTS)
        return found if isinstance(found, tuple) else None

    def numbers(self, name: str) -> tuple[float, ...] | None:
        found = self._content(name, Kind.FLOATS)
        return found if isinstance(found, tuple) else None

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._content(name, Kind.STRINGS)
        return tuple(s.decode("utf-8", "replace") for s in found) if isinstance(found, tuple) else ()

    def element_type(self, name: str, default: DType | None = None) -> DType:
        """The element type that an attribute names by number."""
        if default is not None and not self.given(name):
            return default
        return element_type(self.integer(name))

    def graph(self, name: str) -> Graph:
        found = self._content(name, Kind.GRAPH)
        if not isinstance(found, Graph):
            raise ModelError(f"attribute {name} is absent, expected a graph")
        return found

    def tensor(self, name: str) -> tuple[Array, DType] | None:
        """The elements of a tensor; None where the attribute is absent."""
        attribute = self.attributes.get(name)
        if attribute is None:
            return None
        if isinstance(attribute.content, SparseTensor):
            return self.around.dense(attribute.content)
        if not isinstance(attribute.content, Tensor):
            raise ModelError(f"attribute {name} is of kind {attribute.kind.name}, expected TENSOR")
        return self.around.array(attribute.content)

    def value_type(self, name: str) -> ValueType | None:
        found = self._content(name, Kind.TYPE_PROTO)
        return found if isinstance(found, ValueType) else None


Results = Value | tuple[Value | None, ...] | Fork | Spliced
Importer = Callable[[Node], Results]
"""Adds to the draft what a node means, and gives its results. ModelError or RuleError; the caller adds the place."""

Table = Mapping[tuple[str, str], Importer]
"""Importers by domain (ONNX's own is empty) and operator."""


def order(nodes: Sequence[messages.Node], steps: Budget) -> Sequence[int]:
    """The nodes' indices, each behind those whose results it or a graph of its own reads; else as the file has them.

    Converters append nodes, and ONNX Runtime puts them into order, although the format asks writers to do so. Nodes
    that wait for one another come last.
    """
    made = {name: at for at, node in enumerate(nodes) for name in node.outputs if name}
    needed = [{made[name] for name in _read(node, steps) if name in made} for node in nodes]
    if all(at > max(before, default=-1) for at, before in enumerate(needed)):
        return range(len(nodes))
    found = in_order(needed)
    return [*found, *sorted({*range(len(nodes))} - {*found})]


def _read(node: messages.Node, steps: Budget) -> Iterator[str]:
    """The names that a node reads, and those that its graphs read and do not make themselves."""
    steps.spend(1, "putting its nodes into order")
    yield from node.inputs
    for attribute in node.attributes.values():
        found = attribute.content if isinstance(attribute.content, tuple) else (attribute.content,)
        for graph in found:
            if isinstance(graph, Graph):
                own = {name for each in graph.nodes for name in each.outputs}
                own |= {declared.name for declared in graph.inputs} | {tensor.name for tensor in graph.initializers}
                inner = (name for each in graph.nodes for name in _read(each, steps))
                yield from {*inner, *(declared.name for declared in graph.outputs)} - own
