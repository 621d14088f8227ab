"""Integers are checked natively against computed limits, as their operation defines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.ir import ExecutionError
from onert.ir.ops.data_movement.fill import BEYOND, Within
from onert_llvm.target.isa import Isa, runnable

from .natively import check, natively, single

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
TYPES = pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=lambda d: d.__name__)


@ISAS
@TYPES
@pytest.mark.parametrize("count", [None, 0, 1, 300])
def test_integers_within_the_limit_are_unchanged(isa: Isa, dtype: Any, count: int | None) -> None:
    x = np.random.default_rng(0).integers(0, 50, (300, 3)).astype(dtype)
    x[count:] += 0 if count is None else 90  # beyond the count, not checked
    check(*single(Within(), x, np.int64(50), None if count is None else np.int64(count)), isa, threads=2)


@ISAS
@TYPES
@pytest.mark.parametrize(
    ("value", "limit", "inclusive"), [(-1, 5, False), (5, 5, False), (6, 5, True), (0, 0, False), (0, -1, True)]
)
def test_an_integer_beyond_the_limit_is_reported(isa: Isa, dtype: Any, value: int, limit: int, inclusive: bool) -> None:
    graph, inputs = single(Within(inclusive), np.array([[value]], dtype), np.int64(limit), np.int64(1))
    with pytest.raises(ExecutionError, match=f"{value} {BEYOND}"):
        natively(graph, inputs, isa)


@pytest.mark.parametrize("count", [-3, 1 << 62])
def test_an_impossible_count_reads_nothing_out_of_bounds(count: int) -> None:
    graph, inputs = single(Within(), np.zeros((4, 2), np.int32), np.int64(1), np.int64(count))
    (found,) = natively(graph, inputs, runnable()[0])
    assert not found.any()
