"""Decoding of documents that `encoding` wrote.

Nothing in a document is executed. It names classes of a closed list (`records`), which are called with one value per
field, each of a type that the field declares; the classes' own validators check them too. Every number is checked
before it is used. Any error in a document is reported as a DecodeError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
from attrs import frozen

from onert.ir import Array, CompileError, Constant, DType, OnertError, Operation, Subgraph
from onert.ir.quant import Numbers
from onert.ir.value import ByIdentity

from .encoding import FIXED, GROUP, HEAD, LAZY_FIELD
from .records import Records, construction

_Number = TypeVar("_Number", int, float)


class DecodeError(Exception):
    """The document is damaged, or was written with other classes."""


class Numbered(Protocol):
    """Objects that a document refers to by number; raises LookupError for an unknown number."""

    def __getitem__(self, at: int) -> object: ...


Fetch = Callable[[str], memoryview]
"""Returns the elements of an array that are stored apart; raises LookupError if they are not there."""


def _fetch_nothing(name: str) -> memoryview:
    raise LookupError(f"the elements {name!r} of an array are not in the document")


def decode(
    document: memoryview,
    buffers: Sequence[memoryview],
    records: Records,
    parts: Numbered = (),
    fetch: Fetch = _fetch_nothing,
) -> Any:
    """The value of a document. Arrays are views of the buffers, and of elements stored apart; those of constants are
    fetched when they are first used. Raises DecodeError if the document is invalid."""
    return _decoded(document, _Beside(buffers, records, parts, fetch))


@frozen(eq=False)
class _Beside(ByIdentity):
    """What a document and those within it refer to."""

    buffers: Sequence[memoryview]
    records: Records
    parts: Numbered
    fetch: Fetch


def _decoded(document: memoryview, beside: _Beside) -> Any:
    try:
        return _Decoder(document, beside).value()
    except _INVALID as error:
        raise DecodeError(f"the document cannot be read: {error}") from error


_INVALID = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError, struct.error, OnertError)
"""The exceptions that this module and the classes' validators raise for invalid numbers and names."""


