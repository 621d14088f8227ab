"""Multiplications and additions beside a layer are folded into its weights and bias if the result is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvm.natively import assert_close, evaluated

from onert.compiler.passes.fold_scales import fold_scales
from onert.ir import Array, DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

ADD, SUB, MUL, DIV = BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.DIV


def _draw(*shape: int) -> Array:
    return np.random.default_rng(len(shape) + sum(shape)).uniform(0.5, 2, shape).astype(np.float32)


LAYERS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "conv": (Conv2D(), (1, 5, 6, 3), (4, 2, 3, 3), (1, 4, 4, 4)),
    "grouped": (Conv2D(Padding.SAME), (1, 5, 6, 4), (6, 2, 3, 2), (1, 5, 6, 6)),
    "depthwise": (DepthwiseConv2D(), (1, 5, 6, 3), (1, 2, 3, 3), (1, 4, 4, 3)),
    "multiplied": (DepthwiseConv2D(), (1, 5, 6, 3), (1, 2, 3, 6), (1, 4, 4, 6)),
    "space": (Conv3D(), (1, 3, 4, 5, 2), (2, 2, 2, 2, 3), (1, 2, 3, 4, 3)),
    "transposed": (TransposeConv2D(Padding.VALID, 2, 2), (1, 2, 3, 3), (4, 2, 2, 3), (1, 4, 6, 4)),
    "back in space": (TransposeConv3D(), (1, 2, 2, 2, 3), (1, 2, 2, 4, 3), (1, 2, 3, 3, 4)),
    "rows": (FullyConnected(), (3, 5), (4, 5), (3, 4)),
    "kept rows": (FullyConnected(keep_dims=True), (2, 3, 5), (4, 5), (2, 3, 4)),
}
"""An operation, and the shapes of its operand, its weights and its result."""


def _layer(b: Builder, op: Any, x: int, weight: tuple[int, ...], result: tuple[int, ...], bias: bool) -> int:
    filters, offset = b.constant(_draw(*weight)), b.constant(_draw(result[-1])) if bias else None
    if isinstance(op, TransposeConv2D | TransposeConv3D):
        return b.add(op, b.constant(np.array(result, np.int32)), filters, x, offset)
    return b.add(op, x, filters, offset)


def _folded(graph: Subgraph) -> Subgraph:
    after = fold_scales.checked(graph)
    arrays = [_draw(*(d or 1 for d in graph.type(i).shape)) for i in graph.inputs]
    assert_close(evaluated(after, arrays), evaluated(graph, arrays), 1e-5)
    return after


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("bias", [False, True])
def test_arithmetic_after_a_layer_is_folded_into_it(name: str, bias: bool) -> None:
    op, shape, weight, result = LAYERS[name]
    for kind, first in ((MUL, True), (MUL, False), (ADD, True), (SUB, True), (SUB, False), (DIV, True)):
        for constant in (_draw(result[-1]), _draw(1), _draw(*(1,) * (len(result) - 1), result[-1])):
            b = Builder()
            y = _layer(b, op, b.input(TensorType(DType.FLOAT32, shape)), weight, result, bias)
            c = b.constant(constant)
            y = b.add(Binary(kind, Activation.RELU6), *((y, c) if first else (c, y)))
            after = _folded(b.subgraph([b.add(Binary(MUL), y, y)]))
            assert [type(o.op) for o in after.operations] == [type(op), Binary]
            assert after.operations[0].op.attributes["activation"] is Activation.RELU6


@pytest.mark.parametrize("name", [n for n in LAYERS if n not in ("grouped", "multiplied")])
@pytest.mark.parametrize("bias", [False, True])
def test_arithmetic_before_a_layer_is_folded_into_it(name: str, bias: bool) -> None:
    op, shape, weight, result = LAYERS[name]
    sums = () if isinstance(op, TransposeConv2D | TransposeConv3D) else (ADD, SUB)
    for kind in (MUL, DIV, *sums):
        b = Builder()
        x = b.add(Binary(kind), b.input(TensorType(DType.FLOAT32, shape)), b.constant(_draw(shape[-1])))
        after = _folded(b.subgraph([_layer(b, op, x, weight, result, bias)]))
        assert [type(o.op) for o in after.operations] == [type(op)]


def test_a_whole_normalisation_is_folded() -> None:
    b = Builder()
    op, shape, weight, result = LAYERS["conv"]
    y = _layer(b, op, b.input(TensorType(DType.FLOAT32, shape)), weight, result, bias=False)
    for kind in (SUB, DIV, MUL, ADD):
        y = b.add(Binary(kind), y, b.constant(_draw(4)))
    assert len(_folded(b.subgraph([y])).operations) == 1


def _conv(
    op: Conv2D = LAYERS["conv"][0],
    before: Array | None = None,
    after: Array | None = None,
    kinds: tuple[BinaryKind, BinaryKind] = (MUL, MUL),
    reversed_operands: bool = False,
    returned: bool = False,
) -> Subgraph:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 5, 6, 3)))
    x = x if before is None else b.add(Binary(kinds[0]), x, b.constant(before))
    y = b.add(op, x, b.constant(_draw(4, 2, 3, 3)))
    if after is None:
        return b.subgraph([y])
    c = b.constant(after)
    z = b.add(Binary(kinds[1]), *((c, y) if reversed_operands else (y, c)))
    return b.subgraph([z, y] if returned else [z])


@pytest.mark.parametrize(
    "graph",
    [
        _conv(after=_draw(1, 4, 4, 4)),  # another factor for every pixel
        _conv(after=_draw(2, 1, 1, 4)),  # the result has more elements
        _conv(after=_draw(1, 1, 1, 1, 4)),  # the result has another rank
        _conv(after=_draw(4), returned=True),
        _conv(after=_draw(4), kinds=(MUL, DIV), reversed_operands=True),
        _conv(after=np.zeros(4, np.float32), kinds=(MUL, DIV)),
        _conv(after=np.full(4, np.inf, np.float32)),
        _conv(after=np.full(4, 3e38, np.float32)),  # the weights would overflow
        _conv(after=_draw(4), kinds=(MUL, BinaryKind.POW)),
        _conv(Conv2D(activation=Activation.RELU), after=_draw(4)),
        _conv(Conv2D(Padding.SAME), before=_draw(3), kinds=(ADD, MUL)),  # nothing is added to the zero padding
        _conv(Conv2D(Margins(((1, 0), (0, 0)))), before=_draw(3), kinds=(ADD, MUL)),
        _conv(before=_draw(1, 5, 6, 3)),
    ],
)
def test_arithmetic_that_no_weights_express_is_not_folded(graph: Subgraph) -> None:
    assert fold_scales(graph) is graph


def _turned(constant: Array, kind: BinaryKind = MUL, activation: Activation = Activation.NONE) -> Subgraph:
    """A layer whose results are split into heads, turned, and then multiplied."""
    b = Builder()
    x, weight = b.input(TensorType(DType.FLOAT32, (5, 3))), b.constant(_draw(8, 3))
    heads = b.add(Reshape((5, 2, 4)), b.add(FullyConnected(), x, weight, b.constant(_draw(8))))
    turned = b.add(Transpose(), heads, b.constant(np.array([1, 0, 2], np.int32)))
    return b.subgraph([b.add(Binary(kind, activation), turned, b.constant(constant))])


@pytest.mark.parametrize("kind", [MUL, ADD, SUB, DIV])
def test_a_number_after_results_were_moved_is_folded(kind: BinaryKind) -> None:
    after = _folded(_turned(_draw(1), kind))
    assert [type(o.op) for o in after.operations] == [FullyConnected, Reshape, Transpose]


def test_a_vector_or_an_activation_after_results_were_moved_is_not_folded() -> None:
    b = Builder()
    square = b.add(FullyConnected(), b.input(TensorType(DType.FLOAT32, (8, 3))), b.constant(_draw(8, 3)))
    turned = b.add(Transpose(), square, b.constant(np.array([1, 0], np.int32)))
    by_row = b.subgraph([b.add(Binary(MUL), turned, b.constant(_draw(8)))])
    for graph in (_turned(_draw(4)), by_row, _turned(_draw(1), MUL, Activation.RELU)):
        assert fold_scales(graph) is graph


def test_a_factor_before_a_layer_with_zero_padding_is_folded() -> None:
    assert len(_folded(_conv(Conv2D(Margins(((1, 0), (0, 2)))), before=_draw(3))).operations) == 1
