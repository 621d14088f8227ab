"""Encodes records to the bytes of a flow file."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TypeVar

from onert.ir import ModelError

from .decode import MAGIC
from .records import VERSIONS, Attributes, Blob, Connector, FlowFile, Function, Operation, Variable, VariableFlag

Bytes = bytes | memoryview
Record = TypeVar("Record")
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
_HINTS = VariableFlag.IN | VariableFlag.OUT
"""Flags that a compiler recomputes; omitted before version 5."""


def encode(flow: FlowFile) -> Iterator[Bytes]:
    """The bytes of a flow file of the flow's version, in pieces.

    Raises ModelError before the first piece if the version is unknown or cannot represent the flow: blobs before
    version 4, flags before version 5 (except references, and the hints IN and OUT, which are omitted), attributes of
    variables before version 6.
    """
    _require_room(flow)
    pieces = _Writer(flow.version).flow(flow)
    return iter(list(pieces))  # encode everything first, so that an error leaves no partial file


def _require_room(flow: FlowFile) -> None:
    version = flow.version
    if version not in VERSIONS:
        raise ModelError(f"flow files of version {version} cannot be written, expected {VERSIONS[0]} to {VERSIONS[-1]}")
    lost = None
    if version < 6:
        lost = next((f"the attributes of variable '{v.name}'" for v in flow.variables if v.attributes), None)
    if version < 5:
        for what, flags in _flags(flow):
            lost = lost or (f"the flags {flags:#x} of {what}" if flags else None)
    if version < 4 and flow.blobs:
        lost = lost or f"blob '{flow.blobs[0].name}'"
    if lost is not None:
        raise ModelError(f"a flow file of version {version} cannot represent {lost}")


def _flags(flow: FlowFile) -> Iterator[tuple[str, int]]:
    """Yield what has flags, and those that are lost before version 5."""
    yield "the flow", flow.flags
    for variable in flow.variables:
        yield f"variable '{variable.name}'", variable.flags & ~_HINTS & ~VariableFlag.REF
    for kind, records in (
        ("operation", flow.operations),
        ("function", flow.functions),
        ("connector", flow.connectors),
        ("blob", flow.blobs),
    ):
        for record in records:
            yield f"{kind} '{record.name}'", record.flags


class _Writer:
    def __init__(self, version: int) -> None:
        self._version = version

    def flow(self, flow: FlowFile) -> Iterator[Bytes]:
        yield MAGIC
        yield _int(flow.version, "the version")
        yield from self._flags(flow.flags, "the flow")
        yield from self._records(flow.variables, self._variable)
        yield from self._records(flow.operations, self._operation)
        yield from self._records(flow.functions, self._function)
        yield from self._records(flow.connectors, self._connector)
        if self._version >= 4:
            yield from self._records(flow.blobs, self._blob)
        yield flow.rest

    def _records(self, records: tuple[Record, ...], write: Callable[[Record], Iterator[Bytes]]) -> Iterator[Bytes]:
        yield _count(records)
        for record in records:
            yield from write(record)

    def _variable(self, variable: Variable) -> Iterator[Bytes]:
        what = f"variable '{variable.name}'"
        yield from self._flags(variable.flags, what, variable.name)
        yield from _strs(variable.aliases)
        marked = self._version < 5 and variable.flags & VariableFlag.REF
        yield _str(f"&{variable.type}" if marked else variable.type)
        yield _count(variable.shape)
        for size in variable.shape:
            yield _int(size, f"a dimension of {what}")
        if self._version >= 6:
            yield from _attributes(variable.attributes)
        yield from _value(variable.data)

    def _operation(self, operation: Operation) -> Iterator[Bytes]:
        yield from self._flags(operation.flags, f"operation '{operation.name}'", operation.name, operation.type)
        yield from _strs(operation.inputs)
        yield from _strs(operation.outputs)
        yield from _attributes(operation.attributes)

    def _function(self, function: Function) -> Iterator[Bytes]:
        yield from self._flags(function.flags, f"function '{function.name}'", function.name)
        yield from _strs(function.operations)

    def _connector(self, connector: Connector) -> Iterator[Bytes]:
        yield from self._flags(connector.flags, f"connector '{connector.name}'", connector.name)
        yield from _strs(connector.links)

    def _blob(self, blob: Blob) -> Iterator[Bytes]:
        yield from self._flags(blob.flags, f"blob '{blob.name}'", blob.name, blob.type)
        yield from _attributes(blob.attributes)
        yield from _value(blob.data)

    def _flags(self, flags: int, what: str, *texts: str) -> Iterator[Bytes]:
        """The flags, in versions that have them, and the texts behind them."""
        if self._version >= 5:
            yield _int(flags, f"the flags of {what}")
        yield from map(_str, texts)


def _int(value: int, what: str) -> bytes:
    if not _LEAST <= value <= _MOST:
        raise ModelError(f"{what}: {value} does not fit into 32 bits")
    return struct.pack("<i", value)


def _count(records: tuple[object, ...]) -> bytes:
    return _int(len(records), "the number of records")


def _str(text: str) -> bytes:
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise ModelError(f"the text {text!r} cannot be written as UTF-8") from error
    return _int(len(raw), "the length of a text") + raw


def _strs(texts: tuple[str, ...]) -> Iterator[bytes]:
    yield _count(texts)
    yield from map(_str, texts)


def _attributes(attributes: Attributes) -> Iterator[bytes]:
    yield _count(attributes)
    for name, value in attributes:
        yield _str(name)
        yield _str(value)


def _value(data: Bytes) -> Iterator[Bytes]:
    raw = memoryview(data).cast("B")
    yield struct.pack("<Q", len(raw))
    yield raw
