"""What an ONNX file declares: inputs and outputs with the names of dimensions, and its producer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from onert.frontend.files import open_file
from onert.frontend.flatbuffer import Data
from onert.frontend.format import HEAD
from onert.frontend.windows import Blocks
from onert.frontend.wire import Message, Octets, budget
from onert.ir import DType
from onert.ir.process import imports
from onert.ir.value import ByIdentity

from .messages import Columns, ValueDeclaration, ValueType, columns, read_columns, read_graph_ends
from .onnx_format import recognize
from .ort.ort_format import recognize as recognize_ort


@frozen(eq=False)
class Declarations(ByIdentity):
    """The inputs and outputs of a model's graph, and the model's texts."""

    inputs: tuple[ValueDeclaration, ...]
    outputs: tuple[ValueDeclaration, ...]
    producer: str = ""
    graph: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    metadata: Mapping[str, str] = {}
    columns: Mapping[str, Columns] = {}
    """The columns of tensors that represent maps, by the name of an input or output."""


def read_declarations(source: Path | bytes) -> Declarations | None:
    """The declarations in a file, which is not read as a whole, or in its content; None if it is not ONNX.

    Raises ModelError if it is malformed.
    """
    path = source if isinstance(source, Path) else None
    content: Octets = memoryview(source) if isinstance(source, bytes) else Blocks(open_file(source)).whole()
    head = bytes(content[:HEAD])
    if recognize_ort(head, path):
        return _of_ort(content if isinstance(content, memoryview) else memoryview(bytes(content)))
    if not recognize(head, path):
        return None
    message = Message(content, budget(len(content)))
    graph = message.message(7)
    if graph is None:
        return None
    inputs, outputs = read_graph_ends(graph)
    mapped = any(_holds_maps(end.type) for end in (*inputs, *outputs))
    return Declarations(
        inputs,
        outputs,
        message.text(2),
        graph.text(2),
        message.text(4),
        message.text(6),
        graph.text(10),
        message.integer(5),
        {m.text(1): m.text(2) for m in message.messages(14)},
        read_columns(graph) if mapped else {},
    )


def _of_ort(content: Data) -> Declarations:
    """The declarations in a file of ONNX Runtime's own format, which names no graph."""
    reading: Any = imports.module("onert.frontend.onnx.ort.ort_messages")
    model = reading.ort_model(content)
    graph = reading.ort_graph(model)
    inputs, outputs = reading.read_ort_ends(graph)
    mapped = any(_holds_maps(end.type) for end in (*inputs, *outputs))
    return Declarations(
        inputs,
        outputs,
        model.text(2),
        "",
        model.text(4),
        model.text(6),
        model.text(8),
        int(model.scalar(5, "q", 0)),
        reading.ort_metadata(model),
        columns(reading.read_ort_nodes(graph)) if mapped else {},
    )


def _holds_maps(type_: ValueType | None) -> bool:
    return type_ is not None and (type_.kind == "map" or _holds_maps(type_.element))


NAMES = {
    "f32": "float",
    "f64": "double",
    "f16": "float16",
    "bf16": "bfloat16",
    "str": "string",
    "c64": "complex64",
    "c128": "complex128",
    "f8e4m3fn": "float8e4m3fn",
    "f8e5m2": "float8e5m2",
    "f8e4m3fnuz": "float8e4m3fnuz",
    "f8e5m2fnuz": "float8e5m2fnuz",
    "f8e8m0fnu": "float8e8m0",
    "f4e2m1fn": "float4e2m1",
    "bool": "bool",
}
"""ONNX's element type names by ours; integers are `int` or `uint` followed by the number of bits."""


def type_name(type_: ValueType | None) -> str:
    """A type in ONNX Runtime's notation, e.g. `tensor(float)`, `seq(map(string,tensor(float)))`, `optional(...)`."""
    if type_ is None:
        return ""
    if type_.kind == "tensor":
        return f"tensor({_element_name(type_.dtype)})"
    if type_.kind == "map":
        return f"map({_element_name(type_.key)},{type_name(type_.element)})"
    return f"{'seq' if type_.kind == 'sequence' else type_.kind}({type_name(type_.element)})"


def _element_name(dtype: DType | None) -> str:
    text = "" if dtype is None else dtype.text
    return NAMES.get(text) or {"i": "int", "u": "uint"}.get(text[:1], "") + text[1:]
