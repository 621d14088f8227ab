"""ONNX's protocol buffer messages as values.

Source: onnx/onnx.proto (IR version 14), which defines the field numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TypeVar

from attrs import field, frozen

from onert.frontend.flatbuffer import Data
from onert.frontend.format import InputShapes
from onert.frontend.wire import Message
from onert.ir import DType, ModelError, Shape
from onert.ir.process.budget import MAX_CALL_DEPTH
from onert.ir.shape import MAX_RANK
from onert.ir.value import ByIdentity

from .element_types import element_type

T = TypeVar("T")
Dimension = int | str | None
"""A size, the name of an unknown one, or None."""


@frozen(eq=False)
class Tensor(ByIdentity):
    """A TensorProto at a byte of the file; its elements are not decoded yet.

    They are `raw`, or in another file, or in the fields of the message; or, if they are strings, `fields` itself.
    """

    name: str
    dtype: int
    dims: tuple[int, ...]
    raw: Data | None
    at: int
    fields: Message | tuple[bytes, ...]
    external: Mapping[str, str] | None = None

    @property
    def place(self) -> str:
        return f"tensor '{self.name}' at byte {self.at}"


@frozen(eq=False)
class SparseTensor(ByIdentity):
    """A SparseTensorProto: the values, their indices, and the dense shape."""

    values: Tensor
    indices: Tensor
    dims: tuple[int, ...]


@frozen(eq=False)
class ValueType(ByIdentity):
    """A TypeProto: a tensor, a sequence or optional of `element`, or a map to it from keys of type `key`.

    A `shape` of None means an unknown rank.
    """

    kind: str
    dtype: DType | None = None
    shape: tuple[Dimension, ...] | None = None
    element: ValueType | None = None
    key: DType | None = None


@frozen(eq=False)
class ValueDeclaration(ByIdentity):
    """A ValueInfoProto: a name, and its type if the file declares one."""

    name: str
    type: ValueType | None

    @property
    def decides_ranks(self) -> bool:
        """Whether it has no declared rank, or is a vector of integers of any length, which may be a shape."""
        type_ = self.type
        if type_ is None or type_.kind != "tensor":
            return False
        vector = type_.dtype in (DType.INT32, DType.INT64) and type_.shape is not None and len(type_.shape) == 1
        return type_.shape is None or (vector and not isinstance(type_.shape[0], int))


def ranks(inputs: Sequence[ValueDeclaration], shapes: InputShapes) -> dict[int | str, Shape]:
    """The ranks of inputs that declare none, by name, and the lengths of short vectors of integers, maybe shapes.

    Shapes are known by name or number. Other sizes are left open.
    """
    found: dict[int | str, Shape] = {}
    for at, end in enumerate(inputs):
        shape = shapes.get(end.name, shapes.get(at))
        if end.decides_ranks and shape is not None:
            is_vector = end.type is not None and end.type.shape is not None
            short = is_vector and len(shape) == 1 and (shape[0] or 0) <= MAX_RANK
            found[end.name] = tuple(shape) if short else (None,) * len(shape)
    return found


class Kind(IntEnum):
    """AttributeProto.AttributeType."""

    UNDEFINED = 0
    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    GRAPH = 5
    FLOATS = 6
    INTS = 7
    STRINGS = 8
    TENSORS = 9
    GRAPHS = 10
    SPARSE_TENSOR = 11
    SPARSE_TENSORS = 12
    TYPE_PROTO = 13
    TYPE_PROTOS = 14


@frozen(eq=False)
class Attribute(ByIdentity):
    """An AttributeProto. With `reference`, its value is that of an attribute of the enclosing function."""

    name: str
    kind: Kind
    content: object
    reference: str = ""


@frozen(eq=False)
class Node(ByIdentity):
    """A NodeProto; the name of an absent input or output is empty."""

    op_type: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    overload: str = ""

    @property
    def graphs(self) -> list[Graph]:
        """The graphs nested in its attributes."""
        contents = (each.content for each in self.attributes.values())
        listed = (content if isinstance(content, tuple) else (content,) for content in contents)
        return [graph for graphs in listed for graph in graphs if isinstance(graph, Graph)]


@frozen(eq=False)
class Graph(ByIdentity):
    """A GraphProto."""

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[ValueDeclaration, ...]
    outputs: tuple[ValueDeclaration, ...]
    initializers: tuple[Tensor, ...] = ()
    sparse: tuple[SparseTensor, ...] = ()
    values: Mapping[str, ValueType] = field(factory=dict)


@frozen(eq=False)
class Function(ByIdentity):
    """A FunctionProto: an operator defined by nodes."""

    name: str
    domain: str
    overload: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    defaults: Mapping[str, Attribute]
    nodes: tuple[Node, ...]
    opsets: Mapping[str, int]


@frozen(eq=False)
class Model(ByIdentity):
    """A ModelProto."""

    ir_version: int
    producer: str
    graph: Graph
    opsets: Mapping[str, int]
    functions: tuple[Function, ...]
    description: str
    metadata: Mapping[str, str]


def domain(name: str) -> str:
    """The canonical name of an operator domain; ONNX's own has two names."""
    return "" if name == "ai.onnx" else name


