"""The importers of TFLite and circle operators, one file per family."""

from __future__ import annotations

from onert.frontend.families import Families

from .importer import Importer

FAMILIES = (
    "elements.elementwise",
    "layers.compute",
    "elements.shapes",
    "elements.conversions",
    "elements.functions",
    "elements.joining",
    "elements.movement",
    "layers.normalization",
    "layers.resizing",
    "elements.choices",
    "layers.windows",
    "control",
    "layers.recurrent",
    "elements.lookup",
    "layers.audio",
    "circle",
    "layers.custom_vision",
    "stablehlo",
    "layers.tensorflow",
)
"""The table files, those with the most common operators first."""
TABLE: Families[str, Importer] = Families(__name__, FAMILIES)
"""Importers of builtin operators by name."""
CUSTOM: Families[str, Importer] = Families(__name__, FAMILIES, "CUSTOM")
"""Importers of custom operators by custom code."""
