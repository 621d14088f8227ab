"""Reading untrusted protocol buffers: every length is checked before it is followed.

Source: the Protocol Buffers encoding ("Encoding", wire types 0, 1, 2 and 5). A message is a sequence of fields, each a
varint with its number and wire type, followed by its value. Groups (3 and 4) are deprecated and rejected.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from attrs import frozen

from onert.frontend.flatbuffer import LETTERS, Data
from onert.frontend.windows import Window
from onert.ir import Array, ModelError
from onert.ir.process.budget import Budget
from onert.ir.value import ByIdentity

Octets = Data | Window
"""The bytes of a message or field; those of a window are read from its file when they are used."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST = 10
"""The maximum size of a varint, in bytes."""
_FREE = 1 << 18
_READING = "reading its fields"
_F32, _F64 = struct.Struct("<f"), struct.Struct("<d")
_MASK = (1 << 64) - 1


def budget(nbytes: int) -> Budget:
    """The work budget for reading a file of `nbytes` bytes; fields do not overlap and take at least two bytes each."""
    return Budget(_FREE + 2 * nbytes, ModelError)


@frozen(eq=False)
class Field(ByIdentity):
    """A value on the wire: the bits of a varint, or bytes of the file; and its offset."""

    wire: int
    number: int
    content: Octets
    at: int

    @property
    def data(self) -> Data:
        """The content in memory."""
        return self.content if isinstance(self.content, memoryview) else memoryview(bytes(self.content))


