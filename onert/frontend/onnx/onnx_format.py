"""The format of ONNX files, and how they are recognised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onert.frontend.files import open_file
from onert.frontend.flatbuffer import Data
from onert.frontend.format import HEAD, InputShapes, package_of, single_model_format
from onert.ir import Array, ModelError, Package, Subgraphs
from onert.ir.process import imports

from .ort.ort_format import recognize as recognize_ort

_TAGS = frozenset({0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72})
"""First bytes of the ModelProto fields that may follow the version: names, texts, the graph, opsets."""
_VERSION = 0x08
_VERSIONS = range(1, 64)
SUFFIX = ".onnx"


def recognize(head: bytes, path: Path | None) -> bool:
    """Whether a file is a ModelProto, which has no magic number.

    Serializers write fields by number: the IR version, a small varint, then a name, a text, the graph or an opset. A
    file needs the suffix `.onnx`, but may begin with any of these fields; bytes in memory have no name.
    """
    if path is not None:
        return path.suffix.lower() == SUFFIX and len(head) > 2 and (head[0] == _VERSION or head[0] in _TAGS)
    return len(head) > 3 and head[0] == _VERSION and head[1] in _VERSIONS and head[2] in _TAGS


def _read(data: Data, path: Path | None) -> tuple[Subgraphs, bool]:
    found: tuple[Subgraphs, bool] = imports.module("onert.frontend.onnx.model").read_package(data, path)
    return found


def _read_of_ranks(data: Data, path: Path | None, input_shapes: InputShapes) -> Subgraphs:
    found: tuple[Subgraphs, bool] = imports.module("onert.frontend.onnx.model").read_package(
        data, path, shapes=input_shapes
    )
    return found[0]


def given(source: Path | bytes, initializers: Mapping[str, Array], shapes: InputShapes) -> Package:
    """The model with some of the graph's initializers replaced, by name, and the ranks that shapes of inputs decide.

    Raises ModelError if it has no initializer of a name, or one of another type or shape.
    """
    path = source if isinstance(source, Path) else None
    content: Data = memoryview(source) if isinstance(source, bytes) else open_file(source).data
    head = bytes(content[:HEAD])
    if recognize(head, path):
        model, _ = imports.module("onert.frontend.onnx.model").read_package(content, path, initializers, shapes)
    elif recognize_ort(head, path):
        model = imports.module("onert.frontend.onnx.ort.ort_model").read_ort_package(content, initializers, shapes)
    else:
        raise ModelError("initializers and shapes can be replaced in ONNX models only")
    return package_of((model,), path)


FORMAT = single_model_format("onnx", recognize, _read, read_of_ranks=_read_of_ranks)
"""A model with a path may store its weights in other files. Its content is then never known to be well-formed, because
it alone does not determine the model; so it is read each time."""
