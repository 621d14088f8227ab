"""Passes for reshapes, transposes, margins and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onert.compiler import Options
from onert.compiler.passes.fold_shapes import fold_shapes
from onert.compiler.passes.fuse_padding import fuse_padding
from onert.compiler.passes.layout.merge_blocks import merge_blocks
from onert.compiler.passes.layout.merge_reshapes import merge_reshapes
from onert.compiler.passes.layout.merge_transposes import merge_transposes
from onert.compiler.passes.remove_dead import remove_dead
from onert.compiler.passes.remove_identities import remove_identities
from onert.compiler.passes.windows.grouped_conv_to_depthwise import grouped_conv_to_depthwise
from onert.compiler.pipeline import optimize
from onert.ir import Array, DType, Quantization, Subgraph, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import DepthToSpace, SpaceToDepth, Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Rank, Reshape, ShapeOf, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice, Tile
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Dequantize, Quantize
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling

from .toy import Draft, interpret


def ops(graph: Subgraph) -> list[Any]:
    return [operation.op for operation in graph.operations]


def integers(*values: object) -> Array:
    return np.array(values, np.int32)


def numbers(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)


def same(before: Subgraph, after: Subgraph) -> None:
    given = [
        numbers(tuple(d or 0 for d in before.type(i).shape)).astype(before.type(i).dtype.numpy) for i in before.inputs
    ]
    for got, wanted in zip(interpret(after, given), interpret(before, given), strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)


def test_a_known_shape_is_folded_and_determines_the_shape_of_a_reshape() -> None:
    d = Draft()
    x, z = d.input(2, 3), d.input(6)
    shape = d.op(ShapeOf(DType.INT64), x, like=TensorType(DType.INT64))
    graph = d.graph(d.op(Reshape(), z, shape), d.op(Rank(), x, like=TensorType(DType.INT32)))
    after = optimize(graph, Options())
    assert [type(op).__name__ for op in ops(after)] == ["Reshape", "Copy"]
    assert str(after.type(after.outputs[0])) == "f32[2, 3]"
    same(graph, after)


def test_shapes_after_many_reshapes_are_folded_in_one_optimisation() -> None:
    d = Draft()
    x = d.input(2, 3, 4)
    for _ in range(30):
        shape = d.op(ShapeOf(), x, like=TensorType(DType.INT32))
        first = d.op(Slice(), shape, d.constant(integers(0)), d.constant(integers(1)))
        rest = d.op(Slice(), shape, d.constant(integers(1)), d.constant(integers(2)))
        x = d.op(Reshape(), x, d.op(Concat(0), rest, first))
    graph = d.graph(x)
    after = optimize(graph, Options())
    assert not any(isinstance(op, ShapeOf | Slice | Concat) for op in ops(after))
    assert after.type(after.outputs[0]).shape == (2, 3, 4)
    same(graph, after)


@given(
    channels=st.integers(1, 4),
    each=st.integers(1, 3),
    size=st.tuples(st.integers(3, 6), st.integers(3, 6)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.integers(1, 2),
    padding=st.sampled_from(Padding),
)
def test_a_convolution_with_one_group_per_channel_becomes_depthwise(
    channels: int, each: int, size: tuple[int, int], kernel: tuple[int, int], stride: int, padding: Padding
) -> None:
    d = Draft()
    weight = d.constant(numbers((channels * each, *kernel, 1)))
    graph = d.graph(d.op(Conv2D(padding, stride, stride), d.input(2, *size, channels), weight))
    after = grouped_conv_to_depthwise(graph)
    assert isinstance(ops(after)[0], DepthwiseConv2D if channels > 1 else Conv2D)
    same(graph, after)


def test_a_quantised_grouped_convolution_keeps_its_per_channel_scales() -> None:
    d = Draft()
    scales = Quantization((0.1, 0.2, 0.3, 0.4), (0,) * 4, axis=0)
    weight = d.constant(numbers((4, 3, 3, 1)).astype(np.int8), scales)
    x = d.quantized_input(DType.INT8, Quantization((0.5,), (3,)), 1, 5, 5, 4)
    like = TensorType(DType.INT8, (1, 5, 5, 4), Quantization((0.7,), (-2,)))
    graph = d.graph(d.op(Conv2D(Padding.SAME), x, weight, like=like))
    after = grouped_conv_to_depthwise(graph)
    assert isinstance(ops(after)[0], DepthwiseConv2D)
    assert after.type(after.operations[0].used[1]).quantization == Quantization(scales.scales, (0,) * 4, axis=3)
    same(graph, after)


def test_an_unknown_shape_is_not_folded() -> None:
    d = Draft()
    graph = d.graph(d.op(ShapeOf(), d.input(None, 3), like=TensorType(DType.INT32)))
    assert fold_shapes(graph) is graph


def test_consecutive_reshapes_become_one() -> None:
    d = Draft()
    x = d.input(2, 3)
    flat = d.op(Reshape((6,)), x)
    row = d.op(ExpandDims(), flat, d.constant(integers(0)))
    graph = d.graph(d.op(Squeeze(), row), row)
    after = remove_dead(merge_reshapes(merge_reshapes(graph)))
    assert ops(after) == [Reshape((1, 6)), Reshape((6,))]
    same(graph, after)


@pytest.mark.parametrize("shape", [(1, 3), (3,)])
def test_arithmetic_after_a_reshaped_layer_is_fused_into_the_layer(shape: tuple[int, ...]) -> None:
    d = Draft()
    x = d.op(ExpandDims(), d.input(1, 6, 2), d.constant(integers(1)))
    y = d.op(Squeeze((1,)), d.op(Conv2D(), x, d.constant(numbers((3, 1, 3, 2)))))
    y = d.op(Binary(BinaryKind.ADD), d.constant(numbers(shape)), y)
    y = d.op(Unary(UnaryKind.RELU), d.op(Binary(BinaryKind.MUL), y, d.constant(numbers(()))))
    graph = d.graph(y)
    after = optimize(graph, Options())
    assert [type(op) for op in ops(after)] == [ExpandDims, Conv2D, Squeeze]
    assert ops(after)[1].activation is Activation.RELU
    same(graph, after)


@pytest.mark.parametrize(
    ("constant", "flat"), [((4, 1), False), ((1, 1, 4, 3), False), ((4, 3), False), ((12,), True), ((1,), True)]
)
def test_arithmetic_that_varies_along_other_axes_stays_after_the_reshape(constant: tuple[int, ...], flat: bool) -> None:
    d = Draft()
    y = d.op(Conv2D(), d.input(1, 1, 6, 2), d.constant(numbers((3, 1, 3, 2))))
    y = d.op(Reshape((12,)), y) if flat else d.op(Squeeze((1,)), y)
    graph = d.graph(d.op(Binary(BinaryKind.ADD), y, d.constant(numbers(constant))))
    assert (merge_reshapes(graph) is graph) is (constant != (1,))
    same(graph, merge_reshapes(graph))


def test_an_operation_does_not_move_before_a_reshape_that_has_other_uses() -> None:
    d = Draft()
    y = d.op(Conv2D(), d.input(1, 1, 6, 2), d.constant(numbers((3, 1, 3, 2))))
    flat = d.op(Squeeze((1,)), y)
    for graph in (d.graph(d.op(Unary(UnaryKind.RELU), flat), flat), d.graph(d.op(Unary(UnaryKind.RELU), flat), y)):
        assert merge_reshapes(graph) is graph


def test_a_reshape_and_its_inverse_are_removed() -> None:
    d = Draft()
    x = d.input(2, 3)
    graph = d.graph(d.op(Transpose(), d.op(Reshape((2, 3)), d.op(Reshape((6,)), x)), d.constant(integers(1, 0))))
    after = optimize(graph, Options())
    assert ops(after) == [Transpose()]
    same(graph, after)


ORDERS = st.permutations(range(4))
SHAPES = st.tuples(*(st.sampled_from([1, 2, 3]) for _ in range(4)))


@settings(max_examples=60, deadline=None)
@given(ORDERS, ORDERS, SHAPES, st.booleans())
def test_two_consecutive_transposes_become_a_single_operation(
    first: list[int], then: list[int], shape: tuple[int, ...], from_the_back: bool
) -> None:
    d = Draft()
    a = d.op(Transpose(), d.input(*shape), d.constant(integers(*first)))
    order = integers(*then) - 4 if from_the_back else integers(*then)
    graph = d.graph(d.op(Transpose(), a, d.constant(order)))
    after = optimize(graph, Options())
    assert len(after.operations) == 1
    same(graph, after)


def _blocks(op: Any, shape: tuple[int, ...], turned: int = 0, around: bool = True, channels: int = 0) -> Subgraph:
    """A space-to-depth or depth-to-space, after a gather that regroups the channels in groups of `turned`, if any."""
    d = Draft()
    y = d.input(*shape)
    y = d.op(Transpose(), y, d.constant(integers(0, 2, 3, 1))) if around else y
    if turned:
        order = np.arange(channels).reshape(-1, turned).T.reshape(-1).astype(np.int32)
        y = d.op(Gather(3), y, d.constant(order))
    y = d.op(op, y)
    return d.graph(d.op(Transpose(), y, d.constant(integers(0, 3, 1, 2))))


@pytest.mark.parametrize(
    ("graph", "merges"),
    [
        (_blocks(SpaceToDepth(2), (2, 3, 6, 16)), True),
        (_blocks(SpaceToDepth(3), (1, 2, 6, 24)), True),
        (_blocks(SpaceToDepth(2), (1, 3, 4, 8)), False),  # rows of four elements
        (_blocks(DepthToSpace(2), (2, 12, 3, 8)), True),
        (_blocks(DepthToSpace(3), (1, 18, 2, 9)), True),
        (_blocks(DepthToSpace(2), (1, 12, 3, 8), 4, channels=12), True),
        (_blocks(DepthToSpace(2), (1, 12, 3, 8), 6, channels=12), False),  # blocks would split the groups
        (_blocks(DepthToSpace(2), (1, 36, 3, 8), 4, channels=36), True),
        (_blocks(DepthToSpace(2), (1, 3, 8, 12), 4, around=False, channels=12), True),  # pairs stay together
        (_blocks(DepthToSpace(2), (1, 3, 8, 12), around=False), False),
        (_blocks(SpaceToDepth(2), (1, 4, 16, 3), around=False), False),
    ],
)
def test_blocks_between_transposes_become_one_transpose_if_rows_stay_together(graph: Subgraph, merges: bool) -> None:
    after = remove_dead(merge_blocks(graph))
    kinds = [type(op) for op in ops(after)]
    assert (kinds == [Reshape, Transpose, Reshape]) is merges
    same(graph, after)


def test_blocks_with_another_reader_are_not_merged() -> None:
    d = Draft()
    turned = d.op(Transpose(), d.input(1, 3, 4, 16), d.constant(integers(0, 2, 3, 1)))
    blocks = d.op(SpaceToDepth(2), turned)
    graph = d.graph(d.op(Transpose(), blocks, d.constant(integers(0, 3, 1, 2))), d.op(Unary(UnaryKind.ABS), blocks))
    assert merge_blocks(graph) is graph


def test_a_transpose_with_an_order_known_only_at_run_time_is_not_changed() -> None:
    d = Draft()
    graph = d.graph(d.op(Transpose(), d.input(1, 3), d.input(2, dtype=DType.INT32)))
    assert merge_transposes(graph) is graph
    assert remove_identities(graph) is graph


@pytest.mark.parametrize(
    ("op", "operands"),
    [
        (Transpose(), [integers(0, 1)]),
        (Slice(), [integers(0, 0), integers(2, -1)]),
        (Tile(), [integers(1, 1)]),
        (BroadcastTo(), [integers(2, 3)]),
        (Pad(), [integers([0, 0], [0, 0])]),
        (Concat(1), []),
        (Reshape(), [integers(2, 3)]),
    ],
)
def test_movements_that_change_nothing_are_removed(op: Any, operands: list[Array]) -> None:
    d = Draft()
    x = d.input(2, 3)
    graph = d.graph(d.op(op, x, *map(d.constant, operands)))
    after = remove_identities(graph)
    assert not after.operations
    same(graph, after)


def test_a_slice_with_an_unchecked_begin_is_not_removed() -> None:
    d = Draft()
    x, begin = d.input(2, 3), d.input(2, dtype=DType.INT32)
    graph = d.graph(d.op(Slice(), x, begin, d.constant(integers(2, 3))))
    assert remove_identities(graph) is graph


def test_a_concatenation_of_one_tensor_is_removed_unless_it_clamps() -> None:
    for activation, kinds in ((Activation.NONE, []), (Activation.RELU, [Concat])):
        d = Draft()
        graph = d.graph(d.op(Concat(0, activation), d.input(4)))
        after = remove_identities(graph)
        assert [type(op) for op in ops(after)] == kinds
        same(graph, after)


@pytest.mark.parametrize(("dtype", "stays"), [(DType.INT8, False), (DType.INT16, False), (DType.INT32, True)])
def test_dequantising_and_quantising_is_removed_only_for_types_exact_in_float(dtype: DType, stays: bool) -> None:
    d = Draft()
    q = Quantization((0.5,), (0,))
    x = d.quantized_input(dtype, q, 4)
    real = d.op(Dequantize(), x, like=TensorType(DType.FLOAT32))
    graph = d.graph(d.op(Quantize(dtype), real, like=TensorType(dtype, (), q)))
    assert (graph.outputs != remove_identities(graph).outputs) is not stays


def padded(op: Any, size: int, margins: tuple[int, int], kernel: int, value: float | None = None) -> Subgraph:
    d = Draft()
    x = d.input(1, size, size, 2)
    pad = d.constant(integers([0, 0], list(margins), list(margins), [0, 0]))
    filters = (3, kernel, kernel, 2) if isinstance(op, Conv2D) else (1, kernel, kernel, 2)
    values = [] if value is None else [d.constant(np.array(value, np.float32))]
    return d.graph(d.op(op, d.op(Pad(), x, pad, *values), d.constant(numbers(filters))))


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 12), st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(1, 5), st.integers(1, 3),
    st.integers(1, 2), st.booleans(),
)  # fmt: skip
def test_fusing_a_pad_into_a_convolution_does_not_change_results(
    size: int, margins: tuple[int, int], kernel: int, stride: int, dilation: int, depthwise: bool
) -> None:
    if (kernel - 1) * dilation + 1 > size + sum(margins):
        return
    kind = DepthwiseConv2D if depthwise else Conv2D
    op = kind(stride_height=stride, stride_width=stride, dilation_height=dilation, dilation_width=dilation)
    graph = padded(op, size, margins, kernel)
    same(graph, remove_dead(fuse_padding(graph)))


@pytest.mark.parametrize(
    ("size", "margins", "kernel", "stride"), [(8, (0, 1), 3, 2), (7, (1, 1), 3, 1), (7, (1, 1), 3, 2)]
)
def test_margins_equal_to_same_padding_become_same_padding(
    size: int, margins: tuple[int, int], kernel: int, stride: int
) -> None:
    op = Conv2D(stride_height=stride, stride_width=stride)
    after = remove_dead(fuse_padding(padded(op, size, margins, kernel, 0.0)))
    assert ops(after) == [Conv2D(Padding.SAME, stride, stride)]


@pytest.mark.parametrize("graph", [padded(Conv2D(), 7, (1, 1), 3, 1.0), padded(Conv2D(Padding.SAME), 7, (1, 1), 3)])
def test_pads_with_another_value_or_before_same_padding_are_not_fused(graph: Subgraph) -> None:
    assert fuse_padding(graph) is graph


def test_a_pad_is_added_to_the_existing_margins_of_a_convolution() -> None:
    graph = padded(Conv2D(Margins(((1, 0), (0, 3))), 2, 2), 8, (1, 2), 3)
    after = remove_dead(fuse_padding(graph))
    assert ops(after) == [Conv2D(Margins(((2, 2), (1, 5))), 2, 2)]
    same(graph, after)


def in_space() -> Subgraph:
    d = Draft()
    around = d.constant(integers([0, 0], [1, 0], [0, 2], [1, 1], [0, 0]))
    x = d.op(Pad(), d.input(1, 3, 4, 5, 2), around)
    return d.graph(d.op(Conv3D(), x, d.constant(numbers((2, 2, 2, 2, 3)))))


def test_a_pad_is_fused_into_a_three_dimensional_convolution() -> None:
    graph = in_space()
    after = remove_dead(fuse_padding(graph))
    assert ops(after) == [Conv3D(Margins(((1, 0), (0, 2), (1, 1))))]
    same(graph, after)


LEAST = float("-inf")


def pooled(op: Pool2D, margins: tuple[int, int], value: float, relu: bool = False) -> Subgraph:
    d = Draft()
    x = d.input(1, 5, 6, 2)
    x = d.op(Unary(UnaryKind.RELU), x) if relu else x
    around = d.constant(integers([0, 0], list(margins), [0, 0], [0, 0]))
    return d.graph(d.op(op, d.op(Pad(), x, around, d.constant(np.array(value, np.float32)))))


@pytest.mark.parametrize(
    ("kind", "margins", "value", "relu", "fused"),
    [
        (Pooling.MAX, (1, 2), LEAST, False, True),
        (Pooling.MAX, (1, 3), LEAST, False, False),  # a window would lie entirely in the margin
        (Pooling.MAX, (1, 1), 0.0, False, False),
        (Pooling.MAX, (1, 1), 0.0, True, True),
        (Pooling.MAX, (1, 1), 1.0, True, False),
        (Pooling.AVERAGE, (1, 1), 0.0, False, True),
        (Pooling.AVERAGE, (1, 1), 2.0, False, False),
        (Pooling.L2, (0, 2), 0.0, False, True),
    ],
)
def test_a_pad_is_fused_into_a_pool_only_if_results_do_not_change(
    kind: Pooling, margins: tuple[int, int], value: float, relu: bool, fused: bool
) -> None:
    graph = pooled(Pool2D(kind, 3, 2, Padding.VALID, 2, 1), margins, value, relu)
    after = remove_dead(fuse_padding(graph))
    counts = kind is not Pooling.MAX
    expected = Pool2D(kind, 3, 2, Margins((margins, (0, 0))), 2, 1, counts_margins=counts)
    assert (ops(after)[-1] == expected) is fused
    assert any(isinstance(op, Pad) for op in ops(after)) is not fused
    same(graph, after)


def test_a_pad_is_not_fused_into_an_average_that_excludes_margins() -> None:
    graph = pooled(Pool2D(Pooling.AVERAGE, 3, 2, Margins(((1, 1), (0, 0)))), (1, 0), 0.0)
    assert fuse_padding(graph) is graph
