"""Flows under construction: functions of operations on variables, which can be changed until they are compiled."""

from __future__ import annotations

import math
from collections.abc import Iterable, MutableMapping
from typing import Any, TypeVar

from onert.frontend.flow.file import FunctionFlag, VariableFlag
from onert.ir import ModelError

DT_INT8 = "int8"
DT_INT16 = "int16"
DT_INT32 = "int32"
DT_INT64 = "int64"
DT_FLOAT32 = "float32"
DT_FLOAT64 = "float64"
DT_BOOL = "bool"
DT_INT = DT_INT32
DT_FLOAT = DT_FLOAT32
DT_DOUBLE = DT_FLOAT64


def _text(value: Any) -> str:
    """An attribute's value in flow files: True and False become 1 and 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)


class _Record:
    """A named part of a flow."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.flags = 0

    def __repr__(self) -> str:
        return self.name


class _Attributed(_Record):
    """A record with attributes: names and values, both text, in the order in which they were added."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.attrs: dict[str, str] = {}

    def add_attr(self, name: str, value: Any) -> None:
        """Set the value of an attribute."""
        self.attrs[name] = _text(value)

    def attr(self, name: str) -> str | None:
        """The value of an attribute; None if it does not exist."""
        return self.attrs.get(name)


class _Flag:
    """A bit of the flags as a Boolean attribute."""

    def __init__(self, bit: int) -> None:
        self._bit = int(bit)

    def __get__(self, owner: Any, kind: type[Any]) -> bool:
        return bool(owner.flags & self._bit)

    def __set__(self, owner: Any, value: bool) -> None:
        owner.flags = owner.flags | self._bit if value else owner.flags & ~self._bit


class Variable(_Attributed):
    """A tensor of a flow: a constant if it has data, otherwise a parameter of its function.

    `type` is the name of the element type, `shape` a list in which -1 is an unknown size. `data` is an array, a number
    or bytes. `producer` is the operation that computes it, `consumers` those that read it. `row` and `col` request an
    order of the elements in memory, row-major or column-major; data are always row-major.
    """

    input = _Flag(VariableFlag.IN)
    output = _Flag(VariableFlag.OUT)
    ref = _Flag(VariableFlag.REF)
    learnable = _Flag(VariableFlag.LEARNABLE)
    unique = _Flag(VariableFlag.UNIQUE)
    nogradient = _Flag(VariableFlag.NOGRADIENT)
    row = _Flag(VariableFlag.ROW)
    col = _Flag(VariableFlag.COL)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.aliases: list[str] = []
        self.type: str = DT_FLOAT32
        self.shape: list[int] = []
        self.data: Any = None
        self.producer: Operation | None = None
        self.consumers: list[Operation] = []

    def shape_defined(self) -> bool:
        """Whether every size is known."""
        return -1 not in self.shape

    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def rank(self) -> int:
        return len(self.shape)

    def typestr(self) -> str:
        """The type with its shape, such as `&float32[1x64]` for a reference."""
        sizes = "x".join("?" if size == -1 else str(size) for size in self.shape)
        mark = "&" if self.ref and not self.type.startswith("&") else ""
        return f"{mark}{self.type}[{sizes}]" if self.shape else f"{mark}{self.type}"

    def __str__(self) -> str:
        ends = f"{'input ' if self.input else ''}{'output ' if self.output else ''}"
        kind = "const" if self.data is not None else "var"
        return f"{ends}{kind} {self.name} : {self.typestr()}"


class Operation(_Attributed):
    """An operation of a flow: the name of its type, and the variables that it reads and computes."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.type = ""
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.func: Function | None = None

    def add_input(self, variable: Variable) -> None:
        """Append an operand."""
        self.inputs.append(variable)
        variable.consumers.append(self)

    def add_output(self, variable: Variable) -> None:
        """Append a result."""
        self.outputs.append(variable)
        variable.producer = self

    def __str__(self) -> str:
        attrs = f" {{{', '.join(f'{k}={v}' for k, v in self.attrs.items())}}}" if self.attrs else ""
        given, made = (", ".join(v.name for v in side) for side in (self.inputs, self.outputs))
        return f"{made} = {self.type}({given}){attrs}" if made else f"{self.type}({given}){attrs}"


class Function(_Record):
    """Operations that are computed together."""

    backprop = _Flag(FunctionFlag.BACKPROP)
    training = _Flag(FunctionFlag.TRAINING)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.ops: list[Operation] = []

    def add(self, operation: Operation) -> None:
        """Move an operation into the function."""
        if operation.func is not None and operation in operation.func.ops:
            operation.func.ops.remove(operation)
        operation.func = self
        self.ops.append(operation)


class Connector(_Record):
    """Variables whose tensors have the same format, so that a reference to one can refer to another."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.links: list[Variable] = []

    def add(self, variable: Variable) -> None:
        """Link a variable, once."""
        if variable not in self.links:
            self.links.append(variable)


class Blob(_Attributed):
    """Data stored with a flow that no operation reads."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.type = ""
        self.data: Any = None

    def get_attr(self, name: str) -> str | None:
        """The value of an attribute; None if it does not exist."""
        return self.attrs.get(name)


