"""Convolutions and products of all forms match their definitions on every target, alone and with fused epilogues."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from onert.ir import DType, Op, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D, TransposeConvBias2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import BACKEND, check, natively, single

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


def _draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


FORMS = [(False, False), (True, False), (False, True), (True, True)]
BATCHES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((4,), ()), ((), (4,)), ((2, 3), (1, 1)),
]  # fmt: skip


@ISAS
@pytest.mark.parametrize(("turn_x", "turn_y"), FORMS)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 5, 3), (7, 33, 70), (40, 16, 16), (9, 1, 65), (20, 70, 1)])
def test_batched_matmuls_match_their_definition(isa: Isa, turn_x: bool, turn_y: bool, m: int, k: int, n: int) -> None:
    for (a, b), constant in product(BATCHES, ((), (1,))):
        x = _draw(*a, *((k, m) if turn_x else (m, k)))
        y = _draw(*b, *((n, k) if turn_y else (k, n)), seed=1)
        check(*single(BatchMatMul(turn_x, turn_y), x, y, constant=constant), isa, 1e-5, threads=2)


@ISAS
@pytest.mark.parametrize(("turn_x", "turn_y"), FORMS)
def test_both_sides_of_a_matmul_may_be_one_tensor(isa: Isa, turn_x: bool, turn_y: bool) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (2, 67, 67)))
    check(b.subgraph([b.add(BatchMatMul(turn_x, turn_y), x, x)]), [_draw(2, 67, 67)], isa, 1e-5, threads=2)


@ISAS
def test_a_matmul_and_its_epilogue_are_native(isa: Isa) -> None:
    b = Builder()
    x, y = b.input(TensorType(DType.FLOAT32, (2, 3, 9, 20))), b.input(TensorType(DType.FLOAT32, (2, 3, 20, 35)))
    mask, other = b.input(TensorType(DType.FLOAT32, (35,))), b.input(TensorType(DType.FLOAT32, (2, 3, 9, 35)))
    scaled = b.add(Binary(BinaryKind.MUL), b.add(BatchMatMul(), x, y), b.constant(np.float32(0.25)))
    out = b.add(Binary(BinaryKind.ADD), b.add(Binary(BinaryKind.ADD), scaled, mask), other)
    subgraph = b.subgraph([out])
    arrays = [_draw(2, 3, 9, 20), _draw(2, 3, 20, 35), _draw(35), _draw(2, 3, 9, 35)]
    expected = arrays[0] @ arrays[1] * 0.25 + arrays[2] + arrays[3]
    np.testing.assert_allclose(natively(subgraph, arrays, isa)[0], expected, atol=1e-4)
    assert all(BACKEND.supports(o, subgraph.types(o)) is None for o in subgraph.operations)


@ISAS
@pytest.mark.parametrize("constant", [(1, 2), (2,), ()])
def test_fully_connected_layers_may_have_constant_or_computed_weights(isa: Isa, constant: tuple[int, ...]) -> None:
    for m, k, n in ((1, 40, 33), (17, 8, 70)):
        op = FullyConnected(Activation.RELU)
        check(*single(op, _draw(m, k), _draw(n, k, seed=1), _draw(n, seed=2), constant=constant), isa)


CONVS: list[tuple[Conv2D, tuple[int, ...], tuple[int, ...]]] = [
    (Conv2D(Padding.SAME), (2, 7, 9, 5), (6, 3, 3, 5)),
    (Conv2D(Padding.VALID, 2, 1, activation=Activation.RELU6), (1, 8, 9, 3), (20, 3, 2, 3)),
    (Conv2D(), (2, 5, 4, 8), (33, 1, 1, 8)),
    (Conv2D(Padding.SAME, dilation_height=2, dilation_width=3), (1, 9, 9, 4), (5, 3, 3, 4)),
    (Conv2D(Padding.SAME), (2, 7, 9, 12), (8, 3, 3, 3)),
    (Conv2D(Padding.SAME, 2, 2), (1, 7, 9, 6), (36, 3, 3, 1)),
    (Conv2D(), (1, 5, 5, 20), (10, 1, 1, 4)),
]


@ISAS
@pytest.mark.parametrize(
    ("at", "constant"),
    [
        (at, constant)
        for at, constant in product(range(len(CONVS)), ((1, 2), (2,)))
        if 1 in constant or CONVS[at][1][3] == CONVS[at][2][3]  # grouped ones are native only with constant weights
    ],
)
def test_convolutions_may_be_grouped_or_have_computed_weights(isa: Isa, at: int, constant: tuple[int, ...]) -> None:
    op, x, w = CONVS[at]
    check(*single(op, _draw(*x), _draw(*w, seed=1), _draw(w[0], seed=2), constant=constant), isa, threads=2)


@ISAS
def test_a_grouped_convolution_with_an_epilogue_matches_its_definition(isa: Isa) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 6, 8)))
    other = b.input(TensorType(DType.FLOAT32, (1, 6, 6, 40)))
    weights = [_draw(40, 3, 3, 2, seed=3), _draw(40, seed=4), _draw(40, seed=5)]
    y = b.add(Conv2D(Padding.SAME), x, b.constant(weights[0]), b.constant(weights[1]))
    scaled = b.add(Binary(BinaryKind.MUL), y, b.constant(weights[2]))
    check(
        b.subgraph([b.add(Binary(BinaryKind.ADD, Activation.RELU), scaled, other)]),
        [_draw(1, 6, 6, 8), _draw(1, 6, 6, 40)],
        isa,
    )


@ISAS
@pytest.mark.parametrize(("channels", "times"), [(1, 8), (1, 33), (3, 2), (5, 7), (16, 1), (21, 1)])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_convolutions_may_have_any_multiplier(isa: Isa, channels: int, times: int, stride: int) -> None:
    op = DepthwiseConv2D(Padding.SAME, stride, stride, activation=Activation.RELU)
    operands: list[Any] = [_draw(2, 7, 9, channels), _draw(1, 3, 2, channels * times, seed=1)]
    check(*single(op, *operands, _draw(channels * times, seed=2), constant=(1, 2)), isa, threads=2)


TRANSPOSED: list[tuple[tuple[int, int], tuple[int, int], tuple[int, int], Padding]] = [
    ((2, 2), (2, 2), (10, 14), Padding.SAME), ((3, 3), (2, 2), (10, 14), Padding.SAME),
    ((3, 3), (2, 2), (11, 15), Padding.VALID), ((4, 4), (2, 2), (12, 16), Padding.VALID),
    ((4, 5), (2, 3), (10, 21), Padding.SAME), ((1, 1), (2, 2), (9, 13), Padding.VALID),
    ((3, 2), (1, 1), (5, 7), Padding.SAME), ((5, 5), (1, 1), (9, 11), Padding.VALID),
    ((2, 3), (3, 4), (15, 28), Padding.SAME), ((1, 1), (1, 1), (5, 7), Padding.SAME),
    ((16, 1), (8, 1), (40, 7), Padding.SAME),
]  # fmt: skip


@ISAS
@pytest.mark.parametrize("at", range(len(TRANSPOSED)))
def test_transposed_convolutions_match_their_definition(isa: Isa, at: int) -> None:
    window, strides, size, padding = TRANSPOSED[at]
    op: Op = TransposeConv2D(padding, *strides, Activation.RELU)
    shape = np.array([2, *size, 6], np.int32)
    x, w, bias = _draw(2, 5, 7, 4), _draw(6, *window, 4, seed=1), _draw(6, seed=2)
    check(*single(op, shape, w, x, bias, constant=(0, 1, 3)), isa, threads=2)
    check(*single(op, shape, w, x, constant=(0, 1)), isa)
    check(*single(TransposeConvBias2D(padding, *strides), x, w, bias, constant=(1, 2)), isa)
