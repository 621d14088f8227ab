"""Depthwise convolutions with few channels, whose outputs may be side by side in the lanes, on every target."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from onert.ir import DType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.types import TensorType
from onert_llvm.target.isa import Isa, runnable

from .natively import assert_close, check, natively

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
WINDOWS = (((3, 3), 1), ((5, 5), 1), ((3, 3), 2))
"""Window sizes and dilations."""
PADDINGS = (Padding.SAME, Padding.VALID, Margins(((0, 2), (5, 0))))


@ISAS
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 6, 8, 12, 24])
def test_depthwise_convolutions_with_few_channels_match_their_definition(isa: Isa, channels: int) -> None:
    rng = np.random.default_rng(channels)
    for (window, dilation), padding, width in product(WINDOWS, PADDINGS, (16, 21)):
        b = Builder("depthwise")
        kind = TensorType(DType.FLOAT32, (2, 9, width, channels))
        x = b.input(kind, "x")
        weight = b.constant(rng.normal(size=(1, *window, channels)).astype(np.float32))
        bias = b.constant(rng.normal(size=channels).astype(np.float32))
        op = DepthwiseConv2D(padding, 1, 1, dilation, dilation, Activation.RELU)
        made = b.add(op, x, weight, bias)
        made = b.add(Binary(BinaryKind.MUL), made, b.constant(rng.normal(size=channels).astype(np.float32)))
        if padding is Padding.SAME:
            made = b.add(Binary(BinaryKind.ADD), made, b.input(kind, "residual"))
        graph = b.subgraph([made])
        inputs = [rng.normal(size=kind.shape).astype(np.float32) for _ in graph.inputs]
        check(graph, inputs, isa, 1e-6, threads=2)
        assert_close(natively(graph, inputs, isa, 1), natively(graph, inputs, isa, 3))
