"""Decodes the records of a flow file. Every length is checked before it is used."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from onert.ir import ModelError

from .records import VERSIONS, Attributes, Blob, Connector, FlowFile, Function, Operation, Variable, VariableFlag

MAGIC = b"flow"
_INT, _LONG = struct.Struct("<i"), struct.Struct("<Q")
Record = TypeVar("Record")


def decode(data: memoryview | bytes) -> FlowFile:
    """The records of a flow file; the data of variables and blobs are views of `data`.

    Raises ModelError with the offset of the first malformed byte.
    """
    return _Reader(memoryview(data).toreadonly().cast("B")).flow()


class _Reader:
    """Reads the file sequentially; the parameter `what` names each item in errors."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0
        self._version = VERSIONS[-1]

    def flow(self) -> FlowFile:
        if self._bytes(4, "the magic number") != MAGIC:
            raise ModelError(f"byte 0: begins with {bytes(self._data[:4])!r}, expected {MAGIC!r}")
        self._version = version = self._int("the version")
        if version not in VERSIONS:
            raise ModelError(f"byte 4: the version is {version}, expected {VERSIONS[0]} to {VERSIONS[-1]}")
        flags = self._flags("the flow")
        variables = self._list("variables", self._variable, 20)
        operations = self._list("operations", self._operation, 20)
        functions = self._list("functions", self._function, 8)
        connectors = self._list("connectors", self._connector, 8)
        blobs = self._list("blobs", self._blob, 20) if version >= 4 else ()
        return FlowFile(version, variables, operations, functions, connectors, blobs, flags, self._data[self._at :])

    # ---- records

    def _variable(self, what: str) -> Variable:
        offset, flags, name = self._at, self._flags(what), self._str(f"the name of {what}")
        what = f"{what} '{name}'"
        aliases = self._strs(f"aliases of {what}")
        type_ = self._str(f"the type of {what}")
        if self._version < 5 and type_.startswith("&"):
            type_, flags = type_[1:], VariableFlag.REF
        shape = self._list(f"dimensions of {what}", self._size, 4)
        attributes = self._attributes(what) if self._version >= 6 else ()
        return Variable(name, type_, shape, int(flags), aliases, attributes, self._value(what), offset=offset)

    def _operation(self, what: str) -> Operation:
        offset, flags, name = self._at, self._flags(what), self._str(f"the name of {what}")
        what = f"{what} '{name}'"
        type_ = self._str(f"the type of {what}")
        inputs, outputs = self._strs(f"inputs of {what}"), self._strs(f"outputs of {what}")
        return Operation(name, type_, inputs, outputs, self._attributes(what), flags, offset=offset)

    def _function(self, what: str) -> Function:
        offset, flags, name = self._at, self._flags(what), self._str(f"the name of {what}")
        return Function(name, self._strs(f"operations of {what} '{name}'"), flags, offset=offset)

    def _connector(self, what: str) -> Connector:
        offset, flags, name = self._at, self._flags(what), self._str(f"the name of {what}")
        return Connector(name, self._strs(f"links of {what} '{name}'"), flags, offset=offset)

    def _blob(self, what: str) -> Blob:
        offset, flags, name = self._at, self._flags(what), self._str(f"the name of {what}")
        what = f"{what} '{name}'"
        type_, attributes = self._str(f"the type of {what}"), self._attributes(what)
        return Blob(name, type_, attributes, self._value(what), flags, offset=offset)

    # ---- parts of records

    def _flags(self, what: str) -> int:
        return self._int(f"the flags of {what}") if self._version >= 5 else 0

    def _size(self, what: str) -> int:
        at, size = self._at, self._int(what)
        if size < -1:
            raise ModelError(f"byte {at}: {what} is {size}, expected at least -1")
        return size

    def _attributes(self, what: str) -> Attributes:
        return self._list(f"attributes of {what}", self._attribute, 8)

    def _attribute(self, what: str) -> tuple[str, str]:
        return self._str(f"the name of {what}"), self._str(f"the value of {what}")

    def _strs(self, what: str) -> tuple[str, ...]:
        return self._list(what, self._str, 4)

    def _list(self, what: str, read: Callable[[str], Record], least: int) -> tuple[Record, ...]:
        """A count and that many records of at least `least` bytes each; `what` is their plural."""
        at, count = self._at, self._int(f"the number of {what}")
        if not 0 <= count <= self._left // least:
            raise ModelError(f"byte {at}: the number of {what} is {count}, but {self._left} bytes follow")
        plural, _, of = what.partition(" ")
        one = _SINGULAR.get(plural, plural.removesuffix("s"))
        return tuple(read(f"{one} {i} {of}" if of else f"{one} {i}") for i in range(count))

    def _value(self, what: str) -> memoryview:
        what = f"the data of {what}"
        at = self._at
        (length,) = _LONG.unpack(self._bytes(8, f"the length of {what}"))
        if length > self._left:
            raise ModelError(f"byte {at}: {what} has {length} bytes, but {self._left} follow")
        return self._bytes(length, what)

    def _str(self, what: str) -> str:
        at, length = self._at, self._int(f"the length of {what}")
        if not 0 <= length <= self._left:
            raise ModelError(f"byte {at}: {what} has {length} bytes, but {self._left} follow")
        try:
            return str(self._bytes(length, what), "utf-8")
        except UnicodeDecodeError as error:
            raise ModelError(f"byte {at + 4 + error.start}: {what} is not UTF-8") from error

    def _int(self, what: str) -> int:
        return int(_INT.unpack(self._bytes(4, what))[0])

    def _bytes(self, count: int, what: str) -> memoryview:
        if count > self._left:
            raise ModelError(f"byte {self._at}: {what} has {count} bytes, but {self._left} follow")
        self._at += count
        return self._data[self._at - count : self._at]

    @property
    def _left(self) -> int:
        return len(self._data) - self._at


_SINGULAR = {"aliases": "alias"}
