"""Random operands, and cases of single operators."""

from __future__ import annotations

from typing import Any

import numpy as np

DRAW = np.random.default_rng(0)
Case = tuple[str, str, list[Any], list[Any], dict[str, Any]]
"""A label, the operator (`domain::kind`, its number of outputs after a colon), inputs, constants (None: absent), and
attributes."""


def floats(*shape: int) -> Any:
    return DRAW.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> Any:
    return DRAW.uniform(0.01, 2, shape).astype(np.float32)


def integers(dtype: str, high: int, *shape: int, low: int = 0) -> Any:
    return DRAW.integers(low, high, shape).astype(dtype)
