"""Quotients and remainders of integers next to multiples of the divisor, and of extremes, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert_llvm.target.isa import Isa, runnable

from .natively import evaluated, natively, single

KINDS = (BinaryKind.DIV, BinaryKind.FLOOR_DIV, BinaryKind.FLOOR_MOD, BinaryKind.REMAINDER)


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int16, np.uint16], ids=lambda dtype: dtype.__name__)
def test_quotients_of_integers_are_exact(isa: Isa, dtype: Any) -> None:
    rng, info = np.random.default_rng(2), np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, 1, 2, 3, info.max // 2, info.max - 1, info.max])
    y = np.concatenate([rng.integers(1, info.max, 150), rng.integers(1, 99, 150), np.repeat(ends, len(ends)), [-1] * 9])
    x = np.concatenate(
        [y[:300] * rng.integers(0, info.max // y[:300] + 1) + rng.integers(-1, 2, 300), np.tile(ends, 9)]
    )
    x, y = (np.clip(side[: len(y)], info.min, info.max) for side in (np.append(x, [0]), y))
    y = np.where(y == 0, 1, y)
    for kind in KINDS:
        graph, inputs = single(Binary(kind), x.astype(dtype), y.astype(dtype))
        np.testing.assert_array_equal(natively(graph, inputs, isa), evaluated(graph, inputs), str(kind))
