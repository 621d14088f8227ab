"""Reading untrusted flatbuffers: every offset is checked before it is followed.

Source: the FlatBuffers binary format ("FlatBuffer Internals"). A table starts with a signed offset back to its vtable;
the vtable holds its own size, the table's size and each field's offset in the table, 0 for an absent field.
"""

from __future__ import annotations

import builtins
import struct
from collections.abc import Iterator

import numpy as np

from onert.ir import Array, ModelError
from onert.ir.process.budget import Budget

_I32, _U16, _U32 = struct.Struct("<i"), struct.Struct("<H"), struct.Struct("<I")
_SCALARS = {code: struct.Struct("<" + code) for code in "?bBhHiIqQfd"}
_OTHER_NAMES = {"?": "u1", "b": "i1", "B": "u1", "h": "i2", "H": "u2"}
_DTYPES = {code: np.dtype("<" + _OTHER_NAMES.get(code, code)) for code in _SCALARS}

Data = memoryview


_FREE = 1 << 18
LETTERS = 16
"""The number of bytes of a string or of options that are read per unit of work."""
_READING = "reading what its offsets refer to"


def budget(nbytes: int) -> Budget:
    """The work budget for reading a file of `nbytes` bytes, with a minimum for small files.

    A file whose offsets do not share targets has at most one table or number per four bytes; real models need about a
    quarter of a step per byte.
    """
    return Budget(_FREE + 2 * nbytes, ModelError)


def root(data: Data, budget: Budget) -> Table:
    """The root table. Raises ModelError if it is not inside the data. All reads are charged to the budget."""
    return Table(data, _offset(data, 0), budget)


def identifier(data: Data) -> bytes:
    """The file identifier: four bytes after the root offset."""
    return bytes(data[4:8])


def _offset(data: Data, at: int) -> int:
    """The target of the unsigned offset at `at`."""
    _require(data, at, 4)
    return at + int(_U32.unpack_from(data, at)[0])


def _require(data: Data, at: int, size: int) -> None:
    if at < 0 or size < 0 or at + size > len(data):
        raise ModelError(f"an offset points to byte {at}, {size} bytes wide, outside of the file's {len(data)} bytes")


class Table:
    """A table whose vtable and extent have been checked to be inside the data."""

    __slots__ = ("_data", "_fields", "_position", "_size", "_vtable", "budget")

    def __init__(self, data: Data, position: int, budget: Budget) -> None:
        budget.spend(1, _READING)
        _require(data, position, 4)
        vtable = position - _I32.unpack_from(data, position)[0]
        _require(data, vtable, 4)
        self._fields, self._size = _U16.unpack_from(data, vtable)[0], _U16.unpack_from(data, vtable + 2)[0]
        _require(data, vtable, self._fields)
        _require(data, position, self._size)
        if self._fields < 4 or self._fields % 2:
            raise ModelError(f"a table at byte {position} has a vtable of {self._fields} bytes")
        self.budget = budget
        self._data = data
        self._position = position
        self._vtable = vtable

    @property
    def position(self) -> int:
        """The table's offset in the file."""
        return self._position

    def has(self, slot: int) -> bool:
        """Whether the field is present."""
        return self._at(slot, 1) is not None

    def _at(self, slot: int, size: int) -> int | None:
        """The offset of the field in a slot; None if it is absent."""
        entry = 4 + 2 * slot
        if entry + 2 > self._fields:
            return None
        offset = _U16.unpack_from(self._data, self._vtable + entry)[0]
        if offset == 0:
            return None
        if offset < 4 or offset + size > self._size:
            raise ModelError(f"field {slot} of the table at byte {self._position} lies outside of the table")
        return self._position + int(offset)

    def scalar(self, slot: int, code: str, default: float) -> float:
        """A number whose type is given as a struct format character."""
        packed = _SCALARS[code]
        at = self._at(slot, packed.size)
        return default if at is None else packed.unpack_from(self._data, at)[0]

    def table(self, slot: int) -> Table | None:
        """The table that the field refers to; None if it is absent."""
        at = self._at(slot, 4)
        return None if at is None else Table(self._data, _offset(self._data, at), self.budget)

    def _vector(self, slot: int, width: int) -> tuple[int, int] | None:
        """Start and count of a vector whose elements are `width` bytes wide; None if it is absent."""
        at = self._at(slot, 4)
        if at is None:
            return None
        start = _offset(self._data, at)
        _require(self._data, start, 4)
        count = _U32.unpack_from(self._data, start)[0]
        _require(self._data, start + 4, count * width)
        return start + 4, count

    def array(self, slot: int, code: str) -> Array:
        """A vector of numbers as a read-only view of the data; empty if it is absent."""
        dtype = _DTYPES[code]
        found = self._vector(slot, dtype.itemsize)
        if found is None:
            return np.zeros(0, dtype)
        self.budget.spend(found[1], _READING)
        return np.frombuffer(self._data, dtype, found[1], found[0])

    def bytes(self, slot: int) -> Data | None:
        """A vector of bytes; None if it is absent."""
        found = self._vector(slot, 1)
        return None if found is None else self._data[found[0] : found[0] + found[1]]

    def text(self, slot: int) -> str:
        """A string; empty if it is absent. Raises ModelError if it is not UTF-8."""
        raw = self.bytes(slot)
        if raw is not None:
            self.budget.spend(len(raw) // LETTERS, _READING)
        return "" if raw is None else self._decoded(raw)

    def octets(self, slot: int) -> builtins.bytes:
        """A copy of a vector of bytes; empty if it is absent."""
        raw = self.bytes(slot)
        if raw is None:
            return b""
        self.budget.spend(len(raw) // LETTERS, _READING)
        return builtins.bytes(raw)

    def strings(self, slot: int) -> tuple[builtins.bytes, ...]:
        """Copies of the strings of a vector; empty if it is absent."""
        found = self._vector(slot, 4)
        start, count = found or (0, 0)
        return tuple(self._string(start + 4 * index) for index in range(count))

    def _string(self, at: int) -> builtins.bytes:
        start = _offset(self._data, at)
        _require(self._data, start, 4)
        size = int(_U32.unpack_from(self._data, start)[0])
        _require(self._data, start + 4, size)
        self.budget.spend(1 + size // LETTERS, _READING)
        return builtins.bytes(self._data[start + 4 : start + 4 + size])

    def texts(self, slot: int) -> tuple[str, ...]:
        """The strings of a vector. Raises ModelError if one is not UTF-8."""
        return tuple(map(self._decoded, self.strings(slot)))

    def _decoded(self, raw: Data | builtins.bytes) -> str:
        try:
            return builtins.bytes(raw).decode()
        except UnicodeDecodeError as error:
            raise ModelError(f"a string of the table at byte {self._position} is not UTF-8") from error

    def tables(self, slot: int) -> Iterator[Table]:
        """Yield the tables of a vector."""
        found = self._vector(slot, 4)
        if found is not None:
            start, count = found
            for index in range(count):
                yield Table(self._data, _offset(self._data, start + 4 * index), self.budget)

    def count(self, slot: int) -> int:
        """The number of tables in a vector."""
        found = self._vector(slot, 4)
        return 0 if found is None else found[1]
