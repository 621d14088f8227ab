"""The tables that say what each operator of TFLite and circle becomes, one family a file."""

from . import audio, circle, compute, control, custom_vision, elementwise, lookup, movement, recurrent, stablehlo
from .importer import Table

_FAMILIES = (elementwise, compute, movement, control, lookup, recurrent, circle, audio, stablehlo, custom_vision)

TABLE: Table = {name: importer for family in _FAMILIES for name, importer in family.TABLE.items()}
"""Importers of builtin operators by name."""
CUSTOM: Table = {name: importer for family in _FAMILIES for name, importer in family.CUSTOM.items()}
"""Importers of custom operators by custom code."""
