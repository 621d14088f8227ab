"""The tables that say what each operator of ONNX becomes, one family a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onert.frontend.onnx.node import Importer, Table
from onert.ir.process import imports

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
    "layers.places",
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
)
"""The files of tables, those first whose operators models have most."""


class Families(Mapping[tuple[str, str], Importer]):
    """The tables of all families as one; a family is read when no earlier one has the operator that is looked for."""

    def __getitem__(self, key: tuple[str, str]) -> Importer:
        for family in FAMILIES:
            found = self._of(family).get(key)
            if found is not None:
                return found
        raise KeyError(key)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for family in FAMILIES:
            yield from self._of(family)

    def __len__(self) -> int:
        return sum(len(self._of(family)) for family in FAMILIES)

    def _of(self, family: str) -> Table:
        module: Any = imports.module(f"{__name__}.{family}")
        found: Table = module.TABLE
        return found


TABLE = Families()
"""Importers by domain and operator."""
