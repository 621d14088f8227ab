"""Converts models in ONNX Runtime's own format to the IR."""

from __future__ import annotations

from collections.abc import Mapping

from onert.frontend.flatbuffer import Data
from onert.frontend.onnx.model import convert, storage_of
from onert.ir import Array, Shape, Subgraphs

from .ort_messages import ort_model, read_ort_model


def read_ort_package(
    content: Data, initializers: Mapping[str, Array] | None = None, shapes: Mapping[str, Shape] | None = None
) -> Subgraphs:
    """The model in a file's content.

    `initializers` replace the graph's initializers of the same names, and `shapes` the declared shapes of inputs.
    """
    table = ort_model(content)
    return convert(read_ort_model(table), storage_of(content, None, initializers), table.budget, shapes or {})