class _Decoder:
    """The parts of a document, consumed in order as groups need them."""

    def __init__(self, document: memoryview, beside: _Beside) -> None:
        self._document = document
        self._beside = beside
        self._records = beside.records
        self._at = HEAD.size
        groups, names, text, references, integers = HEAD.unpack_from(document)
        self._groups: list[list[int]] = self._array(GROUP.size * groups, "<i8").reshape(-1, 3).tolist()
        self._names = str(self._take(names), "utf-8").split("\n")
        self._records.expect(name for name in self._names if "." in name)
        self._text = bytes(self._take(text))
        self._references = self._array(references, "<u4")
        self._integers: Iterator[int] = iter(self._array(8 * integers, "<i8").tolist())
        self._floats: Iterator[float] = iter(self._array(len(document) - self._at, "<f8").tolist())
        self._read = 0
        self._values: list[Any] = list(FIXED)

    def _take(self, size: int) -> memoryview:
        """The next bytes; skips their padding too."""
        start, end = self._at, self._at + size
        if size < 0 or end > len(self._document):
            raise ValueError(f"{size} bytes are expected at byte {start} of {len(self._document)}")
        self._at = end + -end % 8
        return self._document[start:end]

    def _array(self, size: int, kind: str) -> Array:
        return np.frombuffer(self._take(size), kind) if size else np.zeros(0, kind)

    def value(self) -> Any:
        """The value of the last node."""
        kind = ""
        for number, count, width in self._groups:
            kind = self._names[number]
            read = _LEAVES.get(kind)
            self._values += self._nodes(kind, count, width) if read is None else read(self, count)
        rest = len(self._references) + len(self._text) - self._read + _count(self._integers) + _count(self._floats)
        if kind != "root" or rest:
            raise ValueError(f"the document does not end with its value, or has {rest} extra numbers or bytes")
        return self._values[-1]

    def _nodes(self, kind: str, count: int, width: int) -> list[Any]:
        """A group of nodes that refer to earlier ones."""
        rest = len(self._references)
        if count < 1 or width < 0 or count * width > rest or (width == 0 and count > 1):
            raise ValueError(f"{count} nodes of {width} references are expected, {rest} references are left")
        block, self._references = self._references[: count * width], self._references[count * width :]
        if len(block) and block.max() >= len(self._values):
            raise ValueError(f"a node refers to node {block.max()}, but only {len(self._values)} precede it")
        columns = [list(map(self._values.__getitem__, column)) for column in block.reshape(width, count).tolist()]
        rows = list(zip(*columns, strict=True)) if columns else [()]
        if kind == "tuple":
            return rows
        if kind == "apart":
            return [_filled(dtype, shape, self._beside.fetch(name)) for dtype, shape, name in rows]
        if kind == "constant apart":
            return [Constant(_Apart(dtype, shape, name, self._beside.fetch)) for dtype, shape, name in rows]
        build = _BUILDERS.get(kind)
        if build is not None:
            return [build(*row) for row in rows]
        if kind == "dict":
            return [dict(zip(row[::2], row[1::2], strict=True)) for row in rows]
        if kind == "set":
            return [frozenset(row) for row in rows]
        if kind == "memory":
            return [self._records.memories[name] for (name,) in rows]
        return self._instances(self._records.kind(kind), columns)

    def _instances(self, kind: Any, columns: Sequence[Sequence[Any]]) -> list[Any]:
        if issubclass(kind, Enum):
            return [kind[name] for name in columns[0]]
        if kind is Subgraph:
            return [self._subgraph(row) for row in zip(*columns, strict=True)]
        for each, column in zip(construction(kind), columns, strict=True):
            if not self._records.accepts(each, column):
                raise TypeError(f"{kind.__qualname__}.{each.name} is not of type {each.type}")
        return list(map(kind, *columns)) if columns else [kind()]

    def _subgraph(self, row: Sequence[Any]) -> Subgraph:
        """A subgraph, possibly with operations that are decoded on demand."""
        members = {each.name: value for each, value in zip(construction(Subgraph), row, strict=True)}
        read = members.pop(LAZY_FIELD) if isinstance(members[LAZY_FIELD], _LazyOperations) else None
        for each in construction(Subgraph):
            if each.name in members and not self._records.accepts(each, (members[each.name],)):
                raise TypeError(f"Subgraph.{each.name} is not of type {each.type}")
        return Subgraph(**members) if read is None else Subgraph.later(read, **members)

    def later(self, count: int) -> list[_LazyOperations]:
        """Documents in buffers, decoded on demand."""
        return [_LazyOperations(each, self._beside) for each in self.elements(count)]

    def integers(self, count: int) -> list[int]:
        return _exactly(self._integers, count)

    def floats(self, count: int) -> list[float]:
        return _exactly(self._floats, count)

    def strings(self, count: int) -> list[str]:
        """Strings, whose lengths are integers."""
        found = []
        for size in self.integers(count):
            raw = self._text[self._read : self._read + size]
            if size < 0 or len(raw) != size:
                raise ValueError(f"a string of {size} bytes is expected, {len(raw)} are left")
            found.append(raw.decode("utf-8", "surrogatepass"))
            self._read += size
        return found

    def runs_of_integers(self, count: int) -> list[tuple[int, ...]]:
        return [tuple(self.integers(length)) for length in self.integers(count)]

    def runs_of_floats(self, count: int) -> list[tuple[float, ...]]:
        return [tuple(self.floats(length)) for length in self.integers(count)]

    def elements(self, count: int) -> list[memoryview]:
        """Buffers with the elements of arrays."""
        return [self._beside.buffers[at] for at in map(_natural, self.integers(count))]

    def contents(self, count: int) -> list[bytes]:
        """Buffers as bytes."""
        return [bytes(self._beside.buffers[at]) for at in map(_natural, self.integers(count))]

    def parts(self, count: int) -> list[object]:
        return [self._beside.parts[at] for at in map(_natural, self.integers(count))]


