"""Pools with large windows, which combine along their rows first unless they have few, on every target."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_pooled

POOLS = [
    Pool2D(Pooling.MAX, 5, 6, Padding.SAME, 1, 2),
    Pool2D(Pooling.MAX, 7, 5, Margins(((3, 1), (0, 4))), 2, 1, Activation.TANH),
    Pool2D(Pooling.MAX, 5, 20, Padding.SAME),
    Pool2D(Pooling.MAX, 3, 6),
    Pool2D(Pooling.MAX, 1, 17, Padding.SAME),
    Pool2D(Pooling.AVERAGE, 5, 7, Padding.SAME, 1, 2, Activation.RELU),
    Pool2D(Pooling.AVERAGE, 6, 5, Margins(((2, 3), (4, 0))), counts_margins=True),
]


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("channels", [3, 36])
def test_large_pools_match_their_definition(isa: Isa, channels: int) -> None:
    x = np.random.default_rng(channels).normal(size=(2, 12, 21, channels)).astype(np.float32)
    x[1, 4, 9, 1], x[0, :, :3, 2] = np.nan, -np.inf
    for op in POOLS:
        assert_pooled(op, x, isa)
