"""The tables of ONNX Runtime's format as the values of ONNX's messages.

Source: onnxruntime/core/flatbuffers/schema/ort.fbs of ONNX Runtime, which defines the order of the fields. Such a file
holds a model's graph after optimisation, without local functions. What it stores beyond ONNX's messages (node edges,
optimisations for other builds, types of kernels) is not needed and not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onert.frontend.flatbuffer import Data, Table, budget, root
from onert.frontend.onnx.element_types import element_number, element_type
from onert.frontend.onnx.messages import (
    Attribute,
    Dimension,
    Graph,
    Kind,
    Model,
    Node,
    SparseTensor,
    Tensor,
    ValueDeclaration,
    ValueType,
    domain,
)
from onert.ir import DType, ModelError
from onert.ir.process.budget import MAX_CALL_DEPTH

_FUSED = 1
"""The type of a node that stands for a graph that another execution provider has compiled."""
_TENSOR, _SEQUENCE, _MAP = 1, 2, 3
"""The types of values."""
_VALUE, _PARAMETER = 1, 2
"""The types of a dimension: a size, and a name."""


def ort_model(data: Data) -> Table:
    """The table of the model in a file. Raises ModelError if there is none."""
    found = root(data, budget(len(data))).table(1)
    if found is None:
        raise ModelError("the file has no model")
    return found


def ort_graph(model: Table) -> Table:
    """The table of a model's graph. Raises ModelError if there is none."""
    found = model.table(7)
    if found is None:
        raise ModelError("the model has no graph")
    return found


def read_ort_model(model: Table) -> Model:
    """Read a model. Raises ModelError with the place where a table is malformed."""
    return Model(
        int(model.scalar(0, "q", 0)),
        " ".join(filter(None, (model.text(2), model.text(3)))),
        _graph(ort_graph(model), 0),
        {domain(t.text(0)): int(t.scalar(1, "q", 0)) for t in model.tables(1)},
        (),
        model.text(6),
        ort_metadata(model),
    )


def ort_metadata(model: Table) -> dict[str, str]:
    """The texts that a model's author has added, by key."""
    return {t.text(0): t.text(1) for t in model.tables(9)}


def read_ort_ends(graph: Table) -> tuple[tuple[ValueDeclaration, ...], tuple[ValueDeclaration, ...]]:
    """The inputs and outputs of a run: graph inputs without an initializer, and graph outputs."""
    given = {t.text(0) for t in graph.tables(0)}
    given |= {values.text(0) for t in graph.tables(7) if (values := t.table(0)) is not None}
    types = _types(graph)
    inputs, outputs = _declared(graph, 5, types), _declared(graph, 6, types)
    return tuple(v for v in inputs if v.name not in given), outputs


def read_ort_nodes(graph: Table) -> tuple[Node, ...]:
    """The nodes of a graph."""
    return tuple(_node(t, 0) for t in graph.tables(2))


def _graph(table: Table, depth: int) -> Graph:
    if depth > MAX_CALL_DEPTH:
        raise ModelError(f"graphs at byte {table.position} are nested more than {MAX_CALL_DEPTH} deep")
    types = _types(table)
    return Graph(
        "",
        tuple(_node(t, depth) for t in table.tables(2)),
        _declared(table, 5, types),
        _declared(table, 6, types),
        tuple(_tensor(t) for t in table.tables(0)),
        tuple(_sparse(t) for t in table.tables(7)),
        types,
    )


def _types(graph: Table) -> dict[str, ValueType]:
    """The types of a graph's values that have one, by name."""
    found = ((t.text(0), t.table(2)) for t in graph.tables(1))
    return {name: _type(type_, 0) for name, type_ in found if type_ is not None}


def _declared(graph: Table, slot: int, types: Mapping[str, ValueType]) -> tuple[ValueDeclaration, ...]:
    return tuple(ValueDeclaration(name, types.get(name)) for name in graph.texts(slot))


