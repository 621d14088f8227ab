"""Encoding of values as documents, for cache entries (`decoding` reads them) and for keys.

A value is a graph of nodes: numbers, strings, bytes, arrays, tuples, dictionaries, and records, which are instances of
the classes in `records`. Equal nodes are merged. Nodes form groups, each after the groups that it refers to, so that a
group is decoded with one pass over each field. A document consists of

- five 8-byte numbers: the counts of groups, bytes of names, bytes of text, bytes of references, and integers
- for each group three 8-byte numbers: the index of its kind's name, the count of its nodes, and the count of references
  of each node
- the names of kinds, one per line; the text of all strings, whose lengths are among the integers
- references to nodes as 4-byte numbers, field by field; 8-byte integers; 8-byte floats

each on an 8-byte boundary. Nodes 0 to 2 are None, False and True; the last node is the value. The elements of arrays
and the content of bytes are in buffers beside the document, which nodes refer to by number. So are the operations of a
subgraph that can be run without them: they form a document of their own, which is decoded on demand. The elements of
large arrays may be stored apart, where documents that contain equal ones share them; nodes refer to these by a name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import Any

import numpy as np
from attrs import has

from onert.ir import Array, Constant, DType, Subgraph
from onert.ir.quant import Numbers

from .records import Records, construction

FIXED = (None, False, True)
"""The first nodes of every document."""
LAZY_FIELD = "operations"
"""The field of a subgraph that is decoded on demand."""
HEAD = struct.Struct("<5q")
GROUP = struct.Struct("<3q")

_FEW = 256
"""Up to this many numbers are stored in the document, more in a buffer."""

APART_BYTES = 1 << 18
"""Arrays of at least this many bytes are stored apart, if there is a place."""

Apart = Callable[[memoryview], str]
"""Stores the elements of an array, and returns their name."""

_Key = tuple[str, Any]


class EncodeError(Exception):
    """The value contains something that is not data, or whose class is not in the closed list."""


def encode(
    value: object, records: Records, parts: Mapping[int, int] | None = None, apart: Apart | None = None
) -> tuple[bytes, list[bytes | memoryview]]:
    """The document of a value and its buffers, identical in every process.

    Objects whose identity is in `parts` are represented by their number there, and large arrays by the name that
    `apart` gives them, if there is one. Raises EncodeError if the value cannot be encoded.
    """
    encoder = _Encoder(records, {} if parts is None else parts, [], apart)
    try:
        return encoder.document(encoder.node(value)), encoder.buffers
    except RecursionError as error:
        raise EncodeError("the value is nested too deeply") from error
    except TypeError as error:  # a set with members that cannot be sorted, a class whose constructor lacks a field
        raise EncodeError(str(error)) from error


class _Encoder:
    """Nodes by content, in order of first occurrence, each with its level, which is above those it refers to."""

    def __init__(
        self, records: Records, parts: Mapping[int, int], buffers: list[bytes | memoryview], apart: Apart | None
    ) -> None:
        self.buffers = buffers
        self._records = records
        self._parts = parts
        self._apart = apart
        self._nodes: dict[_Key, int] = {("fixed", value): at for at, value in enumerate(FIXED)}
        self._levels = [0] * len(FIXED)
        self._node_of: dict[int, int] = {}
        self._bytes: dict[bytes, int] = {}
        self._alive: list[object] = []

    def node(self, value: Any) -> int:
        """The node of a value."""
        kind = type(value)
        if kind is str:
            return self._leaf("str", value)
        if kind is int:
            return self._int(value)
        if value is None or kind is bool:
            return FIXED.index(value)
        found = self._node_of.get(id(value))
        if found is None:
            found = self._node_of[id(value)] = self._new_node(value, kind)
            self._alive.append(value)  # otherwise another value could get the same id
        return found

    def _new_node(self, value: Any, kind: type[Any]) -> int:
        if id(value) in self._parts:
            return self._leaf("part", self._parts[id(value)])
        if kind is tuple:
            return self._tuple(value)
        if kind is float:
            return self._leaf("float", struct.pack("<d", value))
        if kind is dict:
            return self._composite("dict", [self.node(each) for pair in value.items() for each in pair])
        if kind is bytes:
            if value not in self._bytes:
                self._bytes[value] = self._buffer("bytes", value)
            return self._bytes[value]
        if kind is frozenset:
            return self._composite("set", [self.node(each) for each in sorted(value)])
        if kind is Constant:
            array = np.asarray(value.array)
            if self._is_apart(array):
                return self._composite("constant apart", self._named(array))
            return self._composite("constant", [self.node(array)])
        if kind is Numbers:
            stored = tuple(value.stored.tolist()) if len(value.stored) <= _FEW else value.stored
            return self._composite("numbers", [self.node(stored), self.node(value.length)])
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.integer | np.bool_ | np.float64):
            return self.node(value.item())
        if isinstance(value, np.dtype):
            return self._composite("dtype", [self.node(_text(value))])
        if any(value is memory for memory in self._records.memories.values()):
            return self._composite("memory", [self.node(value.name)])
        return self._record(value, kind)

    def _record(self, value: Any, kind: type[Any]) -> int:
        name = self._records.name(kind)
        if name is None:
            raise EncodeError(f"{kind.__module__}.{kind.__qualname__} is not a class that can be serialised")
        if isinstance(value, Enum):
            return self._composite(name, [self.node(value.name)])
        if not has(kind):
            raise EncodeError(f"{kind.__qualname__} is not an attrs class")
        members = []
        for each in construction(kind):
            member = getattr(value, each.name)
            if id(member) not in self._parts and not self._records.accepts(each, (member,)):
                raise EncodeError(f"{kind.__qualname__}.{each.name} is a {type(member).__qualname__}")
            is_lazy = kind is Subgraph and each.name == LAZY_FIELD and not value.notable
            members.append(self._separate_document(member) if is_lazy else self.node(member))
        return self._composite(name, members)

    def _separate_document(self, value: Any) -> int:
        """A value in a document of its own."""
        encoder = _Encoder(self._records, self._parts, self.buffers, self._apart)
        return self._buffer("later", encoder.document(encoder.node(value)))

    def _int(self, value: int) -> int:
        if -(1 << 63) <= value < 1 << 63:
            return self._leaf("int", value)
        return self._composite("long", [self._leaf("str", str(value))])

    def _tuple(self, value: tuple[Any, ...]) -> int:
        """A tuple; one that has only integers or only floats is stored as a run of numbers."""
        kinds = set(map(type, value))
        if kinds == {int}:
            try:
                return self._leaf("ints", struct.pack(f"<{len(value)}q", *value))
            except struct.error:  # one does not fit into 64 bits
                pass
        if kinds == {float}:
            return self._leaf("floats", struct.pack(f"<{len(value)}d", *value))
        return self._composite("tuple", [self.node(each) for each in value])

    def _buffer(self, kind: str, value: bytes | memoryview) -> int:
        self.buffers.append(value)
        return self._leaf(kind, len(self.buffers) - 1)

    def _is_apart(self, value: Array) -> bool:
        return self._apart is not None and value.dtype != object and value.nbytes >= APART_BYTES

    def _named(self, value: Array) -> list[int]:
        """An array whose elements are stored apart: its element type, its shape, and the name of the elements."""
        assert self._apart is not None
        return [self.node(value.dtype), self.node(value.shape), self.node(self._apart(_elements(value)))]

    def _array(self, value: Array) -> int:
        if self._is_apart(value):
            return self._composite("apart", self._named(value))
        shape = self.node(value.shape)
        if value.dtype == object:
            return self._composite("objects", [shape, self.node(tuple(value.reshape(-1).tolist()))])
        return self._composite("array", [self.node(value.dtype), shape, self._buffer("elements", _elements(value))])

    def _leaf(self, kind: str, value: Hashable) -> int:
        return self._add((kind, value), 0)

    def _composite(self, kind: str, members: Sequence[int]) -> int:
        return self._add((kind, tuple(members)), 1 + max(map(self._levels.__getitem__, members), default=0))

    def _add(self, key: _Key, level: int) -> int:
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = len(self._levels)
            self._levels.append(level)
        return found

    def document(self, root: int) -> bytes:
        """The document with all nodes, `root` as the last."""
        keys = list(self._nodes)
        sizes = [len(key[1]) if self._levels[at] else 0 for at, key in enumerate(keys)]
        order = sorted(range(len(FIXED), len(keys)), key=lambda at: (self._levels[at], keys[at][0], sizes[at]))
        number = {at: at for at in range(len(FIXED))} | {at: len(FIXED) + n for n, at in enumerate(order)}
        writer = _Writer()
        for (level, kind, width), group in groupby(order, lambda at: (self._levels[at], keys[at][0], sizes[at])):
            nodes = [keys[at][1] for at in group]
            if level == 0:
                writer.leaves(kind, nodes)
            else:
                writer.records(kind, width, [[number[each] for each in node] for node in nodes])
        writer.records("root", 1, [[number[root]]])
        return writer.document()


def _elements(array: Array) -> memoryview:
    """The bytes of an array's elements, in order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _text(dtype: np.dtype[Any]) -> str:
    """The name of the element type for a NumPy dtype."""
    try:
        return DType.from_numpy(dtype).text
    except ValueError as error:
        raise EncodeError(str(error)) from error


