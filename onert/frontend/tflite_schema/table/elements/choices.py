"""Operators that compare elements and choose between them."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Operator, Table, fixed
from onert.ir import ModelError, Op
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


def _stablehlo_compare(operator: Operator) -> Op:
    direction = operator.integer("comparison_direction")
    if not 0 <= direction < len(_COMPARE):
        raise ModelError(f"comparison_direction is {direction}, expected 0 to {len(_COMPARE) - 1}")
    return Comparison(_COMPARE[direction])


TABLE: Table = {
    **{kind.name: fixed(Comparison(kind)) for kind in ComparisonKind},
    "SELECT": fixed(Select(rows=True)),
    "SELECT_V2": fixed(Select()),
    "STABLEHLO_COMPARE": _stablehlo_compare,
    "STABLEHLO_SELECT": fixed(Select()),
}
CUSTOM: Table = {}
