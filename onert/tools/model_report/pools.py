"""Graphs as plain data, in which operations and tensors shared by several graphs are written once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar

from attrs import fields

from onert.ir import Constant, Operand, Operation, Quantization, Subgraph
from onert.ir.op import Op

MOST_TEXT = 400
"""The most characters of an attribute that are written."""
MOST_SCALES = 8
"""The most scales of a quantisation that are written; of all scales there is only the range."""

Item = TypeVar("Item", bound=Hashable)


class Pool:
    """A list of distinct values, referred to by index."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable, value: Any) -> int:
        """The index of the value with this key; it is added if it is new."""
        found = self._numbers.setdefault(key, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


class Graphs:
    """Collects the graphs of a report. `constants` are the constants in them, by index."""

    def __init__(self) -> None:
        self.operations = Pool()
        self.tensors = Pool()
        self.graphs: list[dict[str, Any]] = []
        self.constants: list[tuple[Constant, Operand]] = []
        self._constants: dict[int, int] = {}
        self._known: dict[int, tuple[Subgraph, int]] = {}

    def add(self, graph: Subgraph) -> int:
        """Add a graph and return its index. The same object is added only once."""
        known = self._known.get(id(graph))
        if known is not None:
            return known[1]
        number = len(self.graphs)
        self._known[id(graph)] = (graph, number)
        told: dict[str, Any] = {}
        self.graphs.append(told)
        told |= {
            "name": graph.name,
            "tensors": [self._tensor(operand) for operand in graph.operands],
            "operations": [self._operation(operation) for operation in graph.operations],
            "inputs": list(graph.inputs),
            "outputs": list(graph.outputs),
            "state": [[update.variable, update.source] for update in graph.state],
        }
        return number

    def constant(self, operand: Operand) -> int | None:
        """The index of an operand's constant, None if it is not a constant."""
        if operand.data is None:
            return None
        number = self._constants.get(id(operand.data))
        if number is None:
            number = self._constants[id(operand.data)] = len(self.constants)
            self.constants.append((operand.data, operand))
        return number

    def _tensor(self, operand: Operand) -> int:
        type_ = operand.type
        constant = self.constant(operand)
        nbytes = type_.nbytes if type_.is_static else None
        told = {
            "name": operand.name,
            "type": str(type_),
            "bytes": nbytes,
            "quantization": quantization(type_.quantization),
            "constant": constant,
            "variable": operand.variable,
        }
        return self.tensors.number((operand.name, str(type_), type_.quantization, constant, operand.variable), told)

    def _operation(self, operation: Operation) -> list[Any]:
        op = operation.op
        holds = [(a.name, v) for a in fields(type(op)) if isinstance(v := getattr(op, a.name, None), Subgraph)]
        bodies = [(name, self.add(graph)) for name, graph in holds]
        attributes = _attributes(op)
        key = (op.label, operation.location, tuple(map(tuple, attributes)), tuple(bodies), op.subgraphs)
        told = {
            "kind": op.label,
            "location": operation.location,
            "family": _family(op),
            "attributes": attributes,
            "holds": [list(body) for body in bodies],
            "calls": list(op.subgraphs),
        }
        return [self.operations.number(key, told), list(operation.inputs), list(operation.outputs)]

    @property
    def data(self) -> dict[str, Any]:
        """All graphs with the operations and tensors that they refer to."""
        return {"operations": self.operations.values, "tensors": self.tensors.values, "graphs": self.graphs}


def quantization(q: Quantization | None) -> dict[str, Any] | None:
    """Quantisation parameters as plain data."""
    if q is None:
        return None
    return {
        "axis": q.axis,
        "block": q.block_size,
        "count": len(q.scales),
        "scales": [float(s) for s in q.scales[:MOST_SCALES]],
        "zero_points": [int(z) for z in q.zero_points[:MOST_SCALES]],
        "least": float(min(q.scales)),
        "most": float(max(q.scales)),
    }


def _attributes(op: Op) -> list[list[str]]:
    """Names and values of an operation's attributes, except graphs."""
    found = []
    for each in fields(type(op)):
        value = getattr(op, each.name)
        if isinstance(value, Subgraph) or (isinstance(value, tuple) and any(isinstance(v, Subgraph) for v in value)):
            continue
        text = str(getattr(value, "name", value))
        found.append([each.name, text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}..."])
    return found


def _family(op: Op) -> str:
    """The family of an operation kind, by which the page chooses colours; "other" if it has none."""
    parts = type(op).__module__.split(".")
    return parts[3] if parts[:3] == ["onert", "ir", "ops"] and len(parts) > 4 else "other"
