"""Test cases for single flow operations: operands, attributes and the expected results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import field, frozen

from onert.ir import Array

RNG = np.random.default_rng(15)


@frozen(eq=False)
class Meaning:
    """An operation, its operands (those at the indices `constants` are constants) and its results by NumPy."""

    name: str
    type: str
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    attributes: Mapping[str, str] = field(factory=dict)
    constants: frozenset[int] = frozenset()
    tolerance: float = 1e-5

    def __str__(self) -> str:
        return f"{self.type} {self.name}".strip()


def case(type_: str, inputs: Any, expected: Any, name: str = "", /, **more: Any) -> Meaning:
    """A test case. Keyword arguments besides `constants` and `tolerance` are attributes, as text."""
    constants, tolerance = frozenset(more.pop("constants", ())), more.pop("tolerance", 1e-5)
    given = tuple(map(np.asarray, inputs))
    results = tuple(map(np.asarray, expected if isinstance(expected, tuple | list) else (expected,)))
    return Meaning(name, type_, given, results, more, constants, tolerance)


def drawn(*shape: int, low: float = -4, high: float = 4, dtype: str = "float32") -> Array:
    return RNG.uniform(low, high, shape).astype(dtype)


def whole(*values: int, dtype: str = "int32") -> Array:
    return np.array(values, dtype)
