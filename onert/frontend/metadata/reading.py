"""The metadata of a package's first model, read out of its file."""

from __future__ import annotations

from onert.frontend.onnx.declared import declared
from onert.ir import ModelError, Package

from .model_metadata import ModelMetadata
from .tflite_metadata import IDENTIFIERS, tflite_metadata
from .ultralytics import from_texts


def metadata(package: Package) -> ModelMetadata:
    """What a model's file says of it beside the graph; of a package of several files nothing is known.

    Metadata that is malformed is left out, and `notes` say why: a model runs without.
    """
    if package.content is None:
        return ModelMetadata()
    content = package.content.data
    try:
        if bytes(content[4:8]) in IDENTIFIERS:
            return tflite_metadata(content)
        found = declared(bytes(content))
    except ModelError as error:
        return ModelMetadata(notes=(f"the model's metadata is ignored: {error}",))
    if found is None:
        return ModelMetadata()
    return from_texts(found.metadata, ModelMetadata(found.graph, found.description))
