"""Pools of one channel, whose neighbouring outputs share registers, on every target."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_pooled

POOLS = [
    Pool2D(Pooling.MAX, 2, 2, stride_height=2, stride_width=2),
    Pool2D(Pooling.MAX, 3, 3, Margins(((1, 1), (1, 1)))),
    Pool2D(Pooling.MAX, 3, 3, Margins(((1, 1), (1, 1))), 2, 2, Activation.RELU),
    Pool2D(Pooling.MAX, 1, 4, Margins(((0, 0), (3, 3))), 1, 2),
    Pool2D(Pooling.MAX, 6, 16, Padding.SAME, 3, 1),
    Pool2D(Pooling.MAX, 4, 1, Margins(((3, 0), (0, 0)))),
    Pool2D(Pooling.MAX, 2, 2, stride_height=3, stride_width=3),
    Pool2D(Pooling.AVERAGE, 3, 2, Padding.SAME, 1, 2),
    Pool2D(Pooling.AVERAGE, 5, 5, Margins(((2, 2), (2, 2)))),
    Pool2D(Pooling.AVERAGE, 2, 3, Margins(((1, 0), (0, 2))), counts_margins=True),
]


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("width", [16, 23, 65])
def test_pools_of_planes_match_their_definition(isa: Isa, width: int) -> None:
    x = np.random.default_rng(width).normal(size=(2, 7, width, 1)).astype(np.float32)
    x[1, 4, 9], x[0, 0, width - 1], x[0, 2:, :5] = np.nan, np.nan, -np.inf
    for op in POOLS:
        assert_pooled(op, x, isa)
