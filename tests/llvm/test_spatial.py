"""3-D convolutions, and their transposes, run natively and match their definition on every target."""

from __future__ import annotations

import compute_trials as trials
import numpy as np
import pytest
from cases.case import Case

from onert.backend import Sequence, Settings
from onert.ir import DType, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.target.isa import Isa, runnable

from .natively import BACKEND, check, single, subgraph_of, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
CASES = list(trials.spatial_convolutions())


@ISAS
@pytest.mark.parametrize("case", CASES, ids=[f"{c.op.label} {c.name}" for c in CASES])
def test_3d_convolutions_may_have_any_window_stride_and_padding(isa: Isa, case: Case) -> None:
    subgraph = subgraph_of(case)
    if why_not(subgraph):
        assert isinstance(case.op, TransposeConv3D)
        assert case.op.dilation_depth > 1
        return
    check(subgraph, [a for i, a in enumerate(case.inputs) if a is not None and i not in case.constant], isa, threads=2)


SIZES = [(1, 1), (1, 16), (5, 33), (64, 70), (300, 3)]
"""Input and output channels."""


@ISAS
@pytest.mark.parametrize(("channels", "n"), SIZES)
@pytest.mark.parametrize("biased", [False, True])
def test_3d_convolutions_may_have_any_number_of_channels(isa: Isa, channels: int, n: int, biased: bool) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 4, 5, channels)).astype(np.float32)
    weight = (rng.standard_normal((2, 3, 2, channels, n)) / channels**0.5).astype(np.float32)
    bias = rng.standard_normal(n).astype(np.float32) if biased else None
    subgraph, inputs = single(Conv3D(Padding.SAME, 1, 2, 1), x, weight, bias, constant=(1, 2))
    check(subgraph, inputs, isa, threads=2)
    shape = np.array([2, 6, 4, 5, n], np.int32)
    turned = np.ascontiguousarray(weight.swapaxes(3, 4))
    op = TransposeConv3D(Padding.SAME, 2, 1, 1, activation=Activation.RELU6)
    subgraph, inputs = single(op, shape, turned, x, bias, constant=(0, 1, 3))
    check(subgraph, inputs, isa, threads=2)


@ISAS
def test_a_3d_convolution_with_a_fused_activation_is_one_kernel(isa: Isa) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1, 3, 4, 5, 6)).astype(np.float32)
    weight = rng.standard_normal((1, 2, 2, 6, 7)).astype(np.float32)
    b = Builder()
    operand = b.input(TensorType(DType.FLOAT32, x.shape))
    subgraph = b.subgraph(b.add_many(Unary(UnaryKind.TANH), b.add(Conv3D(), operand, b.constant(weight))))
    assert len(BACKEND.fuse(Sequence(subgraph, (0, 1), subgraph.inputs, subgraph.outputs), Settings())) == 1
    check(subgraph, [x], isa)


def test_3d_convolutions_with_a_sign_bit_activation_are_not_native() -> None:
    x, weight = np.zeros((1, 3, 4, 5, 2), np.float32), np.zeros((1, 1, 1, 2, 3), np.float32)
    assert why_not(single(Conv3D(activation=Activation.SIGN_BIT), x, weight, constant=(1,))[0])
