"""What an operation of a flow means, and how a case of it is written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import field, frozen

from onert.ir import Array

RNG = np.random.default_rng(15)


@frozen(eq=False)
class Meaning:
    """An operation with operands and the results that NumPy gives; some of the operands are constants."""

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
    """A case; attributes are given as their text."""
    constants, tolerance = frozenset(more.pop("constants", ())), more.pop("tolerance", 1e-5)
    given = tuple(map(np.asarray, inputs))
    results = tuple(map(np.asarray, expected if isinstance(expected, tuple | list) else (expected,)))
    return Meaning(name, type_, given, results, more, constants, tolerance)


def drawn(*shape: int, low: float = -4, high: float = 4, dtype: str = "float32") -> Array:
    return RNG.uniform(low, high, shape).astype(dtype)


def whole(*values: int, dtype: str = "int32") -> Array:
    return np.array(values, dtype)