def read_model(message: Message) -> Model:
    """Read a ModelProto. Raises ModelError with the place where a message is malformed."""
    graph = message.message(7)
    if graph is None:
        raise ModelError("the model has no graph")
    return Model(
        message.integer(1),
        " ".join(filter(None, (message.text(2), message.text(3)))),
        _graph(graph, 0),
        _opsets(message, 8),
        tuple(_function(m) for m in message.messages(25)),
        message.text(6),
        {m.text(1): m.text(2) for m in message.messages(14)},
    )


def _opsets(message: Message, number: int) -> dict[str, int]:
    return {domain(m.text(1)): m.integer(2) for m in message.messages(number)}


def _function(message: Message) -> Function:
    defaults = (_attribute(m, 0) for m in message.messages(11))
    return Function(
        message.text(1),
        domain(message.text(10)),
        message.text(13),
        message.texts(4),
        message.texts(5),
        {a.name: a for a in defaults},
        tuple(_node(m, 0) for m in message.messages(7)),
        _opsets(message, 9),
    )


def _graph(message: Message, depth: int) -> Graph:
    if depth > MAX_CALL_DEPTH:
        raise ModelError(f"graphs at byte {message.at} are nested more than {MAX_CALL_DEPTH} deep")
    declared = [_value(m) for m in message.messages(13)]
    return Graph(
        message.text(2),
        tuple(_node(m, depth) for m in message.messages(1)),
        tuple(_value(m) for m in message.messages(11)),
        tuple(_value(m) for m in message.messages(12)),
        tuple(_tensor(m) for m in message.messages(5)),
        tuple(_sparse(m) for m in message.messages(15)),
        {v.name: v.type for v in declared if v.type is not None},
    )


def read_graph_ends(message: Message) -> tuple[tuple[ValueDeclaration, ...], tuple[ValueDeclaration, ...]]:
    """The inputs and outputs of a run: graph inputs without an initializer, and graph outputs."""
    given = {m.text(8) for m in message.messages(5)}
    given |= {values.text(8) for m in message.messages(15) if (values := m.message(1)) is not None}
    inputs = (_value(m) for m in message.messages(11))
    return tuple(v for v in inputs if v.name not in given), tuple(_value(m) for m in message.messages(12))


@frozen(eq=False)
class Columns(ByIdentity):
    """The map keys that the columns of a tensor represent.

    Without keys, each map is a tensor of its own length, with its columns in the order of its keys.
    """

    keys: tuple[int, ...] | tuple[str, ...] | None = None


def read_columns(graph: Message) -> dict[str, Columns]:
    """Like `columns`, for a graph that is not read otherwise."""
    return columns([_node(m, 0) for m in graph.messages(1) if m.text(4) in _KEYS])


def columns(nodes: Sequence[Node]) -> dict[str, Columns]:
    """The keys of the maps that nodes produce or read, by value name."""
    found = {}
    for node in nodes:
        if node.op_type in _KEYS and node.inputs and node.outputs:
            name = node.outputs[0] if node.op_type == "ZipMap" else node.inputs[0]
            found[name] = Columns(_keys(node))
    return found


_KEYS = {
    "CastMap": (),
    "DictVectorizer": ("string_vocabulary", "int64_vocabulary"),
    "ZipMap": ("classlabels_strings", "classlabels_int64s"),
}
"""Operators on maps, and their attributes that list keys."""


def _keys(node: Node) -> tuple[int, ...] | tuple[str, ...] | None:
    for name in _KEYS[node.op_type]:
        listed = node.attributes.get(name)
        content = None if listed is None else listed.content
        if isinstance(content, tuple) and content:
            return tuple(k.decode("utf-8", "replace") if isinstance(k, bytes) else k for k in content)
    form, most = (node.attributes.get(name) for name in ("map_form", "max_map"))
    if form is not None and form.content == b"SPARSE" and most is not None and isinstance(most.content, int):
        if not 0 <= most.content <= _MOST_KEYS:
            raise ModelError(f"max_map is {most.content}, expected at most {_MOST_KEYS}")
        return tuple(range(most.content))
    return None


_MOST_KEYS = 1 << 20


