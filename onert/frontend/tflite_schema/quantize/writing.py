"""Models as objects of circle-schema: read from files, changed, and written back."""

from __future__ import annotations

import importlib
import struct
from functools import cache
from typing import Any

import numpy as np

from onert.frontend.tflite_schema.schema_listing import NEWEST
from onert.ir import Array

UNREADABLE = (struct.error, IndexError, TypeError, ValueError, AttributeError, RecursionError, MemoryError)
"""Exceptions that circle-schema's classes raise for malformed files."""


@cache
def schema(name: str) -> Any:
    """A module of circle-schema's newest version."""
    return importlib.import_module(f"{NEWEST}.{name}")


def parse(content: bytes) -> Any:
    """Read the model of a file. Raises one of `UNREADABLE` if it is malformed."""
    return schema("Model").ModelT.InitFromPackedBuf(content, 0)


def serialize(model: Any, identifier: bytes) -> bytes:
    """Serialise a model."""
    flatbuffers = importlib.import_module("flatbuffers")
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), identifier)
    return bytes(builder.Output())


def drop_unused_buffers(model: Any) -> None:
    """Clear the content of unreferenced buffers; their indices do not change."""
    used = {tensor.buffer for graph in model.subgraphs for tensor in graph.tensors}
    used |= {metadata.buffer for metadata in model.metadata or ()}
    used |= set() if model.metadataBuffer is None else set(model.metadataBuffer)
    for number, buffer in enumerate(model.buffers):
        if number not in used:
            buffer.data = None


def drop_unused_tensors(model: Any) -> None:
    """Remove unreferenced tensors of the first subgraph, and renumber the others."""
    graph = model.subgraphs[0]
    ends = [end for s in model.signatureDefs or () if s.subgraphIndex == 0 for end in (*s.inputs, *s.outputs)]
    lists = [(each, name) for each in graph.operators for name in ("inputs", "outputs", "intermediates")]
    lists += [(graph, name) for name in ("inputs", "outputs")]
    found = {(id(each), name): getattr(each, name) for each, name in lists}
    used = {int(i) for each in found.values() if each is not None for i in each} | {e.tensorIndex for e in ends}
    number = {old: new for new, old in enumerate(sorted(used - {-1}))} | {-1: -1}
    for each, name in lists:
        before = found[id(each), name]
        setattr(each, name, None if before is None else [number[int(i)] for i in before])
    for end in ends:
        end.tensorIndex = number[end.tensorIndex]
    graph.tensors = [graph.tensors[old] for old in sorted(used - {-1})]


def elements(model: Any, tensor: Any, kind: str = "FLOAT32") -> Array | None:
    """The float elements of a constant tensor; None if it is not constant, of another type, sparse, a variable, empty
    or not finite."""
    if tensor.type != getattr(schema("TensorType").TensorType, kind) or tensor.sparsity is not None:
        return None
    data = None if tensor.isVariable else model.buffers[tensor.buffer].data
    if data is None or not len(data):
        return None
    shape = () if tensor.shape is None else tuple(int(d) for d in tensor.shape)
    array = np.frombuffer(np.asarray(data, np.uint8).tobytes(), kind.lower())
    return array.reshape(shape) if array.size == int(np.prod(shape)) and np.isfinite(array).all() else None


def code_of(model: Any, operator: Any) -> int:
    """The builtin operator's code, from the old or the new field."""
    code = model.operatorCodes[operator.opcodeIndex]
    return int(max(code.builtinCode, code.deprecatedBuiltinCode))


def add_code(model: Any, name: str, version: int) -> int:
    """Add an operator code, and return its index."""
    code = schema("OperatorCode").OperatorCodeT()
    number = getattr(schema("BuiltinOperator").BuiltinOperator, name)
    code.builtinCode, code.deprecatedBuiltinCode, code.version = number, min(number, 127), version
    model.operatorCodes.append(code)
    return len(model.operatorCodes) - 1


def add_buffer(model: Any, array: Array) -> int:
    """Add a buffer with an array's elements, and return its index."""
    buffer = schema("Buffer").BufferT()
    buffer.data = np.frombuffer(array.tobytes(), np.uint8)
    model.buffers.append(buffer)
    return len(model.buffers) - 1
