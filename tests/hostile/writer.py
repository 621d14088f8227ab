"""Writes flatbuffers by a schema's slots, and TFLite files, so that one object may be referenced any number of times.

Every Python object that stands for a string, a vector or a table is written once: two fields that hold the same object
hold offsets to the same bytes. That is how a small file comes to describe a large model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flatbuffers
import numpy as np

from onert.frontend.tflite_schema.schema import Field, layout, names
from onert.ir import Array

_PREPEND = {
    "?": flatbuffers.Builder.PrependBoolSlot,
    "b": flatbuffers.Builder.PrependInt8Slot,
    "B": flatbuffers.Builder.PrependUint8Slot,
    "i": flatbuffers.Builder.PrependInt32Slot,
    "I": flatbuffers.Builder.PrependUint32Slot,
    "q": flatbuffers.Builder.PrependInt64Slot,
    "Q": flatbuffers.Builder.PrependUint64Slot,
    "f": flatbuffers.Builder.PrependFloat32Slot,
}
_BUILTIN = {name: number for number, name in names("BuiltinOperator").items()}
_UNIONS = tuple(
    (union, {name: number for number, name in names(union).items()}) for union in ("BuiltinOptions", "BuiltinOptions2")
)
FLOAT32, INT32, UINT8, INT64, STRING, BOOL, INT8, RESOURCE, INT4 = 0, 2, 3, 4, 5, 6, 9, 13, 17
"""The schema's TensorType."""


class Table:
    """A table of the schema by its name, and its fields."""

    def __init__(self, kind: str, **fields: Any) -> None:
        self.kind = kind
        self.fields = fields


class Writer:
    """Writes each object once. `slots_of` returns the fields of a table by name; without it they are TFLite's."""

    def __init__(self, slots_of: Callable[[str], Mapping[str, Field]] = layout) -> None:
        self.slots_of = slots_of
        self.builder = flatbuffers.Builder(1024)
        self.written: dict[int, int] = {}
        self.alive: list[object] = []  # keeps objects alive while their identities are keys

    def offset(self, value: Any) -> int:
        """The object's offset; writes it on first use."""
        if id(value) not in self.written:
            self.written[id(value)] = self._write(value)
            self.alive.append(value)
        return self.written[id(value)]

    def _write(self, value: Any) -> int:
        if isinstance(value, Table):
            return self._table(value)
        if isinstance(value, str):
            found: int = self.builder.CreateString(value)
            return found
        if isinstance(value, bytes):
            return self._vector(np.frombuffer(value, np.uint8))
        if isinstance(value, np.ndarray):
            return self._vector(value)
        offsets = [self.offset(item) for item in value]
        self.builder.StartVector(4, len(offsets), 4)
        for at in reversed(offsets):
            self.builder.PrependUOffsetTRelative(at)
        end: int = self.builder.EndVector()
        return end

    def _vector(self, array: Array) -> int:
        if not array.size:
            self.builder.StartVector(array.itemsize, 0, array.itemsize)
            empty: int = self.builder.EndVector()
            return empty
        found: int = self.builder.CreateNumpyVector(np.ascontiguousarray(array))
        return found

    def _table(self, table: Table) -> int:
        slots = self.slots_of(table.kind) or {"values": Field(0, "", 0)}  # the vectors of sparse dimensions
        offsets = {n: self.offset(v) for n, v in table.fields.items() if v is not None and not slots[n].code}
        self.builder.StartObject(16)
        for name, value in table.fields.items():
            field = slots[name]
            if name in offsets:
                self.builder.PrependUOffsetTRelativeSlot(field.slot, offsets[name], 0)
            elif value is not None:
                _PREPEND[field.code](self.builder, field.slot, value, field.default)
        end: int = self.builder.EndObject()
        return end

    def done(self, root: Table, identifier: bytes = b"TFL3") -> bytes:
        """The file."""
        self.builder.Finish(self.offset(root), identifier)
        return bytes(self.builder.Output())


Sizes = tuple[int, int, int]


