"""The importers of ONNX operators, one file per family."""

from __future__ import annotations

from onert.frontend.families import Families
from onert.frontend.onnx.node import Importer

FAMILIES = (
    "elements.elementwise",
    "elements.activations",
    "elements.shapes",
    "elements.movement",
    "elements.padding",
    "layers.convolution",
    "layers.pooling",
    "layers.products",
    "layers.normalization",
    "elements.reductions",
    "elements.indexing",
    "layers.resizing",
    "recurrent.cells",
    "layers.attention",
    "layers.stateful",
    "layers.losses",
    "layers.integers",
    "layers.quantized",
    "layers.pooled_indices",
    "elements.randomness",
    "control",
    "elements.quantization",
    "sequences",
    "vision",
    "signal",
    "text",
    "microsoft.fused",
    "microsoft.quantized",
    "microsoft.attention",
    "microsoft.packed",
    "microsoft.experts",
    "microsoft.standard",
    "microsoft.selection",
    "microsoft.channels",
    "learning.linear",
    "learning.support_vectors",
    "learning.trees",
    "learning.training",
    "elements.experimental",
)
"""The table files, those with the most common operators first."""
TABLE: Families[tuple[str, str], Importer] = Families(__name__, FAMILIES)
"""Importers by domain and operator."""
