"""What a flow file holds, as it is written there."""

from __future__ import annotations

from enum import IntFlag

from attrs import field, frozen

from onert.ir.value import Value

VERSIONS = (3, 4, 5, 6)
Attributes = tuple[tuple[str, str], ...]
"""Names and values in the order of the file; of equal names the last value counts."""


class VariableFlag(IntFlag):
    """The bits of a variable's flags. A file may have others, which are kept."""

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
    """What errors call a record: with the byte at which it starts if it was read from a file."""
    return f"byte {offset}: {what}" if offset else what


def last(attributes: Attributes, name: str) -> str | None:
    """The value of an attribute; None where there is none."""
    return next((value for found, value in reversed(attributes) if found == name), None)


@frozen
class Variable(Value):
    """A tensor: a constant where it has data.

    `type` is the text of the file, without the `&` by which files before version 5 mark a reference: the flag says
    that. In later files the `&` may be there beside the flag or in its place, and stays in the text. A size of -1 is
    not known. `offset` is the byte of the file at which the record starts; it takes no part in equality.
    """

    name: str
    type: str
    shape: tuple[int, ...] = ()
    flags: int = 0
    aliases: tuple[str, ...] = ()
    attributes: Attributes = ()
    data: bytes | memoryview = field(default=b"", repr=False)
    offset: int = field(default=0, eq=False, repr=False)

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
class Operation(Value):
    """An operation by the name of its type, its operands by the names or aliases of variables."""

    name: str
    type: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    attributes: Attributes = ()
    flags: int = 0
    offset: int = field(default=0, eq=False, repr=False)

    def attribute(self, name: str) -> str | None:
        return last(self.attributes, name)


@frozen
class Function(Value):
    """Operations, by name, that are computed together."""

    name: str
    operations: tuple[str, ...] = ()
    flags: int = 0
    offset: int = field(default=0, eq=False, repr=False)


@frozen
class Connector(Value):
    """Variables, by name or alias, whose tensors have one format and may share memory through references."""

    name: str
    links: tuple[str, ...] = ()
    flags: int = 0
    offset: int = field(default=0, eq=False, repr=False)


@frozen
class Blob(Value):
    """Data that no operation reads."""

    name: str
    type: str = ""
    attributes: Attributes = ()
    data: bytes | memoryview = field(default=b"", repr=False)
    flags: int = 0
    offset: int = field(default=0, eq=False, repr=False)


@frozen
class FlowFile(Value):
    """The whole of a flow file. `rest` are bytes behind its last record, which mean nothing."""

    version: int = VERSIONS[-1]
    variables: tuple[Variable, ...] = ()
    operations: tuple[Operation, ...] = ()
    functions: tuple[Function, ...] = ()
    connectors: tuple[Connector, ...] = ()
    blobs: tuple[Blob, ...] = ()
    flags: int = 0
    rest: bytes | memoryview = field(default=b"", repr=False)