class Classes(dict[str, tuple[Callable[[int], bytes], Sizes]]):
    """The maker of each class of files, by name, with the parameters of its small, medium and large file."""

    def sized(self, *sizes: *Sizes) -> Callable[[Callable[[int], bytes]], Callable[[int], bytes]]:
        """A decorator that adds a maker."""

        def added(make: Callable[[int], bytes]) -> Callable[[int], bytes]:
            self[make.__name__] = (make, sizes)
            return make

        return added


def integers(*values: int) -> Array:
    """A vector of the schema's `int`."""
    return np.array(values, np.int32)


def tensor(shape: Sequence[int] = (1,), kind: int = FLOAT32, buffer: int = 0, name: str = "", **more: Any) -> Table:
    """A tensor; with a nonzero buffer it is a constant."""
    return Table("Tensor", shape=integers(*shape), type=kind, buffer=buffer, name=name, **more)


class Model:
    """A model: subgraphs, buffers and operator codes by number."""

    def __init__(self, **more: Any) -> None:
        self.codes: list[Table] = []
        self.numbers: dict[str, int] = {}
        self.buffers: list[Table] = [Table("Buffer")]
        self.subgraphs: list[Table] = []
        self.more = more

    def buffer(self, data: Array | bytes) -> int:
        raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        self.buffers.append(Table("Buffer", data=raw))
        return len(self.buffers) - 1

    def constant(self, data: Array) -> Table:
        """A tensor with the elements of an array."""
        kinds = {"f": FLOAT32, "b": BOOL, "i": INT64 if data.dtype.itemsize == 8 else INT32}
        kind = INT8 if data.dtype == np.int8 else kinds[data.dtype.kind]
        return tensor(data.shape, kind, self.buffer(data))

    def integers(self, *values: int) -> Table:
        """A constant vector of int32."""
        return self.constant(integers(*values))

    def code(self, name: str) -> int:
        """The index of an operator's code; a name that is no builtin's is a custom code."""
        if name not in self.numbers:
            number = _BUILTIN.get(name, _BUILTIN["CUSTOM"])
            custom = None if name in _BUILTIN else name
            fields = {"deprecated_builtin_code": min(number, 127), "builtin_code": number, "custom_code": custom}
            version = 2 if name == "BROADCAST_TO" else 1
            self.codes.append(Table("OperatorCode", version=version, **fields))
            self.numbers[name] = len(self.codes) - 1
        return self.numbers[name]

    def operator(
        self, name: str, inputs: Sequence[int], outputs: Sequence[int], options: Table | None = None, **more: Any
    ) -> Table:
        """An operator; `options` is the table of its union."""
        fields: dict[str, Any] = {"inputs": integers(*inputs), "outputs": integers(*outputs), **more}
        if options is not None:
            prefix, kind = next(
                ("builtin_options2" if union.endswith("2") else "builtin_options", numbers[options.kind])
                for union, numbers in _UNIONS
                if options.kind in numbers
            )
            fields |= {f"{prefix}_type": kind, prefix: options}
        return Table("Operator", opcode_index=self.code(name), **fields)

    def graph(
        self,
        tensors: Sequence[Table],
        operators: Sequence[Table],
        inputs: Sequence[int] = (0,),
        outputs: Sequence[int] | None = None,
        name: str = "",
    ) -> Table:
        """A subgraph; its output is its last tensor unless `outputs` is given."""
        ends = (len(tensors) - 1,) if outputs is None else outputs
        fields = {"inputs": integers(*inputs), "outputs": integers(*ends), "name": name or None}
        self.subgraphs.append(Table("SubGraph", tensors=tensors, operators=operators, **fields))
        return self.subgraphs[-1]

    def file(self, *graph: Any, **more: Any) -> bytes:
        """The file, with a last subgraph, given as to `graph`."""
        self.graph(*graph, **more)
        return self.done()

    def done(self) -> bytes:
        """The file."""
        fields = {"operator_codes": self.codes, "subgraphs": self.subgraphs, "buffers": self.buffers}
        return Writer().done(Table("Model", version=3, **fields, **self.more))
