"""The derivatives of operations, by the names of their types."""

from __future__ import annotations

from collections.abc import Mapping

from .accumulation import GradientRule
from .arrays import RULES as ARRAYS
from .elementwise import RULES as ELEMENTWISE
from .gathers import RULES as GATHERS
from .reductions import RULES as REDUCTIONS

_FLAT = (
    *("Sign", "Floor", "Ceil", "Round", "Trunc"),
    *("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"),
    *("And", "Or", "Xor", "AndNot", "Not", "All", "Any", "Count"),
    *("Shape", "Size", "Rank"),
    *("Assign", "AssignAdd", "AssignAddMatMul", "AssignAddScatter"),
    *("CastByte", "CastShort", "CastInt", "CastLong"),
)

GRADIENTS: Mapping[str, GradientRule] = {
    **dict.fromkeys(_FLAT, lambda g, operation: [None] * len(operation.inputs)),
    **ELEMENTWISE,
    **ARRAYS,
    **REDUCTIONS,
    **GATHERS,
}
"""The derivatives by type; other types have none."""
