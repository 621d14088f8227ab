"""Comparisons of sizes that may be symbolic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .trace import Symbolic, is_symbolic


def are_same(a: Any, b: Any) -> bool:
    """Whether two numbers are known to be equal for all lengths; adds no condition if they are equal only for some."""
    if isinstance(a, Symbolic) and isinstance(b, Symbolic):
        return a.trace.polynomial(a.index) == a.trace.polynomial(b.index) is not None
    return not (isinstance(a, Symbolic) or isinstance(b, Symbolic)) and bool(a == b)


def are_same_shapes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes are known to be equal for all lengths, as `are_same` has it."""
    return len(a) == len(b) and all(map(are_same, a, b))


def are_ones(sizes: Iterable[Any]) -> bool:
    """Whether sizes are known to be 1; adds no condition, as a symbolic one is not known to be."""
    return all(are_same(size, 1) for size in sizes)


def is_broadcast(size: Any, wanted: Any) -> bool:
    """Whether a dimension is broadcast to another size. A 1 is always said to be broadcast to a symbolic size, without
    a condition: for those that may be repeated once too."""
    return (is_symbolic(wanted) and are_same(size, 1)) or bool(size != wanted)


def are_broadcast(shape: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether a shape is broadcast to another one, as `is_broadcast` has it."""
    return len(shape) != len(wanted) or any(map(is_broadcast, shape, wanted))
