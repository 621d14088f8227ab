"""Tests of the passes that fuse activations and remove identities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onert.compiler.passes.fuse_activation import fuse_activation
from onert.compiler.passes.remove_identities import remove_identities
from onert.ir import Array, DType, Quantization, Subgraph, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

from .toy import Draft, ToyFlat, interpret

Q = Quantization((0.05,), (-10,))
OTHER = Quantization((0.04,), (-10,))
RELU6 = Unary(UnaryKind.RELU6)


def ops(graph: Subgraph) -> list[Any]:
    return [operation.op for operation in graph.operations]


def quantized(graph: Subgraph, quantization: dict[int, Quantization]) -> Subgraph:
    """The subgraph with these operands as int8, with these quantisation parameters."""
    types = {i: TensorType(DType.INT8, graph.type(i).shape, q) for i, q in quantization.items()}
    return graph.with_types(types)


def added_and_bounded(kind: UnaryKind, fused: Activation = Activation.NONE) -> Subgraph:
    d = Draft()
    x, y = d.input(6), d.input(6)
    return d.graph(d.op(Unary(kind), d.op(Binary(BinaryKind.ADD, fused), x, y)))


def same(before: Subgraph, after: Subgraph, *inputs: Array) -> None:
    for got, wanted in zip(interpret(after, inputs), interpret(before, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize(
    ("first", "then", "fused"),
    [
        (Activation.NONE, UnaryKind.RELU, Activation.RELU),
        (Activation.NONE, UnaryKind.RELU6, Activation.RELU6),
        (Activation.NONE, UnaryKind.RELU_N1_TO_1, Activation.RELU_N1_TO_1),
        (Activation.RELU, UnaryKind.RELU6, Activation.RELU6),
        (Activation.RELU6, UnaryKind.RELU, Activation.RELU6),
        (Activation.RELU_N1_TO_1, UnaryKind.RELU, None),
        (Activation.NONE, UnaryKind.RELU_0_TO_1, None),
        (Activation.TANH, UnaryKind.RELU, None),
        (Activation.NONE, UnaryKind.TANH, None),
    ],
)
def test_a_clamp_is_fused_into_the_operation_before_it_if_their_bounds_combine(
    first: Activation, then: UnaryKind, fused: Activation | None
) -> None:
    graph = added_and_bounded(then, first)
    after = fuse_activation(graph)
    if fused is None:
        assert after is graph
    else:
        assert ops(after) == [Binary(BinaryKind.ADD, fused)]
    values = np.array([-9, -0.0, 0.5, 3, np.nan, np.inf], np.float32)
    same(graph, after, values, values)


def test_a_clamp_of_a_tensor_that_is_also_an_output_is_not_fused() -> None:
    d = Draft()
    x = d.input(4)
    total = d.op(Binary(BinaryKind.ADD), x, x)
    graph = d.graph(d.op(RELU6, total), total)
    assert fuse_activation(graph) is graph


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-128, 127), min_size=6, max_size=6), st.sampled_from([UnaryKind.RELU, UnaryKind.RELU6]))
def test_fusing_quantised_clamps_is_bit_exact(stored: list[int], kind: UnaryKind) -> None:
    graph = quantized(added_and_bounded(kind), {0: Q, 1: OTHER, 2: OTHER, 3: OTHER})
    after = fuse_activation(graph)
    assert ops(after) == [Binary(BinaryKind.ADD, Activation[kind.name])]
    same(graph, after, np.array(stored, np.int8), np.array(stored[::-1], np.int8))


def test_a_clamp_to_another_scale_is_not_fused() -> None:
    graph = quantized(added_and_bounded(UnaryKind.RELU), {0: Q, 1: Q, 2: Q, 3: OTHER})
    assert fuse_activation(graph) is graph


def test_a_clamp_of_plain_integers_is_not_fused() -> None:
    d = Draft()
    x = d.input(4, dtype=DType.INT32)
    graph = d.graph(d.op(Unary(UnaryKind.RELU), d.op(Binary(BinaryKind.ADD), x, x)))
    assert fuse_activation(graph) is graph


def test_an_activation_is_fused_into_a_fully_connected_layer() -> None:
    d = Draft()
    x, w = d.input(2, 3), d.constant(np.arange(-6, 6, dtype=np.float32).reshape(4, 3))
    graph = d.graph(d.op(Unary(UnaryKind.RELU), d.op(FullyConnected(), x, w)))
    after = fuse_activation(graph)
    assert ops(after) == [FullyConnected(activation=Activation.RELU)]
    same(graph, after, np.arange(6, dtype=np.float32).reshape(2, 3))


def chain(*steps: Callable[[Draft, int], int], dtype: DType = DType.FLOAT32) -> Subgraph:
    d = Draft()
    x = d.input(4, dtype=dtype)
    y = x
    for step in steps:
        y = step(d, y)
    return d.graph(y)


def unary(kind: UnaryKind) -> Callable[[Draft, int], int]:
    return lambda d, x: int(d.op(Unary(kind), x))


@pytest.mark.parametrize(
    ("before", "left"),
    [
        (chain(lambda d, x: d.op(Cast(DType.FLOAT32), x)), []),
        (chain(lambda d, x: d.op(ToyFlat(), x)), []),
        (chain(unary(UnaryKind.RELU6), unary(UnaryKind.RELU)), [RELU6]),
        (chain(unary(UnaryKind.RELU), unary(UnaryKind.RELU6)), [Unary(UnaryKind.RELU), RELU6]),
        (chain(unary(UnaryKind.RELU), unary(UnaryKind.RELU)), [Unary(UnaryKind.RELU)]),
    ],
)
def test_operations_that_change_nothing_are_removed(before: Subgraph, left: list[Any]) -> None:
    after = remove_identities(before)
    assert ops(after) == left
    same(before, after, np.array([-2, 0.5, 8, np.nan], np.float32))


def test_dequantising_and_quantising_again_is_removed() -> None:
    d = Draft()
    x = d.quantized_input(DType.INT8, Q, 256)
    y = d.op(Dequantize(), x, like=TensorType(DType.FLOAT32))
    z = d.op(Quantize(DType.INT8), y, like=TensorType(DType.INT8, (), Q))
    graph = d.graph(z)
    after = remove_identities(graph)
    assert after.outputs == after.inputs
    same(graph, after, np.arange(-128, 128).astype(np.int8))


def test_requantising_to_another_scale_is_not_removed() -> None:
    d = Draft()
    x = d.quantized_input(DType.INT8, Q, 4)
    y = d.op(Dequantize(), x, like=TensorType(DType.FLOAT32))
    graph = d.graph(d.op(Quantize(DType.INT8), y, like=TensorType(DType.INT8, (), OTHER)))
    assert remove_identities(graph) is graph


def test_a_reshape_with_another_quantisation_is_not_removed() -> None:
    d = Draft()
    x = d.quantized_input(DType.INT8, Q, 4)
    graph = d.graph(d.op(ToyFlat(), x, like=TensorType(DType.INT8, (), OTHER)))
    assert remove_identities(graph) is graph
