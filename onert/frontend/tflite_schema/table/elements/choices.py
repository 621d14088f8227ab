"""Comparisons and selections."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Table, choice, fixed, read
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select

_COMPARE = (
    ComparisonKind.EQUAL,
    ComparisonKind.NOT_EQUAL,
    ComparisonKind.GREATER_EQUAL,
    ComparisonKind.GREATER,
    ComparisonKind.LESS_EQUAL,
    ComparisonKind.LESS,
)


TABLE: Table = {
    **{kind.name: fixed(Comparison(kind)) for kind in ComparisonKind},
    "SELECT": fixed(Select(rows=True)),
    "SELECT_V2": fixed(Select()),
    "STABLEHLO_COMPARE": read(Comparison, kind=lambda operator: choice(operator, "comparison_direction", _COMPARE)),
    "STABLEHLO_SELECT": fixed(Select()),
}
CUSTOM: Table = {}