def _node(message: Message, depth: int) -> Node:
    attributes = [_attribute(m, depth) for m in message.messages(5)]
    return Node(
        message.text(4),
        domain(message.text(7)),
        message.text(3),
        message.texts(1),
        message.texts(2),
        {a.name: a for a in attributes},
        message.text(8),
    )


def _attribute(message: Message, depth: int) -> Attribute:
    name, number = message.text(1), message.integer(20)
    if number not in Kind.__members__.values():
        raise ModelError(f"attribute '{name}' at byte {message.at} is of kind {number}, expected 0 to {max(Kind)}")
    kind = Kind(number)
    if kind is Kind.UNDEFINED:  # older files have no kind, only the field
        kind = next((k for k, (at, _) in _FIELDS.items() if message.has(at)), Kind.UNDEFINED)
    field = _FIELDS.get(kind)
    content = None if field is None else field[1](message, field[0], depth)
    return Attribute(name, kind, content, message.text(21))


Read = Callable[[Message, int, int], object]
"""Reads a field of a message, given its number and the nesting depth of the graph."""
_FIELDS: Mapping[Kind, tuple[int, Read]] = {
    Kind.FLOAT: (2, lambda m, at, _: m.real(at)),
    Kind.INT: (3, lambda m, at, _: m.integer(at)),
    Kind.STRING: (4, lambda m, at, _: bytes(m.octets(at))),
    Kind.TENSOR: (5, lambda m, at, _: _one(m, at, _tensor)),
    Kind.GRAPH: (6, lambda m, at, depth: _one(m, at, lambda graph: _graph(graph, depth + 1))),
    Kind.FLOATS: (7, lambda m, at, _: tuple(map(float, m.reals(at)))),
    Kind.INTS: (8, lambda m, at, _: tuple(map(int, m.integers(at)))),
    Kind.STRINGS: (9, lambda m, at, _: m.strings(at)),
    Kind.TENSORS: (10, lambda m, at, _: tuple(map(_tensor, m.messages(at)))),
    Kind.GRAPHS: (11, lambda m, at, depth: tuple(_graph(graph, depth + 1) for graph in m.messages(at))),
    Kind.TYPE_PROTO: (14, lambda m, at, _: _one(m, at, _type)),
    Kind.TYPE_PROTOS: (15, lambda m, at, _: None),
    Kind.SPARSE_TENSOR: (22, lambda m, at, _: _one(m, at, _sparse)),
    Kind.SPARSE_TENSORS: (23, lambda m, at, _: None),
}
"""The field that holds an attribute's content, by kind; kinds that no operator uses are not read."""


def _one(message: Message, number: int, read: Callable[[Message], T]) -> T | None:
    """The message in a field; None if it is absent."""
    found = message.message(number)
    return None if found is None else read(found)


def _tensor(message: Message) -> Tensor:
    external = {m.text(1): m.text(2) for m in message.messages(13)} if message.integer(14) == 1 else None
    raw = message.octets(9) if message.has(9) else None
    dims = tuple(map(int, message.integers(1)))
    return Tensor(message.text(8), message.integer(2), dims, raw, message.at, message, external)


def _sparse(message: Message) -> SparseTensor:
    values, indices = message.message(1), message.message(2)
    if values is None or indices is None:
        raise ModelError(f"the sparse tensor at byte {message.at} has no values or no indices")
    return SparseTensor(_tensor(values), _tensor(indices), tuple(map(int, message.integers(3))))


def _value(message: Message) -> ValueDeclaration:
    return ValueDeclaration(message.text(1), _one(message, 2, _type))


def _type(message: Message, depth: int = 0) -> ValueType:
    if depth > MAX_CALL_DEPTH:
        raise ModelError(f"types at byte {message.at} are nested more than {MAX_CALL_DEPTH} deep")
    tensor = message.message(1)
    if tensor is not None:
        shape = tensor.message(2)
        number = tensor.integer(1)
        dims = None if shape is None else tuple(_dimension(m) for m in shape.messages(1))
        return ValueType("tensor", element_type(number) if number else None, dims)
    for number, kind in ((4, "sequence"), (9, "optional")):
        inner = message.message(number)
        if inner is not None:
            return ValueType(kind, element=_one(inner, 1, lambda element: _type(element, depth + 1)))
    mapped = message.message(5)
    if mapped is not None:
        number, inside = mapped.integer(1), _one(mapped, 2, lambda values: _type(values, depth + 1))
        return ValueType("map", element=inside, key=element_type(number) if number else None)
    return ValueType("sparse tensor" if message.has(8) else "unknown")


def _dimension(message: Message) -> Dimension:
    if message.has(1):
        size = message.integer(1)
        return size if size >= 0 else None  # some exporters write -1 for unknown sizes
    return message.text(2) or None