class Message:
    """The fields of a message by number. An absent field has its type's zero value."""

    __slots__ = ("_fields", "at", "budget")

    def __init__(self, data: Octets, budget: Budget, at: int = 0) -> None:
        self.budget = budget
        self.at = at
        self._fields: dict[int, list[Field]] = {}
        for number, field in _read(data, at, budget):
            self._fields.setdefault(number, []).append(field)

    def has(self, number: int) -> bool:
        """Whether the field is present."""
        return number in self._fields

    def _last(self, number: int, wire: int) -> Field | None:
        found = self._fields.get(number)
        if found is None:
            return None
        if found[-1].wire != wire:
            raise ModelError(f"field {number} at byte {found[-1].at} has wire type {found[-1].wire}, expected {wire}")
        return found[-1]

    def integer(self, number: int, default: int = 0) -> int:
        """A signed 64-bit integer."""
        field = self._last(number, _VARINT)
        return default if field is None else _signed(field.number)

    def real(self, number: int) -> float:
        """A 32-bit float."""
        field = self._last(number, _FIXED32)
        return 0.0 if field is None else float(_F32.unpack(field.data)[0])

    def octets(self, number: int) -> Data:
        """Bytes, as a view of the file's content if that is in memory."""
        field = self._last(number, _BYTES)
        return memoryview(b"") if field is None else field.data

    def text(self, number: int) -> str:
        field = self._last(number, _BYTES)
        return "" if field is None else self._decoded(field)

    def texts(self, number: int) -> tuple[str, ...]:
        return tuple(self._decoded(field) for field in self._all(number, _BYTES))

    def strings(self, number: int) -> tuple[bytes, ...]:
        """Repeated byte strings, copied."""
        found = tuple(bytes(field.content) for field in self._all(number, _BYTES))
        self.budget.spend(sum(map(len, found)) // LETTERS, _READING)
        return found

    def message(self, number: int) -> Message | None:
        """The message in a field; None if it is absent. Raises ModelError if the field is repeated."""
        found = self._all(number, _BYTES)
        if len(found) > 1:
            raise ModelError(f"field {number} at byte {found[1].at} is repeated, expected one message")
        return Message(found[0].content, self.budget, found[0].at) if found else None

    def messages(self, number: int) -> Iterator[Message]:
        for field in self._all(number, _BYTES):
            yield Message(field.content, self.budget, field.at)

    def integers(self, number: int) -> Array:
        """Repeated signed 64-bit integers, packed or not."""
        return np.concatenate([np.zeros(0, np.int64), *(self._varints(f) for f in self._fields.get(number, ()))])

    def reals(self, number: int, dtype: str = "<f4") -> Array:
        """Repeated floats of 32 (`<f4`) or 64 bits (`<f8`), packed or not."""
        wide = dtype == "<f8"
        parts = []
        for field in self._fields.get(number, ()):
            if field.wire not in (_BYTES, _FIXED64 if wide else _FIXED32):
                raise ModelError(f"field {number} at byte {field.at} has wire type {field.wire}, expected floats")
            if len(field.content) % (8 if wide else 4):
                raise ModelError(f"field {number} at byte {field.at} has {len(field.content)} bytes of floats")
            parts.append(np.frombuffer(field.data, dtype))
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype), *parts])

    def _all(self, number: int, wire: int) -> list[Field]:
        found = self._fields.get(number, [])
        for field in found:
            if field.wire != wire:
                raise ModelError(f"field {number} at byte {field.at} has wire type {field.wire}, expected {wire}")
        return found

    def _decoded(self, field: Field) -> str:
        self.budget.spend(len(field.content) // LETTERS, _READING)
        try:
            return bytes(field.content).decode()
        except UnicodeDecodeError as error:
            raise ModelError(f"the string at byte {field.at} is not UTF-8") from error

    def _varints(self, field: Field) -> Array:
        if field.wire == _VARINT:
            return np.array([_signed(field.number)], np.int64)
        if field.wire != _BYTES:
            raise ModelError(f"the field at byte {field.at} has wire type {field.wire}, expected integers")
        return _packed(field, self.budget)


def _read(data: Octets, base: int, budget: Budget) -> Iterator[tuple[int, Field]]:
    """Yield the numbers and values of a message's fields in order."""
    at, size = 0, len(data)
    while at < size:
        budget.spend(1, _READING)
        start = at
        key, at = _varint(data, at, base)
        number, wire = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise ModelError(f"the field at byte {base + start} has number {number}, expected 1 to {(1 << 29) - 1}")
        bits = 0
        if wire == _VARINT:
            bits, stop = _varint(data, at, base)
        elif wire == _BYTES:
            length, at = _varint(data, at, base)
            stop = at + length
        elif wire in (_FIXED32, _FIXED64):
            stop = at + (4 if wire == _FIXED32 else 8)
        else:
            raise ModelError(f"field {number} at byte {base + start} has wire type {wire}, expected 0, 1, 2 or 5")
        if stop > size:
            raise ModelError(
                f"field {number} at byte {base + start} ends {stop - size} bytes after its enclosing message of "
                f"{size} bytes"
            )
        yield number, Field(wire, bits, data[at:stop], base + at)
        at = stop


def _varint(data: Octets, at: int, base: int) -> tuple[int, int]:
    """The varint at a position, and where the next field starts."""
    value = shift = 0
    for index in range(at, min(at + _LONGEST, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, index + 1
        shift += 7
    raise ModelError(f"the integer at byte {base + at} does not end within {min(_LONGEST, len(data) - at)} bytes")


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


def _packed(field: Field, budget: Budget) -> Array:
    """Decode all varints of a packed field at once: a byte below 0x80 ends a varint."""
    octets = np.frombuffer(field.data, np.uint8)
    if not octets.size:
        return np.zeros(0, np.int64)
    ends = np.flatnonzero(octets < 0x80)
    if not ends.size or ends[-1] != octets.size - 1:
        raise ModelError(f"the last integer of the field at byte {field.at} does not end within it")
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if lengths.max() > _LONGEST:
        raise ModelError(f"an integer of the field at byte {field.at} is longer than {_LONGEST} bytes")
    budget.spend(len(ends) // LETTERS, _READING)
    places = np.arange(octets.size) - np.repeat(starts, lengths)
    parts = (octets & np.uint8(0x7F)).astype(np.uint64) << (7 * places).astype(np.uint64)
    out: Array = np.add.reduceat(parts, starts).view(np.int64)
    return out
