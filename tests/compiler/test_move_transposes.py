"""Operations run with permuted axes as the table describes, and transposes end up where they cost least."""

from __future__ import annotations

from itertools import islice, permutations
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from cases import all_cases
from cases.case import Case
from llvm.natively import assert_close, evaluated

from onert.compiler import Options
from onert.compiler.passes.layout.move_transposes import move_transposes
from onert.compiler.pipeline import optimize
from onert.compiler.rewrite.layout_search import improve
from onert.compiler.rewrite.layout_table import TABLE, rearranged
from onert.compiler.rewrite.layouts import Movable, identity, layouts_of, size
from onert.ir import Array, CallTypes, DType, Op, Quantization, Subgraph, TensorType, evaluate
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, SplitV
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import BroadcastTo, MirrorPad, Pad, StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind
from onert.ir.ops.reduction.norm import L2Normalization
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation

FRONT, BACK = (0, 3, 1, 2), (0, 2, 3, 1)


def _random(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


_Q = Quantization((0.05,), (3,))
MORE = [
    Case("two axes", Reduce(Reduction.MAX), (_random(2, 3, 4, 5), np.int32([1, -1]))),
    Case("kept", Reduce(Reduction.SUM, keep_dims=True), (_random(2, 3, 4), np.int32([1]))),
    Case("merged and split", Reshape((6, 2, 2, 5)), (_random(2, 3, 4, 5),)),
    Case("ones", Reshape((2, 1, 12, 1)), (_random(1, 2, 3, 4),)),
    Case("one index", Gather(1), (_random(2, 3, 4), np.array(2, np.int32))),
    Case(
        "few bounds",
        StridedSlice(begin_mask=2, shrink_axis_mask=1),
        (_random(2, 3, 4), np.int32([1, 9]), np.int32([2, 2]), np.int32([1, 1])),
    ),
    Case(
        "two axes, one rule each",
        Interpolate(Interpolation.LINEAR, (1, 3), Coordinates.ASYMMETRIC, scales=(2.0, 1.5)),
        (_random(1, 3, 2, 4),),
    ),
    Case("sizes", Interpolate(Interpolation.CUBIC, (2, 3)), (_random(1, 2, 3, 4), np.int64([5, 7]))),
    Case("every pixel", Conv2D(), (_random(2, 3, 4, 5), _random(6, 1, 1, 5))),
    Case("rows", FullyConnected(keep_dims=True), (_random(2, 3, 4), _random(5, 4))),
    Case("broadcast", Binary(BinaryKind.ADD), (_random(2, 3, 4), _random(3, 1))),
    Case("repeated", BroadcastTo(), (_random(2, 1, 3), np.int32([2, 4, 3]))),
    Case("elements", Unary(UnaryKind.TANH), (_random(2, 3, 4),)),
    Case("elements", LeakyRelu(0.25), (_random(2, 3, 4),)),
    Case("elements", Cast(DType.INT32), (_random(2, 3, 4) * 9,)),
    Case("elements", Comparison(ComparisonKind.LESS), (_random(2, 3, 4), _random(3, 1))),
    Case("elements", Quantize(DType.INT8), (_random(2, 3, 4),), result_quantization=(_Q,)),
    Case("elements", Dequantize(), (np.arange(24, dtype=np.int8).reshape(2, 3, 4),), quantization=(_Q,)),
    Case("parts", SplitV(2), (_random(2, 5, 4), np.int32([2, 3]), np.array(-2, np.int32))),
    Case("mirrored", MirrorPad(), (_random(2, 3, 4), np.int32([[0, 1], [1, 2], [3, 0]]))),
    Case("lengths", L2Normalization(), (_random(2, 3, 4),)),
]


def _movable(case: Case) -> Movable | None:
    """The operation as a movable one of a graph of its own; None if the table does not let it move."""
    b = Builder()
    given = zip(case.inputs, case.input_types(known=True), strict=True)
    operands = [None if a is None or t is None else b.constant(a, t.quantization, dtype=t.dtype) for a, t in given]
    results = b.add_many(case.op, *operands, quantization=case.result_quantization)
    return layouts_of(b.subgraph(results), {}).movable.get(0)


def _by_table(case: Case, each: Movable, layout: tuple[int, ...]) -> tuple[list[Array], list[Array]]:
    """The results of the operation with permuted axes, and its own results transposed to that order."""
    orders = each.orders(layout)
    op, constants = rearranged(case.op, each.types, each.row, orders)
    arrays: list[Array | None] = []
    for i, array in enumerate(case.inputs):
        if isinstance(op, Reshape) and i:
            continue
        if array is None:
            pass
        elif i in constants:
            array = constants[i]
        elif i in each.moved:
            array = array.transpose(orders.operand)
        elif i in each.narrow:
            array = array.reshape((1,) * (len(layout) - array.ndim) + array.shape).transpose(orders.operand)
        arrays.append(array)
    types = tuple(
        None if t is None or a is None else evolve(t, shape=a.shape, data=None)
        for t, a in zip(each.types.inputs, arrays, strict=False)
    )
    results = tuple(evolve(t, shape=tuple(t.shape[a] for a in orders.result)) for t in each.types.outputs)
    created = evaluate(op, arrays, CallTypes(types, results))
    own = evaluate(case.op, case.inputs, each.types)
    return list(created), [a.transpose(orders.result) for a in own]


CASES = [case for case in all_cases() if type(case.op) in TABLE] + MORE


@pytest.mark.parametrize("kind", TABLE, ids=lambda kind: kind.__name__)
def test_the_table_is_correct_for_every_layout_of_every_case(kind: type[Op]) -> None:
    tried = 0
    for case in (c for c in CASES if type(c.op) is kind):
        each = _movable(case)
        if each is None:
            continue
        for layout in islice(permutations(each.original), 24):
            if each.allows(layout):
                created, expected = _by_table(case, each, layout)
                assert_close(created, expected)
                tried += layout != each.original
    assert tried, f"no case of {kind.__name__} can be moved"


@pytest.mark.parametrize("case", MORE, ids=lambda case: f"{case.op.label} {case.name}")
def test_a_layout_is_recovered_from_the_axes_of_either_side(case: Case) -> None:
    each = _movable(case)
    assert each is not None
    for layout in filter(each.allows, permutations(each.original)):
        orders = each.orders(layout)
        for side, axes in ((0, orders.operand), (1, orders.result)):
            found = each.layout_of(axes, side)
            assert found is not None
            orders_again = each.orders(found)
            assert (orders_again.operand, orders_again.result)[side] == axes


def test_axes_merged_by_a_reshape_must_stay_adjacent_and_in_order() -> None:
    each = _movable(Case("", Reshape((24, 5)), (_random(2, 3, 4, 5),)))
    assert each is not None
    assert each.layout_of((3, 0, 1, 2), 0) == (1, 0)
    for apart in ((0, 2, 1, 3), (1, 0, 2, 3), (0, 1, 3, 2)):
        assert each.layout_of(apart, 0) is None


# ---- graphs


def transposed(b: Builder, x: int, order: tuple[int, ...]) -> int:
    return b.add(Transpose(), x, b.constant(np.int32(order)))


def convolved(b: Builder, x: int, channels: int, size: int = 3) -> int:
    """A convolution as frontends write one for a channels-first model."""
    inner = b.type(x).shape[1]
    weight = b.constant(_random(channels, size, size, inner or 1))
    return transposed(b, b.add(Conv2D(Padding.SAME), transposed(b, x, BACK), weight), FRONT)


def image(b: Builder) -> int:
    return b.input(TensorType(DType.FLOAT32, (1, 4, 6, 8)))


def moved(graph: Subgraph) -> list[tuple[int | None, ...]]:
    """The shapes of the operands of transposes."""
    found = [o for o in graph.operations if isinstance(o.op, Transpose)]
    return [graph.type(o.used[0]).shape for o in found]


def transposes(graph: Subgraph, ends: int = 2) -> Subgraph:
    """The graph after all passes: an equivalent one with transposes only at its ends, of which there are `ends`."""
    after = optimize(graph, Options())
    arrays = [_random(*(d or 1 for d in graph.type(i).shape)) for i in graph.inputs]
    assert_close(evaluated(after, arrays), evaluated(graph, arrays))
    assert len(moved(after)) == ends
    return after


def test_operations_between_convolutions_run_channels_last() -> None:
    b = Builder()
    x = convolved(b, image(b), 8)
    x = b.add(Unary(UnaryKind.LOGISTIC), x)
    x = b.add(Binary(BinaryKind.MUL), x, b.constant(_random(8, 1, 1)))
    x = b.add(Pad(), x, b.constant(np.int32([[0, 0], [0, 0], [1, 2], [0, 3]])))
    transposes(b.subgraph([convolved(b, x, 5)]))


def test_residuals_diamonds_and_concatenated_branches_need_no_transpose() -> None:
    b = Builder()
    first = convolved(b, image(b), 8)
    left, right = convolved(b, first, 8), b.add(Unary(UnaryKind.RELU), convolved(b, first, 8, 1))
    both = b.add(Binary(BinaryKind.ADD), left, b.add(Binary(BinaryKind.MUL), right, first))
    joined = b.add(Concat(1), both, first, right)
    parts = b.add_many(SplitV(3), joined, b.constant(np.int32([8, 10, 6])), b.constant(np.int32(1)))
    ends = [convolved(b, part, 3) for part in parts]
    after = transposes(b.subgraph(ends), ends=4)
    assert not any(shape == (1, 8, 6, 8) for shape in moved(after))


@pytest.mark.parametrize("kind", [UnaryKind.RELU, UnaryKind.LOGISTIC])
def test_an_activation_before_an_output_stays_next_to_its_layer(kind: UnaryKind) -> None:
    """No bytes are saved, but the two can be fused."""
    b = Builder()
    x = convolved(b, image(b), 8)
    y = b.add(Binary(BinaryKind.MUL), x, b.add(Unary(kind), x)) if kind is UnaryKind.LOGISTIC else b.add(Unary(kind), x)
    after = transposes(b.subgraph([y]))
    assert isinstance(after.operations[-1].op, Transpose)
    assert not any(isinstance(o.op, Unary) for o in after.operations) or kind is UnaryKind.LOGISTIC


def test_a_squeeze_and_excite_gate_needs_no_transpose() -> None:
    b = Builder()
    x = convolved(b, image(b), 8)
    mean = b.add(Reduce(Reduction.MEAN, keep_dims=True), x, b.constant(np.int32([2, 3])))
    gate = b.add(Unary(UnaryKind.LOGISTIC), convolved(b, mean, 8, 1))
    transposes(b.subgraph([convolved(b, b.add(Binary(BinaryKind.MUL), x, gate), 4)]))


def test_a_final_mean_over_the_image_absorbs_the_transpose() -> None:
    b = Builder()
    x = convolved(b, image(b), 8)
    mean = b.add(Reduce(Reduction.MEAN), x, b.constant(np.int32([2, 3])))
    transposes(b.subgraph([mean]), ends=1)


def test_a_transpose_moves_through_a_reshape_that_merges_whole_axes() -> None:
    b = Builder()
    x = transposed(b, b.input(TensorType(DType.FLOAT32, (2, 3, 4, 5))), FRONT)
    rows = transposed(b, b.add(Reshape((2, 5, 12)), x), (0, 2, 1))
    transposes(b.subgraph([b.add(FullyConnected(keep_dims=True), rows, b.constant(_random(7, 5)))]), ends=0)


@pytest.mark.parametrize(
    ("order", "shape"),
    [(FRONT, (2, 20, 3)), (FRONT, (2, 5, 4, 3)), (FRONT, (2, 60)), ((0, 1, 3, 2), (2, 15, 4)), ((0, 1, 3, 2), (60, 2))],
)
def test_a_transpose_stops_at_a_reshape_that_splits_axes(order: tuple[int, ...], shape: tuple[int, ...]) -> None:
    b = Builder()
    x = transposed(b, b.input(TensorType(DType.FLOAT32, (2, 3, 4, 5))), order)
    y = b.add(Reshape(shape), x)
    last = tuple(range(len(shape)))[::-1]
    graph = b.subgraph([b.add(Unary(UnaryKind.RELU), y), transposed(b, y, last)])
    after = move_transposes.checked(graph)
    assert_close(evaluated(after, [_random(2, 3, 4, 5)]), evaluated(graph, [_random(2, 3, 4, 5)]))


def test_an_output_in_the_middle_of_a_graph_keeps_its_layout() -> None:
    b = Builder()
    x = b.add(Unary(UnaryKind.RELU), convolved(b, image(b), 8))
    graph = b.subgraph([x, convolved(b, x, 4)])
    after = transposes(graph, ends=3)
    assert [after.type(o).shape for o in after.outputs] == [(1, 8, 6, 8), (1, 4, 6, 8)]


def test_transposes_do_not_move_if_nothing_is_saved() -> None:
    b = Builder()
    x = b.add(Unary(UnaryKind.RELU), transposed(b, image(b), BACK))
    graph = b.subgraph([b.add(Unary(UnaryKind.EXP), x)])
    assert move_transposes(graph) is graph


def _random_graph(seed: int) -> Subgraph:
    """Random elementwise operations, sums, concatenations, reductions, transposes and reshapes of rank 4."""
    rng = np.random.default_rng(seed)
    b = Builder()
    pool = [b.input(TensorType(DType.FLOAT32, (2, 3, 4, 5)))]
    for _ in range(25):
        x = pool[rng.integers(len(pool))]
        shape = tuple(d or 1 for d in b.type(x).shape)
        created: int | None = None
        match rng.integers(8):
            case 0 | 1 | 2:
                created = transposed(b, x, tuple(int(a) for a in rng.permutation(4)))
            case 3:
                created = b.add(Unary(UnaryKind.RELU), x)
            case 4:
                other = next((y for y in reversed(pool) if b.type(y).shape == shape), x)
                created = b.add(Binary(BinaryKind.ADD), x, other)
            case 5:
                created = b.add(Concat(int(rng.integers(4))), x, x) if max(shape) < 20 else None
            case 6:
                axes = np.int32([rng.integers(4)])
                created = b.add(Reduce(Reduction.MAX, keep_dims=True), x, b.constant(axes))
            case _:
                flat = b.add(Reshape((shape[0] * shape[1], *shape[2:])), x)
                created = b.add(Reshape(shape), b.add(Unary(UnaryKind.NEG), flat))
        if created is not None:
            pool.append(created)
    return b.subgraph(sorted({pool[-1], *(pool[i] for i in rng.integers(1, len(pool), 2))}))


def _bytes_moved(graph: Subgraph) -> int:
    def costs(operation: Any) -> bool:
        types = graph.types(operation)
        order = types.inputs[1].value
        order_of_large = [a for a in order if types.input(0).shape[a] != 1]
        return isinstance(operation.op, Transpose) and order_of_large != sorted(order_of_large)

    found = {o for o in graph.operations if isinstance(o.op, Transpose) and costs(o)}
    return sum(size(graph.type(o.used[0])) for o in found)


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_stay_equivalent_and_never_move_more_bytes(seed: int) -> None:
    graph = _random_graph(seed)
    after = move_transposes.checked(graph)
    arrays = [_random(2, 3, 4, 5)]
    assert_close(evaluated(after, arrays), evaluated(graph, arrays), 0)
    assert _bytes_moved(after) <= _bytes_moved(graph)
    assert move_transposes(after) is after or _bytes_moved(move_transposes(after)) <= _bytes_moved(after)


def test_the_search_stops_at_its_limit_of_steps() -> None:
    graph = _random_graph(3)
    orders = {
        at: tuple(int(a) for a in graph.types(o).inputs[1].value)  # type: ignore[union-attr]
        for at, o in enumerate(graph.operations)
        if isinstance(o.op, Transpose)
    }
    assert not improve(layouts_of(graph, orders), steps=0)
    assert identity(3) == (0, 1, 2)
