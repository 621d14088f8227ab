"""Distinct elements are found as distinct slices are."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import Array
from onert.ir.ops.data_movement.unique import UniqueSlices

R = np.random.default_rng(0)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    "x",
    [
        R.integers(-9, 9, 200),
        R.integers(-9, 9, 60).astype(np.float16),
        R.integers(-2, 3, 60) * np.float32(-0.5),  # 0 and -0 are equal
        R.random(9) < 0.5,
        np.uint8([5, 3, 255, 5]),
        np.float32([3, np.nan, 1, np.nan, 3]),
        np.float64([]),
    ],
    ids=lambda x: str(x.dtype),
)
def test_distinct_elements_are_those_of_slices_that_repeat_each_element(x: Array, ordered: bool) -> None:
    elements, *found = UniqueSlices(None, ordered).evaluate(x)
    slices, *expected = UniqueSlices(0, ordered).evaluate(np.stack([x, x], 1))
    np.testing.assert_array_equal(elements, slices[:, 0])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
