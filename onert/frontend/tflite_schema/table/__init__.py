"""The tables that say what each operator of TFLite and circle becomes, one family a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onert.ir.process import imports

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
)
"""The files of tables, those first whose operators models have most."""


class Families(Mapping[str, Importer]):
    """The tables of all families as one; a family is read when no earlier one has the operator that is looked for.

    With its table a family brings the operation kinds that it builds, and to read them all takes longer than to read
    most models.
    """

    def __init__(self, table: str) -> None:
        self._table = table

    def __getitem__(self, name: str) -> Importer:
        for family in FAMILIES:
            found = self._of(family).get(name)
            if found is not None:
                return found
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        for family in FAMILIES:
            yield from self._of(family)

    def __len__(self) -> int:
        return sum(len(self._of(family)) for family in FAMILIES)

    def _of(self, family: str) -> Mapping[str, Importer]:
        module: Any = imports.module(f"{__name__}.{family}")
        found: Mapping[str, Importer] = getattr(module, self._table)
        return found


TABLE = Families("TABLE")
"""Importers of builtin operators by name."""
CUSTOM = Families("CUSTOM")
"""Importers of custom operators by custom code."""