class _LazyOperations:
    """The operations of a subgraph, in a document of their own."""

    def __init__(self, document: memoryview, beside: _Beside) -> None:
        self._source = document, beside

    def __call__(self) -> tuple[Operation, ...]:
        """Decode the operations. Raises CompileError if the document is invalid; the program still runs then."""
        try:
            found = _decoded(*self._source)
        except DecodeError as error:
            raise CompileError(f"the operations of a program in the cache cannot be read: {error}") from error
        if not isinstance(found, tuple) or not all(isinstance(each, Operation) for each in found):
            raise CompileError("the operations of a program in the cache cannot be read: they are not operations")
        return found


class _Apart:
    """The array of a constant, whose elements are fetched when it is first used."""

    def __init__(self, dtype: Any, shape: Any, name: Any, fetch: Fetch) -> None:
        if not (isinstance(dtype, np.dtype) and isinstance(shape, tuple) and isinstance(name, str)):
            raise TypeError("a constant stored apart has other fields than its type, its shape and a name")
        self._fields = dtype, shape, name, fetch

    def __call__(self) -> Array:
        """The array. Raises CompileError if its elements are no longer there; the program still runs then."""
        dtype, shape, name, fetch = self._fields
        try:
            return _filled(dtype, shape, fetch(name))
        except _INVALID as error:
            raise CompileError(f"a constant of a program in the cache cannot be read: {error}") from error


def _exactly(source: Iterator[_Number], count: int) -> list[_Number]:
    """The next `count` numbers. Raises ValueError if fewer are left."""
    found = list(islice(source, count))
    if len(found) != count:
        raise ValueError(f"{count} numbers are expected, {len(found)} are left")
    return found


def _count(rest: Iterator[object]) -> int:
    return sum(1 for _ in rest)


def _natural(number: int) -> int:
    if number < 0:
        raise LookupError(f"{number} is not the number of a buffer or a part")
    return number


_LEAVES: Mapping[str, Callable[[_Decoder, int], Sequence[Any]]] = {
    "int": _Decoder.integers,
    "float": _Decoder.floats,
    "str": _Decoder.strings,
    "ints": _Decoder.runs_of_integers,
    "floats": _Decoder.runs_of_floats,
    "bytes": _Decoder.contents,
    "elements": _Decoder.elements,
    "part": _Decoder.parts,
    "later": _Decoder.later,
}
"""The methods that read groups of nodes without references, by kind."""


def _filled(dtype: np.dtype[Any], shape: tuple[int, ...], elements: memoryview) -> Array:
    """An array over a buffer."""
    if not len(elements):
        return np.empty(0, dtype).reshape(shape)
    return np.frombuffer(elements, dtype).reshape(shape)


def _of_objects(shape: tuple[int, ...], elements: tuple[Any, ...]) -> Array:
    found = np.empty(len(elements), object)
    for at, each in enumerate(elements):
        found[at] = each
    return found.reshape(shape)


def _constant(array: Array) -> Constant:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"a constant is made of {type(array).__qualname__}, expected an array")
    return Constant(array)


def _numbers(stored: Any, length: int) -> Numbers[Any]:
    """Numbers that are all stored, or a single one that stands for all."""
    array = np.array(stored) if isinstance(stored, tuple) else stored
    if not isinstance(array, np.ndarray) or array.dtype not in (np.float64, np.int64) or array.ndim != 1:
        raise TypeError(f"numbers are made of {type(stored).__qualname__}, expected 64-bit ones")
    if len(array) not in (1, length) or length < 1:
        raise ValueError(f"{len(array)} numbers cannot stand for {length}")
    array.flags.writeable = False
    return Numbers(array, length)


_BUILDERS: Mapping[str, Callable[..., Any]] = {
    "root": lambda value: value,
    "long": int,
    "dtype": lambda text: DType.from_text(text).numpy,
    "array": _filled,
    "objects": _of_objects,
    "constant": _constant,
    "numbers": _numbers,
}
"""The functions that make values of a node's references, for kinds that are not classes of the list."""
