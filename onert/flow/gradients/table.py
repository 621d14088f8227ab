"""The derivatives of operations by the name of their type."""

from __future__ import annotations

from collections.abc import Mapping

from onert.flow.graph import Operation

from .accumulation import GradientRule, Gradients
from .arrays import RULES as ARRAYS
from .elementwise import RULES as ELEMENTWISE
from .gathers import RULES as GATHERS
from .reductions import RULES as REDUCTIONS


def _nothing(g: Gradients, operation: Operation) -> list[None]:
    """Results that are the same all around a point do not depend on it."""
    return [None] * len(operation.inputs)


_FLAT = (
    *("Sign", "Floor", "Ceil", "Round", "Trunc"),
    *("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"),
    *("And", "Or", "Xor", "AndNot", "Not", "All", "Any", "Count"),
    *("Shape", "Size", "Rank"),
    *("Assign", "AssignAdd", "AssignAddMatMul", "AssignAddScatter"),
    *("CastByte", "CastShort", "CastInt", "CastLong"),
)

GRADIENTS: Mapping[str, GradientRule] = {
    **dict.fromkeys(_FLAT, _nothing),
    **ELEMENTWISE,
    **ARRAYS,
    **REDUCTIONS,
    **GATHERS,
}
"""What the names of types have for derivatives; what is missing here has none that is known."""
