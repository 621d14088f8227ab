"""The format of ONNX Runtime's own files, and how they are recognised."""

from __future__ import annotations

from pathlib import Path

from onert.frontend.flatbuffer import Data, identifier
from onert.frontend.format import InputShapes, single_model_format
from onert.ir import Subgraphs
from onert.ir.process import imports

_IDENTIFIER = b"ORTM"


def recognize(head: bytes, path: Path | None) -> bool:
    """Whether a file has the flatbuffer identifier of ONNX Runtime's format."""
    return identifier(memoryview(head)) == _IDENTIFIER


def _read(data: Data, path: Path | None) -> tuple[Subgraphs, bool]:
    return imports.module("onert.frontend.onnx.ort.ort_model").read_ort_package(data), True


def _read_of_ranks(data: Data, path: Path | None, input_shapes: InputShapes) -> Subgraphs:
    found: Subgraphs = imports.module("onert.frontend.onnx.ort.ort_model").read_ort_package(data, shapes=input_shapes)
    return found


FORMAT = single_model_format("ort", recognize, _read, read_of_ranks=_read_of_ranks)
