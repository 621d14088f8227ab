"""NumPy's arithmetic on symbolic numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

UFUNCS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": operator.floordiv,
    "true_divide": operator.truediv,
    "divide": operator.truediv,
    "remainder": operator.mod,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
"""The operator for each of NumPy's functions of two numbers, by name."""
