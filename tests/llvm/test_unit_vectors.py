"""Vectors of bytes are divided by their norms natively, in TFLite's fixed-point arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases.case import Case, scaled

from onert.ir.ops.reduction.norm import L2Normalization
from onert_llvm.target.isa import Isa, runnable

from .harness import Array, whole_range
from .natively import check, subgraph_of, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


def _vectors(dtype: Any, zero: int) -> dict[str, Array]:
    """Vectors of all lengths: of no other element than the zero point, of one, of small ones, and of extremes."""
    ends = np.iinfo(dtype)
    one = np.full((256, 3), zero)
    one[:, 1] = np.arange(ends.min, ends.max + 1)
    small = zero + np.random.default_rng(0).integers(-3, 4, (2, 60, 5))
    found = {"one": one, "small": small, "any": whole_range(dtype, (40, 37)), "long": np.full((2, 8000), ends.max)}
    found["powers"] = np.array([[ends.max] * count + [zero] * (512 - count) for count in (1, 2, 9, 33, 100, 512)])
    return {name: np.clip(array, ends.min, ends.max).astype(dtype) for name, array in found.items()}


@ISAS
@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, 0), (np.int8, -128), (np.uint8, 100)])
def test_vectors_of_bytes_of_any_length_become_unit_vectors(isa: Isa, dtype: Any, zero: int) -> None:
    middle = 128 if dtype is np.uint8 else 0
    for x in _vectors(dtype, zero).values():
        case = Case("", L2Normalization(), (x,), None, (scaled(0.05, zero),), (scaled(1 / 128, middle),))
        check(subgraph_of(case), [x], isa)


def test_vectors_whose_squares_need_more_than_29_bits_are_not_decomposed() -> None:
    x = np.zeros((1, 9000), np.int8)
    assert why_not(subgraph_of(Case("", L2Normalization(), (x,), None, (scaled(0.05),), (scaled(1 / 128),))))
