"""Convolutions with small channel groups, which are side by side in the lanes, on every target."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import DType, Op
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.types import TensorType
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_close, check, natively

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
WINDOWS: list[Op] = [
    Conv2D(Padding.SAME, activation=Activation.RELU6),
    Conv2D(Padding.SAME, 2, 2),
    Conv2D(Margins(((0, 2), (5, 0))), 1, 1, 2, 2),
    Conv2D(Padding.VALID, 1, 3),
]


@ISAS
@pytest.mark.parametrize(
    ("channels", "n", "groups"),
    [
        *((32, 32, 16), (10, 10, 5), (24, 24, 8), (15, 10, 5), (16, 32, 8), (64, 24, 8), (40, 40, 5), (28, 42, 14)),
        *(
            (20, 10, 5),
            (6, 36, 6),
            (24, 24, 2),
            (32, 32, 2),
            (9, 27, 9),
            (7, 14, 7),
            (12, 96, 12),
            (3, 12, 3),
            (5, 80, 5),
        ),
    ],
)
def test_convolutions_of_small_groups_match_their_definition(isa: Isa, channels: int, n: int, groups: int) -> None:
    rng = np.random.default_rng(channels)
    x = rng.normal(size=(2, 7, 9, channels)).astype(np.float32)
    weight = rng.normal(size=(n, 3, 3, channels // groups)).astype(np.float32)
    op, b = WINDOWS[(channels + len(isa.name)) % len(WINDOWS)], Builder("groups")
    given = b.input(TensorType(DType.FLOAT32, x.shape), "x")
    made = b.add(op, given, b.constant(weight), b.constant(rng.normal(size=n).astype(np.float32)))
    if channels % 3 == 0:
        made = b.add(Binary(BinaryKind.MUL), made, b.constant(rng.normal(size=n).astype(np.float32)))
    graph = b.subgraph([b.add(Binary(BinaryKind.ADD), made, b.input(b.type(made), "residual"))])
    inputs = [x, rng.normal(size=b.type(made).shape).astype(np.float32)]
    check(graph, inputs, isa, 1e-6, threads=2)
    assert_close(natively(graph, inputs, isa, 1), natively(graph, inputs, isa, 3))


@ISAS
@pytest.mark.parametrize("times", [2, 3, 5, 8, 16])
def test_depthwise_convolutions_may_have_several_filters_per_channel(isa: Isa, times: int) -> None:
    rng = np.random.default_rng(times)
    x = rng.normal(size=(1, 6, 5, 6)).astype(np.float32)
    b = Builder("several")
    weight = b.constant(rng.normal(size=(1, 3, 3, 6 * times)).astype(np.float32))
    made = b.add(DepthwiseConv2D(Padding.SAME), b.input(TensorType(DType.FLOAT32, x.shape)), weight)
    check(b.subgraph([made]), [x], isa, 1e-6, threads=2)
