"""The records of a flow file."""

from __future__ import annotations

from enum import IntFlag

from attrs import field, frozen

from onert.ir.value import Value

VERSIONS = (3, 4, 5, 6)
Attributes = tuple[tuple[str, str], ...]
"""Names and values in file order; the last value of a name counts."""


class VariableFlag(IntFlag):
    """The bits of a variable's flags. A file may have others, which are preserved."""

    IN = 1
    OUT = 2
    REF = 4
    LEARNABLE = 8
    UNIQUE = 16
    DYNAMIC = 32
    ROW = 64
    COL = 128
    NOGRADIENT = 256
    CAST = 512


class OperationFlag(IntFlag):
    """The bits of an operation's flags."""

    NOGRADIENT = 1


class FunctionFlag(IntFlag):
    """The bits of a function's flags."""

    TRAINING = 1
    BACKPROP = 2


def described(offset: int, what: str) -> str:
    """The name of a record in errors, with its byte offset if it was read from a file."""
    return f"byte {offset}: {what}" if offset else what


def last(attributes: Attributes, name: str) -> str | None:
    """The value of an attribute; None if it is absent."""
    return next((value for found, value in reversed(attributes) if found == name), None)


@frozen
class _Record(Value):
    """What a flow file lists; `offset` is its position in the file, which is ignored by equality."""

    offset: int = field(default=0, eq=False, repr=False, kw_only=True)


@frozen
class Variable(_Record):
    """A tensor, which is a constant if it has data.

    `type` is the text in the file, without the `&` that marks a reference in files before version 5: the flag replaces
    it. In later files, a `&` may be present in addition to or instead of the flag, and stays in the text. A size of -1
    is unknown.
    """

    name: str
    type: str
    shape: tuple[int, ...] = ()
    flags: int = 0
    aliases: tuple[str, ...] = ()
    attributes: Attributes = ()
    data: bytes | memoryview = field(default=b"", repr=False)

    @property
    def element_type(self) -> str:
        """The type's name without the mark of a reference."""
        return self.type.removeprefix("&")

    @property
    def is_reference(self) -> bool:
        return bool(self.flags & VariableFlag.REF) or self.type.startswith("&")

    def attribute(self, name: str) -> str | None:
        return last(self.attributes, name)


@frozen
class Operation(_Record):
    """An operation: the name of its type, and its operands as names or aliases of variables."""

    name: str
    type: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    attributes: Attributes = ()
    flags: int = 0

    def attribute(self, name: str) -> str | None:
        return last(self.attributes, name)


@frozen
class Function(_Record):
    """A set of operations, by name, that are computed together."""

    name: str
    operations: tuple[str, ...] = ()
    flags: int = 0


@frozen
class Connector(_Record):
    """Variables, by name or alias, whose tensors share a format and may share memory through references."""

    name: str
    links: tuple[str, ...] = ()
    flags: int = 0


@frozen
class Blob(_Record):
    """Data that no operation reads."""

    name: str
    type: str = ""
    attributes: Attributes = ()
    data: bytes | memoryview = field(default=b"", repr=False)
    flags: int = 0


@frozen
class FlowFile(Value):
    """A whole flow file. `rest` is trailing data after the last record, which is ignored."""

    version: int = VERSIONS[-1]
    variables: tuple[Variable, ...] = ()
    operations: tuple[Operation, ...] = ()
    functions: tuple[Function, ...] = ()
    connectors: tuple[Connector, ...] = ()
    blobs: tuple[Blob, ...] = ()
    flags: int = 0
    rest: bytes | memoryview = field(default=b"", repr=False)
