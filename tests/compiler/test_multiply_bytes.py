"""Layers of dequantised integers become integer products that equal float64 up to a stated number of roundings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvm.natively import evaluated, natively

from onert.compiler.options import Options
from onert.compiler.passes.quantized.multiply_bytes import multiply_bytes
from onert.compiler.passes.quantized.scales import on_grid
from onert.compiler.pipeline import simplify
from onert.ir import Array, DType, Subgraph, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.joining import Concat, SplitV
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert_llvm.target.isa import runnable, target

from .stored_floats import quantized, scalar

ADD, SUB, MUL, DIV = BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.DIV
STEP = 2.0**-24
"""The largest relative error of rounding to float32."""


def _draw(seed: int, low: int, high: int, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(low, high + 1, shape)


def _dequantized(b: Builder, x: int, scale: float, zero: int) -> int:
    centred = b.add(Binary(SUB), b.add(Cast(DType.INT32), x), scalar(b, zero, np.int32))
    return b.add(Binary(MUL), b.add(Cast(DType.FLOAT32), centred), scalar(b, scale))


def _weights(seed: int, each: bool, *shape: int, axis: int = 0) -> Array:
    """Integers times one scale, or times a scale for each output."""
    count = shape[axis] if each else 1
    scales = np.random.default_rng(seed).uniform(0.001, 0.02, count).astype(np.float32)
    stored = _draw(seed, -127, 127, *shape)
    np.moveaxis(stored, axis, 0)[(slice(None), *(0,) * (len(shape) - 1))] = 127
    return stored.astype(np.float32) * scales.reshape(-1, *(1,) * (len(shape) - 1 - axis))


LAYERS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {
    "rows": (FullyConnected(keep_dims=True), (2, 9, 70), (21, 70)),
    "relu": (FullyConnected(Activation.RELU), (9, 33), (5, 33)),
    "conv": (Conv2D(Padding.SAME), (1, 6, 5, 7), (17, 3, 3, 7)),
    "three channels": (Conv2D(Margins(((1, 0), (0, 2))), 2, 2), (2, 8, 7, 3), (5, 3, 3, 3)),
    "pixels": (Conv2D(activation=Activation.RELU6), (1, 4, 4, 12), (16, 1, 1, 12)),
    "channels": (DepthwiseConv2D(Padding.SAME, 2, 1, activation=Activation.RELU), (1, 7, 6, 21), (1, 3, 5, 21)),
    "many channels": (DepthwiseConv2D(Padding.SAME), (2, 5, 5, 70), (1, 3, 3, 70)),
    "filters of one channel": (DepthwiseConv2D(), (1, 5, 5, 1), (1, 2, 2, 9)),
    "two filters each": (DepthwiseConv2D(), (1, 5, 5, 20), (1, 3, 3, 40)),
}
"""An operation, and the shapes of its operand and its weights."""
KINDS = [(DType.UINT8, 131), (DType.UINT8, 0), (DType.INT8, -5)]


def _layer(name: str, dtype: DType, zero: int, each: bool, bias: bool, stored: bool, table: bool = False) -> Subgraph:
    """A layer of a dequantised input; its results are requantised if `stored`, then mapped through a `table`."""
    op, shape, weight = LAYERS[name]
    b = Builder()
    real = _dequantized(b, b.input(TensorType(dtype, shape)), 0.0173, zero)
    axis = 3 if isinstance(op, DepthwiseConv2D) else 0
    offset = [b.constant(np.linspace(-1, 1, weight[axis], dtype=np.float32))] if bias else []
    y = b.add(op, real, b.constant(_weights(len(name), each, *weight, axis=axis)), *offset)
    y = quantized(b, y, 0.031, 3, dtype) if stored else y
    if table:
        y = _dequantized(b, y, 0.031, 3)
        y = quantized(b, b.add(Binary(MUL), y, b.add(Unary(UnaryKind.LOGISTIC), y)), 0.02, 5, dtype)
    return b.subgraph([y])


def _bytes_of(graph: Subgraph) -> list[Array]:
    types = [graph.type(i) for i in graph.inputs]
    return [_draw(7, *t.dtype.limits, *(d or 1 for d in t.shape)).astype(t.dtype.numpy) for t in types]


def _real(elements: Array, axis: int) -> Array:
    """A constant in float64; weights are integers times scales, without rounding each product to float32."""
    if elements.ndim < 2:
        return elements.astype(np.float64)
    rows = np.moveaxis(elements, axis, 0)
    grid = on_grid(np.ascontiguousarray(rows).reshape(len(rows), -1))
    if grid is None:
        return elements.astype(np.float64)
    return np.moveaxis((grid[0].astype(np.float64) * grid[1][:, None]).reshape(rows.shape), 0, axis)


def _exact(graph: Subgraph, arrays: list[Array]) -> Array:
    """The sum of layer and bias in float64, which is exact for integers."""
    op = next(o for o in graph.operations if isinstance(o.op, FullyConnected | Conv2D | DepthwiseConv2D | BatchMatMul))
    axis = 3 if isinstance(op.op, DepthwiseConv2D) else 0
    values: dict[int, Array] = dict(zip(graph.inputs, (a.astype(np.float64) for a in arrays), strict=True))
    for operand, one in enumerate(graph.operands):
        if one.is_constant and one.known.value is not None:
            values[operand] = _real(one.known.value, axis)
    for each in graph.operations:
        given = [values[i] for i in each.used]
        values[each.outputs[0]] = given[0] if isinstance(each.op, Cast) else each.op.evaluate(*given)
        if each is op:
            break
    return values[op.outputs[0]]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("each", [False, True])
def test_a_layer_of_bytes_equals_the_exact_sum_up_to_the_stated_roundings(name: str, each: bool) -> None:
    for dtype, zero in KINDS:
        for bias in (False, True):
            graph = _layer(name, dtype, zero, each, bias, stored=False)
            folded = simplify(graph, Options())
            labels = [o.op.attributes.get("output") for o in folded.operations]
            assert DType.FLOAT32 in labels, folded
            arrays = _bytes_of(graph)
            exact = _exact(graph, arrays)
            room = (np.abs(exact) + 2 * bias) * 4 * STEP  # a bias, at most 1, adds one rounding
            for found in (*evaluated(folded, arrays), *natively(folded, arrays, target("native"))):
                np.testing.assert_array_less(np.abs(found.reshape(exact.shape) - exact), room + 1e-30)


@pytest.mark.parametrize("name", LAYERS)
def test_requantised_results_differ_from_float64_only_near_ties(name: str) -> None:
    for dtype, zero in KINDS:
        graph = _layer(name, dtype, zero, each=True, bias=True, stored=True)
        folded = simplify(graph, Options())
        arrays = _bytes_of(graph)
        exact = _exact(graph, arrays)
        steps = exact / np.float64(np.float32(0.031))
        low, high = dtype.limits
        expected = np.clip(np.rint(steps) + 3, low, high)
        near = np.abs(steps - np.floor(steps) - 0.5) < (np.abs(steps) + 64) * 6 * STEP
        for found in (*evaluated(folded, arrays), *natively(folded, arrays, target("native"))):
            assert found.dtype == dtype.numpy
            assert np.all((found.reshape(exact.shape) == expected) | near)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("isa", ["native", *(isa.name for isa in runnable())])
def test_every_target_gives_the_bits_of_evaluating_each_operation(name: str, isa: str) -> None:
    for dtype, zero in KINDS:
        for bias, table in ((True, False), (False, True)):
            graph = _layer(name, dtype, zero, each=True, bias=bias, stored=True, table=table)
            folded = simplify(graph, Options())
            arrays = _bytes_of(graph)
            (expected,) = evaluated(folded, arrays)
            for found in natively(folded, arrays, target(isa)):
                assert np.array_equal(found, expected)


@pytest.mark.parametrize(("left", "zero"), KINDS)
@pytest.mark.parametrize(("right", "other"), KINDS)
@pytest.mark.parametrize("isa", ["native", *(isa.name for isa in runnable())])
def test_two_dequantised_matrices_are_multiplied_as_bytes(
    left: DType, zero: int, right: DType, other: int, isa: str
) -> None:
    b = Builder()
    x = _dequantized(b, b.input(TensorType(left, (2, 3, 19, 37))), 0.02, zero)
    y = _dequantized(b, b.input(TensorType(right, (2, 37, 3, 21))), 0.01, other)
    y = b.add(Transpose(), y, b.constant(np.array([0, 2, 1, 3], np.int32)))
    graph = b.subgraph([b.add(BatchMatMul(), x, y)])
    folded = simplify(graph, Options())
    (product,) = (o for o in folded.operations if isinstance(o.op, BatchMatMul))
    assert [folded.type(i).dtype for i in product.used] == [left, right]
    arrays = _bytes_of(graph)
    exact = _exact(graph, arrays)
    for found in (*evaluated(folded, arrays), *natively(folded, arrays, target(isa))):
        np.testing.assert_array_less(np.abs(found - exact), np.abs(exact) * 4 * STEP + 1e-30)


def _joined(b: Builder, x: int, zero: int) -> int:
    """Max-pooled windows, split, with one part requantised to another scale, and concatenated again."""
    pooled = b.add(Pool2D(Pooling.MAX, 3, 3, Padding.SAME, 2, 2), x)
    sizes, axis = (b.constant(np.array(values, np.int32)) for values in ([3, 5], 3))
    left, right = b.add_many(SplitV(2), pooled, sizes, axis)
    right = _dequantized(b, quantized(b, right, 0.05, zero, DType.UINT8), 0.05, zero)
    return b.add(Concat(3), right, left)


@pytest.mark.parametrize("scale", [0.0173, 0.031])
def test_bytes_are_pooled_split_and_concatenated_as_bytes(scale: float) -> None:
    b = Builder()
    x = b.input(TensorType(DType.UINT8, (2, 7, 6, 8)))
    y = quantized(b, _joined(b, _dequantized(b, x, 0.0173, 131), 9), scale, 131, DType.UINT8)
    layer = b.add(Conv2D(Padding.SAME), _dequantized(b, y, scale, 131), b.constant(_weights(3, True, 9, 3, 3, 8)))
    graph = b.subgraph([layer, y])
    folded = simplify(graph, Options())
    for operation in folded.operations:
        if isinstance(operation.op, Pool2D | SplitV | Concat):
            assert folded.type(operation.outputs[0]).dtype is DType.UINT8
    arrays = _bytes_of(graph)
    (_, exact), found = evaluated(graph, arrays), evaluated(folded, arrays)
    for results in (found, natively(folded, arrays, target("native"))):
        assert np.array_equal(results[1], exact)
        np.testing.assert_array_equal(results[0], found[0])


def _with_weights(weights: Array, scale: float = 0.0173) -> Subgraph:
    b = Builder()
    real = _dequantized(b, b.input(TensorType(DType.UINT8, (3, weights.shape[1]))), scale, 7)
    return b.subgraph([b.add(FullyConnected(), real, b.constant(weights))])


def test_weights_that_are_not_bytes_times_scales_stay_floats() -> None:
    stored = _weights(3, True, 4, 40)
    assert multiply_bytes(_with_weights(stored)) is not _with_weights(stored)
    for at in (0, 39):
        moved = stored.copy()
        moved[2, at] = np.nextafter(moved[2, at], np.float32(np.inf))
        for wrong in (moved, np.where(moved == moved[2, at], np.float32(np.nan), moved), moved * 1e-42):
            graph = _with_weights(wrong.astype(np.float32))
            assert multiply_bytes(graph) is graph
    graph = _with_weights(stored, scale=-0.5)
    assert multiply_bytes(graph) is graph


@pytest.mark.parametrize("most", [1, 2, 64, 127, -128])
def test_scales_are_recovered_for_any_largest_magnitude(most: int) -> None:
    stored = _draw(most & 255, -abs(most) + 1, abs(most) - 1, 9, 50) if abs(most) > 1 else np.zeros((9, 50), np.int64)
    stored[:, 11] = most
    stored[4] = 0
    scales = np.random.default_rng(abs(most)).uniform(1e-4, 3, 9).astype(np.float32)
    rows = stored.astype(np.float32) * scales[:, None]
    found = on_grid(rows)
    assert found is not None
    assert np.array_equal(found[0].astype(np.float32) * found[1][:, None], rows)
