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
_MICROSOFT = (
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
)
_LEARNING = ("learning.linear", "learning.support_vectors", "learning.trees")

DOMAINS: dict[str, Families[str, Importer]] = {
    "": Families(__name__, _OWN),
    "com.microsoft": Families(__name__, _MICROSOFT, "MICROSOFT"),
    "com.microsoft.nchwc": Families(__name__, ("blocked",)),
    "ai.onnx.ml": Families(__name__, _LEARNING),
    "ai.onnx.preview": Families(__name__, ("layers.attention",), "PREVIEW"),
    "ai.onnx.preview.training": Families(__name__, ("learning.training",)),
}
"""Importers of operators by domain; ONNX's own is empty."""


def importer(domain: str, operator: str) -> Importer | None:
    """The importer of an operator, if there is one."""
    return DOMAINS[domain].get(operator) if domain in DOMAINS else None