class _Writer:
    """Collects the parts of a document."""

    def __init__(self) -> None:
        self._groups: list[bytes] = []
        self._text: list[bytes] = []
        self._references: list[int] = []
        self._integers: list[int] = []
        self._floats: list[bytes] = []
        self._kinds: dict[str, int] = {}

    def _group(self, kind: str, count: int, width: int) -> None:
        at = self._kinds.setdefault(kind, len(self._kinds))
        self._groups.append(GROUP.pack(at, count, width))

    def leaves(self, kind: str, nodes: Sequence[Any]) -> None:
        """Add a group of nodes that refer to no others."""
        self._group(kind, len(nodes), 0)
        if kind == "float":
            self._floats += nodes
        elif kind == "str":
            raw = [node.encode("utf-8", "surrogatepass") for node in nodes]
            self._integers += map(len, raw)
            self._text += raw
        elif kind == "ints":
            self._integers += (len(node) // 8 for node in nodes)
            self._integers += (each for node in nodes for each in struct.unpack(f"<{len(node) // 8}q", node))
        elif kind == "floats":
            self._integers += (len(node) // 8 for node in nodes)
            self._floats += nodes
        else:
            self._integers += nodes

    def records(self, kind: str, width: int, nodes: Sequence[Sequence[int]]) -> None:
        """Add a group of nodes with `width` references each, written field by field."""
        self._group(kind, len(nodes), width)
        self._references += (each for column in zip(*nodes, strict=True) for each in column)

    def document(self) -> bytes:
        names = "\n".join(self._kinds).encode()
        pieces = [
            names,
            b"".join(self._text),
            np.array(self._references, "<u4").tobytes(),
            np.array(self._integers, "<i8").tobytes(),
            b"".join(self._floats),
        ]
        head = HEAD.pack(len(self._groups), *map(len, pieces[:3]), len(self._integers))
        return head + b"".join(self._groups) + b"".join(piece + bytes(-len(piece) % 8) for piece in pieces)
