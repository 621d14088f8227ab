"""Converts a structure and its weights to a model."""

from __future__ import annotations

from onert.frontend.flatbuffer import Data
from onert.ir import ModelError, RuleError, Subgraphs, TensorType

from .buffers import Weights
from .graph import Blob, Graph
from .layer_types import base_type
from .random_weights import RandomWeights
from .site import Site
from .structure import Layer, Structure, read_structure
from .table import LAYERS, QUANTIZED
from .table.recurrent import weight_shape
from .weights import StoredWeights, read_weights

__all__ = ["RandomWeights", "read_model", "stored_weights"]


_AHEAD = 16
"""The number of layers to look ahead to guess a shape that only a weight file contains."""


def stored_weights(data: Data, name: str) -> StoredWeights:
    """The weights in a file. Raises ModelError with the file's `name` if they are malformed."""
    try:
        return read_weights(data)
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error


def read_model(data: Data, weights: Weights) -> Subgraphs:
    """The model of a structure. Raises ModelError if it breaks a rule, or that lists all unsupported layer types."""
    structure = read_structure(data)
    _require_known(structure)
    graph = Graph(weights)
    for given in structure.inputs:
        graph.input(given.name, TensorType(given.dtype, given.shape))
    for at, layer in enumerate(structure.layers):
        graph.place = layer.label
        try:
            _add_layer(graph, layer, structure.layers[at + 1 : at + 1 + _AHEAD] if weights.generated else ())
        except (ModelError, RuleError) as error:
            raise ModelError(f"{layer.label}: {error}") from error
    missing = [name for name in structure.outputs if name not in graph.blobs]
    if missing:
        raise ModelError(f"no layer produces the outputs {', '.join(missing)}")
    graph.place = "the outputs"
    try:
        return Subgraphs((graph.subgraph(structure.outputs),))
    except RuleError as error:
        raise ModelError(f"the outputs: {error}") from error


def _require_known(structure: Structure) -> None:
    """Raise ModelError that lists all unsupported layer types, and where each first occurs."""
    first: dict[str, Layer] = {}
    for layer in structure.layers:
        if base_type(layer.type)[0] not in LAYERS:
            first.setdefault(layer.type, layer)
    if first:
        listed = ", ".join(f"{name} (layer {layer.index} '{layer.name}')" for name, layer in first.items())
        raise ModelError(f"layer types that are not supported: {listed}")


def _add_layer(graph: Graph, layer: Layer, following: tuple[Layer, ...]) -> None:
    """Add the operations of one layer."""
    name, quantized = base_type(layer.type)
    write = QUANTIZED.get(name) if quantized else None
    site = Site(graph, layer, following)
    _add_constants(graph, layer, name)
    outputs = (write or LAYERS[name])(site)
    if len(outputs) < len(layer.outputs):
        raise ModelError(f"it has {len(layer.outputs)} outputs, expected {len(outputs)}")
    for blob, operand in zip(layer.outputs, outputs, strict=False):
        graph.set_result(blob, operand, quantized=quantized)


def _add_constants(graph: Graph, layer: Layer, name: str) -> None:
    """Add constants for inputs that no layer produces."""
    for at, blob in enumerate(layer.inputs):
        if blob in graph.blobs:
            continue
        found = graph.weights.constant(blob, _expected_shape(graph, layer, name, at) if at else None)
        if found is None:
            raise ModelError(f"blob '{blob}' is neither produced by an earlier layer nor a constant")
        array = found.array() if found.shape is None else found.array().reshape(found.shape)
        graph.blobs[blob] = Blob(blob, graph.constant(array))


def _expected_shape(graph: Graph, layer: Layer, name: str, at: int) -> tuple[int, ...] | None:
    """The shape of a constant if the layer determines it, e.g. one number per element or channel in a normalisation."""
    shape = graph.shape(graph.real(layer.inputs[0]))
    if name == "LayerNorm":
        count = Site(graph, layer).integer("number of dimensions", 1, 1, max(1, len(shape)))
        return shape[-count:]
    if name == "LSTMONNX":
        return weight_shape(Site(graph, layer), shape, at)
    return shape[1:2] if name == "GroupNorm" else None
