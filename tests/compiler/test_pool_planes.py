"""Pools of channels-first images without transposes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.compiler.passes.layout.pool_planes import pool_planes
from onert.ir import DType, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.reduction.pool import Pool2D, Pooling

from .toy import interpret


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, False),
        ({"columns": 12}, True),
        ({"stride_width": 3}, True),
        ({"filter_height": 17}, True),
        ({"kind": Pooling.L2}, True),
        ({"back": (0, 3, 2, 1)}, True),
        ({"read": True}, True),
    ],
)
def test_only_pools_that_backends_run_plane_by_plane_lose_transposes(change: dict[str, Any], found: bool) -> None:
    b, change = Builder(), dict(change)
    x = b.input(TensorType(DType.FLOAT32, (2, 3, 20, change.pop("columns", 30))))
    back, read = change.pop("back", (0, 3, 1, 2)), change.pop("read", False)
    op = {"kind": Pooling.MAX, "filter_height": 2, "filter_width": 2, "stride_height": 2, "stride_width": 2} | change
    pooled = b.add(Pool2D(**op), b.add(Transpose(), x, b.constant(np.int32([0, 2, 3, 1]))))
    y = b.add(Transpose(), pooled, b.constant(np.int32(back)))
    graph = b.model([y, *([pooled] if read else [])]).primary
    after = pool_planes.checked(graph)
    assert any(isinstance(each.op, Transpose) for each in after.operations) == found
    given = [np.random.default_rng(0).normal(size=graph.type(x).shape).astype(np.float32)]
    for mine, other in zip(interpret(after, given), interpret(graph, given), strict=True):
        np.testing.assert_array_equal(mine, other)