def _type(table: Table, depth: int) -> ValueType:
    if depth > MAX_CALL_DEPTH:
        raise ModelError(f"types at byte {table.position} are nested more than {MAX_CALL_DEPTH} deep")
    kind, value = table.scalar(1, "B", 0), table.table(2)
    if value is None or kind not in (_TENSOR, _SEQUENCE, _MAP):
        return ValueType("unknown")
    if kind == _TENSOR:
        shape = value.table(1)
        dims = None if shape is None else tuple(_dimension(t.table(0)) for t in shape.tables(0))
        return ValueType("tensor", _element_type(value), dims)
    element = value.table(0 if kind == _SEQUENCE else 1)
    inside = None if element is None else _type(element, depth + 1)
    if kind == _SEQUENCE:
        return ValueType("sequence", element=inside)
    return ValueType("map", element=inside, key=_element_type(value))


def _element_type(table: Table) -> DType | None:
    number = int(table.scalar(0, "i", 0))
    return element_type(number) if number else None


def _dimension(value: Table | None) -> Dimension:
    kind = 0 if value is None else value.scalar(0, "b", 0)
    if value is None or kind not in (_VALUE, _PARAMETER):
        return None
    if kind == _PARAMETER:
        return value.text(2) or None
    size = int(value.scalar(1, "q", 0))
    return size if size >= 0 else None


def _node(table: Table, depth: int) -> Node:
    attributes = [_attribute(t, depth) for t in table.tables(10)]
    if table.scalar(6, "i", 0) == _FUSED:
        raise ModelError(
            f"node '{table.text(0)}' at byte {table.position} was compiled by {table.text(7)}, expected an operator"
        )
    return Node(
        table.text(5),
        domain(table.text(2)),
        table.text(0),
        table.texts(8),
        table.texts(9),
        {a.name: a for a in attributes},
    )


def _attribute(table: Table, depth: int) -> Attribute:
    name, number = table.text(0), int(table.scalar(2, "i", 0))
    if number not in Kind.__members__.values():
        raise ModelError(f"attribute '{name}' at byte {table.position} is of kind {number}, expected 0 to {max(Kind)}")
    kind = Kind(number)
    read = _READERS.get(kind)
    return Attribute(name, kind, None if read is None else read(table, depth))


_READERS: Mapping[Kind, Callable[[Table, int], object]] = {
    Kind.FLOAT: lambda t, _: float(t.scalar(3, "f", 0.0)),
    Kind.INT: lambda t, _: int(t.scalar(4, "q", 0)),
    Kind.STRING: lambda t, _: t.octets(5),
    Kind.TENSOR: lambda t, _: None if (found := t.table(6)) is None else _tensor(found),
    Kind.GRAPH: lambda t, depth: None if (found := t.table(7)) is None else _graph(found, depth + 1),
    Kind.FLOATS: lambda t, _: tuple(map(float, t.array(8, "f"))),
    Kind.INTS: lambda t, _: tuple(map(int, t.array(9, "q"))),
    Kind.STRINGS: lambda t, _: t.strings(10),
    Kind.TENSORS: lambda t, _: tuple(map(_tensor, t.tables(11))),
    Kind.GRAPHS: lambda t, depth: tuple(_graph(found, depth + 1) for found in t.tables(12)),
}
"""How an attribute's content is read, by kind; the format stores no types and sparse tensors."""


def _tensor(table: Table) -> Tensor:
    name, number, dims = table.text(0), int(table.scalar(3, "i", 0)), tuple(map(int, table.array(2, "q")))
    if table.scalar(6, "q", -1) >= 0:
        raise ModelError(f"tensor '{name}' at byte {table.position} has elements in another file, expected its own")
    raw = None if number == element_number(DType.STRING) else table.bytes(4) or memoryview(b"")
    return Tensor(name, number, dims, raw, table.position, table.strings(5))


def _sparse(table: Table) -> SparseTensor:
    values, indices = table.table(0), table.table(1)
    if values is None or indices is None:
        raise ModelError(f"the sparse tensor at byte {table.position} has no values or no indices")
    return SparseTensor(_tensor(values), _tensor(indices), tuple(map(int, table.array(2, "q"))))
