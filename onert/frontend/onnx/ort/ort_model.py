"""Converts models in ONNX Runtime's own format to the IR."""

from __future__ import annotations

from collections.abc import Mapping

from onert.frontend.flatbuffer import Data
from onert.frontend.format import InputShapes
from onert.frontend.onnx.model import convert, storage_of
from onert.ir import Array, Subgraphs

from .ort_messages import ort_model, read_ort_model


def read_ort_package(
    content: Data, initializers: Mapping[str, Array] | None = None, shapes: InputShapes | None = None
) -> Subgraphs:
    """The model in a file's content.

    `initializers` replace the graph's initializers of the same names, and `shapes` of inputs decide ranks.
    """
    table = ort_model(content)
    return convert(read_ort_model(table), storage_of(content, None, initializers), table.budget, shapes or {})
