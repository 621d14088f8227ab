"""Reads the metadata of a package's first model from its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onert.ir import ModelError, Package
from onert.ir.process import imports

from .model_metadata import ModelMetadata, TensorMetadata
from .tflite_metadata import IDENTIFIERS, tflite_metadata
from .ultralytics import from_texts

if TYPE_CHECKING:
    from onert.frontend.onnx.declarations import Declarations
    from onert.frontend.onnx.messages import ValueDeclaration


def metadata(package: Package) -> ModelMetadata:
    """The metadata in a model file; empty for a package of several files.

    Malformed metadata is ignored because the model runs without it; `notes` say why.
    """
    if package.content is None:
        return ModelMetadata()
    content = package.content.data
    try:
        if bytes(content[4:8]) in IDENTIFIERS:
            return tflite_metadata(content)
        found: Declarations | None = imports.module("onert.frontend.onnx.declarations").read_declarations(
            bytes(content)
        )
    except ModelError as error:
        return ModelMetadata(notes=(f"the model's metadata is ignored: {error}",))
    if found is None:
        return ModelMetadata()
    ends = (tuple(_end(value) for value in side) for side in (found.inputs, found.outputs))
    inputs, outputs = (side if any(each.dimensions for each in side) else () for side in ends)
    return from_texts(found.metadata, ModelMetadata(found.graph, found.description, inputs=inputs, outputs=outputs))


def _end(value: ValueDeclaration) -> TensorMetadata:
    """The metadata of an ONNX input or output: the names of its dimensions."""
    shape = () if value.type is None else value.type.shape or ()
    names = tuple(size if isinstance(size, str) else "" for size in shape)
    return TensorMetadata(dimensions=names if any(names) else ())
