"""Write flows to flow files and read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from attrs import evolve

from onert.frontend.files import open_file, reason
from onert.frontend.flow import file as records
from onert.frontend.flow.elements import DTYPES
from onert.frontend.flow.resolve import resolve
from onert.ir import ModelError
from onert.ir.process.replacing import replace

from .graph import Graph, Operation, Variable


def save(flow: Graph, file: Path | BinaryIO, version: int) -> None:
    """Write a flow to a path, or to an open file, which is closed afterwards."""
    pieces = records.encode(evolve(flow_file(flow), version=version))
    if not isinstance(file, Path):
        with file:
            for piece in pieces:
                file.write(piece)
        return
    try:
        replace(file, pieces)
    except OSError as error:
        raise ModelError(f"{file}: cannot be written: {reason(error)}") from error


def load(flow: Graph, file: Path | bytes) -> None:
    """Add the content of a flow file to a flow."""
    try:
        add(flow, records.decode(file if isinstance(file, bytes) else open_file(file).data))
    except ModelError as error:
        if isinstance(file, bytes):
            raise
        raise ModelError(f"{file}: {error}") from error


def add(flow: Graph, found: records.FlowFile) -> None:
    """Add the records of a file. Raises ModelError if a name is undefined, or exists in the flow already."""
    graph = resolve(found)
    for mine, theirs in (
        (flow.vars, found.variables),
        (flow.ops, found.operations),
        (flow.funcs, found.functions),
        (flow.cnxs, found.connectors),
        (flow.blobs, found.blobs),
    ):
        for record in theirs:
            if record.name in mine:
                raise ModelError(records.described(record.offset, f"the flow already has '{record.name}'"))
    flow.flags |= found.flags
    for one in found.variables:
        variable = flow.var(one.name, one.type, one.shape)
        variable.flags, variable.aliases = one.flags, list(one.aliases)
        variable.attrs = dict(one.attributes)
        variable.data = one.data if len(one.data) else None
    for each in found.operations:
        operation = flow.op(each.name)
        operation.type, operation.flags, operation.attrs = each.type, each.flags, dict(each.attributes)
        for source in graph.inputs(each):
            operation.add_input(flow.vars[source.name])
        for target in graph.outputs(each):
            operation.add_output(flow.vars[target.name])
    for function in found.functions:
        made = flow.func(function.name)
        made.flags = function.flags
        for name in function.operations:
            made.add(flow.ops[name])
    for connector in found.connectors:
        cnx = flow.cnx(connector.name)
        cnx.flags = connector.flags
        for name in connector.links:
            cnx.add(flow.vars[graph.variables[name].name])
    for data in found.blobs:
        blob = flow.blob(data.name)
        blob.type, blob.flags, blob.attrs = data.type, data.flags, dict(data.attributes)
        blob.data = data.data if len(data.data) else None


def flow_file(flow: Graph) -> records.FlowFile:
    """The records of a flow, in the order in which they were added."""
    return records.FlowFile(
        variables=tuple(map(_variable, flow.vars.values())),
        operations=tuple(map(_operation, flow.ops.values())),
        functions=tuple(
            records.Function(f.name, tuple(o.name for o in f.ops), int(f.flags)) for f in flow.funcs.values()
        ),
        connectors=tuple(
            records.Connector(c.name, tuple(v.name for v in c.links), int(c.flags)) for c in flow.cnxs.values()
        ),
        blobs=tuple(
            records.Blob(b.name, b.type, tuple(b.attrs.items()), _raw(b.data), int(b.flags))
            for b in flow.blobs.values()
        ),
        flags=flow.flags,
    )


def _variable(variable: Variable) -> records.Variable:
    return records.Variable(
        variable.name,
        variable.type,
        tuple(variable.shape),
        int(variable.flags),
        tuple(variable.aliases),
        tuple(variable.attrs.items()),
        _elements(variable),
    )


def _operation(operation: Operation) -> records.Operation:
    inputs, outputs = (tuple(v.name for v in side) for side in (operation.inputs, operation.outputs))
    return records.Operation(
        operation.name, operation.type, inputs, outputs, tuple(operation.attrs.items()), int(operation.flags)
    )


def _raw(data: Any) -> bytes | memoryview:
    """The bytes of data that is not a tensor: text is encoded as UTF-8."""
    if data is None:
        return b""
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, bytes | memoryview):
        return data
    return np.ascontiguousarray(data).tobytes()


def _elements(variable: Variable) -> bytes | memoryview:
    """The bytes of a variable's data, little-endian, in the variable's element type.

    Bytes are used unchanged, numbers are converted. Raises ModelError for an array of another type or size.
    """
    data = variable.data
    if data is None or isinstance(data, bytes | bytearray | str | memoryview):
        return bytes(data) if isinstance(data, bytearray) else _raw(data)
    dtype = DTYPES.get(variable.type.removeprefix("&"))
    if dtype is None or dtype.is_handle:
        raise ModelError(f"variable '{variable.name}' has elements, but is of type '{variable.type}'")
    array = np.asarray(data, dtype.numpy) if isinstance(data, bool | int | float | list | tuple) else np.asarray(data)
    if array.dtype != dtype.numpy:
        raise ModelError(f"variable '{variable.name}' is of type {variable.type}, its data of type {array.dtype}")
    if array.size != variable.elements():
        raise ModelError(f"variable '{variable.name}' has shape {variable.shape}, its data has {array.size} elements")
    return np.ascontiguousarray(array, dtype.numpy.newbyteorder("<")).tobytes()