Named = TypeVar("Named", Variable, Operation, Function, Connector, Blob)


def _get(records: MutableMapping[str, Named], kind: type[Named], name: str | Named) -> Named:
    """The record with this name, created if it does not exist; a record is returned unchanged."""
    if isinstance(name, kind):
        return name
    if not isinstance(name, str):
        raise ModelError(f"a {kind.__name__.lower()} is named {name!r}, expected a string")
    if name not in records:
        records[name] = kind(name)
    return records[name]


class Graph:
    """The content of a flow: variables, operations, functions, connectors and blobs by name.

    `func`, `op`, `cnx` and `blob` return the record with a name, and create it if it does not exist.
    """

    def __init__(self) -> None:
        self.flags = 0
        self.vars: dict[str, Variable] = {}
        self.ops: dict[str, Operation] = {}
        self.funcs: dict[str, Function] = {}
        self.cnxs: dict[str, Connector] = {}
        self.blobs: dict[str, Blob] = {}

    def func(self, name: str | Function) -> Function:
        return _get(self.funcs, Function, name)

    def var(self, name: str | Variable, type: str = DT_FLOAT32, shape: Iterable[int] | None = None) -> Variable:  # noqa: A002
        """The variable with this name; if it is created, with this type and shape."""
        if isinstance(name, str) and name in self.vars:
            return self.vars[name]
        made = not isinstance(name, Variable)
        found = _get(self.vars, Variable, name)
        if made:
            found.type = type
            found.shape = [] if shape is None else [int(size) for size in shape]
        return found

    def op(self, name: str | Operation) -> Operation:
        return _get(self.ops, Operation, name)

    def cnx(self, name: str | Connector) -> Connector:
        return _get(self.cnxs, Connector, name)

    def blob(self, name: str | Blob) -> Blob:
        return _get(self.blobs, Blob, name)

    def rename_prefix(self, prefix: str, replacement: str) -> None:
        """Replace the prefix of all names that begin with `prefix`."""
        self._rename(lambda n: replacement + n.removeprefix(prefix) if n.startswith(prefix) else n)

    def rename_suffix(self, suffix: str, replacement: str) -> None:
        """Replace the suffix of all names that end with `suffix`."""
        self._rename(lambda n: n.removesuffix(suffix) + replacement if n.endswith(suffix) else n)

    def _rename(self, renamed: Any) -> None:
        for records in (self.vars, self.ops, self.funcs, self.cnxs, self.blobs):
            found: dict[str, Any] = {}
            for record in records.values():
                record.name = renamed(record.name)
                if record.name in found:
                    raise ModelError(f"'{record.name}' would be the name of two {type(record).__name__.lower()}s")
                found[record.name] = record
            records.clear()
            records.update(found)

    def inputs(self, func: Function | None = None, variable: bool = True, const: bool = True) -> list[Variable]:
        """The variables that no operation computes (and that `func` reads), constants and others as selected."""
        return [
            v
            for v in self.vars.values()
            if v.producer is None
            and (func is None or any(o.func is func for o in v.consumers))
            and (const if v.data is not None else variable)
        ]

    def outputs(self, func: Function | None = None, variable: bool = True, const: bool = True) -> list[Variable]:
        """The variables that no operation reads (and that `func` computes)."""
        return [
            v
            for v in self.vars.values()
            if not v.consumers
            and (func is None or (v.producer is not None and v.producer.func is func))
            and (const if v.data is not None else variable)
        ]

    def order(self, func: Function) -> tuple[list[Variable], list[Operation]]:
        """The variables and operations of a function in topological order.

        Raises ModelError if operations depend on each other in a cycle.
        """
        waiting = {o: {v for v in o.inputs if v.producer is not None and v.producer.func is func} for o in func.ops}
        variables = list(dict.fromkeys(v for o in func.ops for v in o.inputs if v not in waiting[o]))
        ready = [o for o, needed in waiting.items() if not needed]
        operations: list[Operation] = []
        while ready:
            operation = ready.pop()
            operations.append(operation)
            for variable in operation.outputs:
                variables.append(variable)
                for consumer in dict.fromkeys(variable.consumers):
                    needed = waiting.get(consumer, set())
                    if variable in needed:
                        needed.remove(variable)
                        if not needed:
                            ready.append(consumer)
        if len(operations) != len(func.ops):
            raise ModelError(f"operations of function '{func.name}' depend on their own outputs")
        return variables, operations

    def __str__(self) -> str:
        lines: list[str] = []
        for function in self.funcs.values():
            variables, operations = self.order(function)
            lines.append(f"func {function.name} {{")
            lines += [f"  {v}" for v in variables if v.producer is None]
            lines += [f"  {operation}" for operation in operations]
            lines.append("}")
        for connector in self.cnxs.values():
            lines.append(f"cnx {connector.name} = {', '.join(v.name for v in connector.links)}")
        for blob in self.blobs.values():
            lines.append(f"blob {blob.name} : {blob.type}")
        return "\n".join(lines)
