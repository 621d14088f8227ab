"""Ranges of rows are natively reduced as defined, whatever their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.segment import RANGE_KINDS, ReduceRanges
from onert_llvm.target.isa import Isa, runnable

from .natively import check, single

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


@ISAS
@pytest.mark.parametrize("kind", RANGE_KINDS, ids=lambda kind: kind.value)
@pytest.mark.parametrize("rest", [(), (1,), (5,), (37,), (3, 70)])
def test_rows_of_any_width_are_reduced(isa: Isa, kind: Reduction, rest: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(20, *rest)).astype(np.float32)
    data[3] = np.nan
    begin, end = (rng.integers(-30, 30, 50).astype(np.int32) for _ in range(2))
    check(*single(ReduceRanges(kind), data, begin, end), isa, threads=2)


@ISAS
@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=lambda d: d.__name__)
def test_bounds_are_cut_to_the_rows(isa: Isa, dtype: Any) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    begin = np.array([low, low, 0, high, 2, -1, -3, -4, 3], dtype)
    end = np.array([high, low, high, low, 1, high, -1, 1, 3], dtype)
    check(*single(ReduceRanges(Reduction.SUM), np.eye(3, dtype=np.float32), begin, end), isa)
