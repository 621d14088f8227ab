"""The importers of ONNX operators, one file per family."""

from __future__ import annotations

from onert.frontend.families import Families
from onert.frontend.onnx.node import Importer

_OWN = (
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
    "layers.linear_attention",
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
    "elements.experimental",
    "microsoft.fused",
)
"""The files with operators of ONNX's own domain, those with the most common operators first."""
TABLE: Families[str, Importer] = Families(__name__, _OWN)
"""Importers of these operators."""

_OTHERS = (
    "layers.attention",
    "text",
    "microsoft.fused",
    "microsoft.quantized",
    "microsoft.attention",
    "microsoft.packed",
    "microsoft.experts",
    "microsoft.standard",
    "microsoft.selection",
    "microsoft.channels",
    "microsoft.stateful",
    "microsoft.multimodal",
    "microsoft.branches",
    "microsoft.ngrams",
    "microsoft.decoding",
    "microsoft.windowed",
    "microsoft.alignment",
    "generation.search",
    "learning.linear",
    "learning.support_vectors",
    "learning.trees",
    "learning.training",
)
OTHERS: Families[tuple[str, str], Importer] = Families(__name__, _OTHERS, "OTHERS")
"""Importers by domain and operator."""


def importer(domain: str, operator: str) -> Importer | None:
    """The importer of an operator, if there is one; ONNX's own domain is empty."""
    return OTHERS.get((domain, operator)) if domain else TABLE.get(operator)
