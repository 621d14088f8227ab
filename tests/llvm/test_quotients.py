"""Divisions by a scale are replaced by products that round to the same integers."""

from __future__ import annotations

import numpy as np
import pytest

from onert_llvm.schedule.reciprocals import reciprocal


@pytest.mark.parametrize("seed", range(4))
def test_products_with_an_inverse_round_like_quotients(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = 0
    for divisor in (rng.uniform(0.5, 1, 50) * 2.0 ** rng.integers(-20, 20, 50)).astype(np.float32):
        both = reciprocal(divisor, 300)
        if both is None:
            continue
        found += 1
        halves = ((np.arange(-300, 300) + 0.5) * float(divisor)).astype(np.float32)
        around = halves.view(np.int32)[:, None] + np.arange(-40, 41, dtype=np.int32)
        some = (rng.uniform(-300, 300, 3000) * float(divisor)).astype(np.float32)
        v = np.concatenate([around.astype(np.int32).view(np.float32).reshape(-1), some])
        exactly = v.astype(np.longdouble) * both[0] + (v * both[1])
        assert np.array_equal(np.rint(exactly.astype(np.float32)), np.rint(v / divisor))
    assert found > 40


@pytest.mark.parametrize("divisor", [1.0, 0.5, 0.125, 4.0])
def test_inverses_of_powers_of_two_are_exact_and_both_parts_positive(divisor: float) -> None:
    both = reciprocal(np.float32(divisor), 300)
    assert both is not None
    assert min(both) > 0
    assert float(both[0]) + float(both[1]) == 1 / divisor


@pytest.mark.parametrize("divisor", [0.0, -0.5, 1e-20, 1e20, np.inf, np.nan])
def test_divisors_out_of_range_have_no_inverse(divisor: float) -> None:
    assert reciprocal(np.float32(divisor), 300) is None
