"""Limits of a run: they follow from constants and inputs, never from sizes that are only computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hostile.writer import Model, tensor

import onert
from onert.backend.evaluation.evaluating import WORK_OF_A_ROUND, work_of_evaluating
from onert.compiler.limits import MEMORY, WORK, Limits, limits, memory_of, native_work
from onert.compiler.options import Options
from onert.compiler.passes.fold_constants import fold_constants
from onert.ir import CallTypes, Constant, DType, Op, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.layout import ReverseSequence
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.vision_audio.audio import AudioSpectrogram
from onert.ir.ops.vision_audio.detection import NonMaxSuppression
from onert_llvm.backend import Llvm
from onert_reference.backend import Reference


def typed(*shape: int, dtype: DType = DType.FLOAT32, value: object = None) -> TensorType:
    return TensorType(dtype, shape, data=None if value is None else Constant(np.array(value, dtype.numpy)))


def adding(given: tuple[int | None, ...], constant: tuple[int, ...]) -> Subgraph:
    """An input added to itself, and an unused constant."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, given))
    b.constant(np.ones(constant, np.float32))
    return b.subgraph([b.add(Binary(BinaryKind.ADD), x, x)])


def allowed(graph: Subgraph, options: Options | None = None, declared: Subgraph | None = None) -> Limits:
    return limits(Subgraphs((graph,)), graph, declared or graph, options or Options())


def test_a_megabyte_of_constants_raises_the_limits_only_slightly_above_the_floor() -> None:
    found = allowed(adding((10,), (1 << 18,)))
    assert MEMORY < found.memory < 1.2 * MEMORY
    assert WORK < found.work < 1.5 * WORK


def test_input_sizes_that_a_file_declares_do_not_raise_the_limits() -> None:
    assert allowed(adding((1, 10_000, 10_000, 3), (10,))) == allowed(adding((1, 10, 10, 3), (10,)))


def test_a_large_image_may_pass_through_a_network_without_downsampling() -> None:
    """Five full-resolution layers with 32 features fit below the floor."""
    pixels, features = 1280 * 720, 32
    filters, narrow, wide = (typed(features, 3, 3, features), typed(1, 720, 1280, 3), typed(1, 720, 1280, features))
    first = CallTypes((narrow, typed(features, 3, 3, 3), typed(features)), (wide,))
    rest = CallTypes((wide, filters, typed(features)), (wide,))
    work = native_work(Conv2D(), first) + 4 * native_work(Conv2D(), rest)
    found = allowed(adding((10,), (4 * features * features * 9,)))
    assert found.work > work
    assert found.memory > 5 * 4 * features * pixels


def test_input_shapes_chosen_by_the_caller_raise_the_limits() -> None:
    pixels, weights, features = 1920 * 1080, 1_000_000, 64
    declared = adding((1, 1, 1, 3), (weights,))
    found = allowed(adding((1, 1080, 1920, 3), (weights,)), declared=declared)
    assert found.work > 2 * pixels * weights / 4
    assert found.memory > 3 * 4 * features * pixels
    assert allowed(declared, declared=adding((1, 1080, 1920, 3), (weights,))) == allowed(declared)


def test_unknown_dimensions_count_as_one() -> None:
    given = adding((1, 1, 3), (10,))
    assert allowed(given, declared=adding((None, None, 3), (10,))) == allowed(given)


def test_limits_set_by_the_user_are_used() -> None:
    assert allowed(adding((10,), (10,)), Options(max_memory=5, max_work=7)) == Limits(5, 7)


@pytest.mark.parametrize(
    ("dtype", "wide"), [(DType.INT8, 4), (DType.INT16, 4), (DType.FLOAT32, 4), (DType.INT64, 8)], ids=str
)
def test_evaluation_counts_memory_for_the_wider_types_that_numpy_computes_with(dtype: DType, wide: int) -> None:
    b = Builder()
    graph = b.subgraph([b.add(Unary(UnaryKind.ABS), b.input(typed(1000, dtype=dtype)))])
    ends, evaluated = 2 * 2 * 1000 * dtype.itemsize, 2 * 2 * 1000 * wide
    assert memory_of(graph, [Reference()], ()) == ends + evaluated
    assert memory_of(graph, [Llvm()], ()) == ends


def sharing(tensors: int) -> Subgraphs:
    """Constants of many shapes that share the same bytes of the file."""
    model = Model()
    buffer = model.buffer(bytes(4096))
    constants = [tensor((1024, *((1,) * rank)), buffer=buffer) for rank in range(tensors)]
    model.graph([tensor(), tensor(), *constants], [model.operator("RELU", (0,), (1,))], (0,), (1,))
    return onert.load(model.done()).model


def test_bytes_shared_by_several_constants_count_once() -> None:
    once, shared = (limits(model, model.primary, model.primary, Options()) for model in (sharing(1), sharing(5)))
    assert once.memory == shared.memory > MEMORY
    assert shared.work == pytest.approx(once.work, rel=1e-6)


def sparse(stored: int, elements: int) -> Constant:
    return Constant(lambda: np.zeros(elements, np.float32), bytes(stored))


def test_elements_of_a_sparse_constant_that_are_not_stored_do_not_count() -> None:
    found = []
    for elements in (1000, 1_000_000):
        b = Builder()
        x = b.input(typed(1_000_000))
        graph = b.subgraph([b.add(Binary(BinaryKind.ADD), x, x)])
        operand = graph.operands[0]
        described = type(operand)(typed(elements), "described", sparse(500, elements), False, None)
        found.append(allowed(Subgraph((*graph.operands, described), graph.operations, graph.inputs, graph.outputs)))
    assert found[0] == found[1]


def test_the_address_range_of_an_array_and_of_undecoded_bytes_is_known() -> None:
    array = np.zeros(10, np.float32)
    start, stop = Constant(array).place or (0, 0)
    assert stop - start == array.nbytes
    start, stop = sparse(7, 1000).place or (0, 0)
    assert stop - start == 7
    assert Constant(lambda: array).place is None


ROUNDS = [
    ("elementwise", Binary(BinaryKind.ADD), (typed(1000), typed(1000)), 0),
    ("window", Conv2D(), (typed(1, 99, 99, 1), typed(1, 9, 9, 1), typed(1)), 81),
    ("window of each picture", Conv2D(), (typed(5, 99, 99, 1), typed(1, 9, 9, 1), typed(1)), 405),
    ("window of each channel", DepthwiseConv2D(), (typed(1, 99, 99, 4), typed(1, 9, 9, 4), typed(4)), 81),
    ("frames", AudioSpectrogram(window_size=16), (typed(1015, 3),), 3000),
    ("batches", Gather(1, 1), (typed(50, 4), typed(50, 2, dtype=DType.INT32)), 50),
    ("rows", ReverseSequence(1, 0), (typed(50, 4), typed(50, dtype=DType.INT32)), 50),
    (
        "boxes",
        NonMaxSuppression(),
        (typed(50, 4), typed(50), typed(dtype=DType.INT32, value=20), typed(), typed()),
        20,
    ),
]


@pytest.mark.parametrize(("op", "inputs", "rounds"), [row[1:] for row in ROUNDS], ids=[row[0] for row in ROUNDS])
def test_rounds_of_python_loops_count_as_work_when_an_operation_is_evaluated(
    op: Op, inputs: tuple[TensorType, ...], rounds: int
) -> None:
    results = op.infer(*inputs)
    types = CallTypes(inputs, results if isinstance(results, tuple) else (results,))
    assert op.rounds(types) == rounds
    assert work_of_evaluating(op, types) >= rounds * WORK_OF_A_ROUND


def test_products_summed_into_a_scalar_count_as_work() -> None:
    types = CallTypes((typed(1000), typed(1000)), (typed(),))
    assert Einsum("a,b->").flops(types) == 2_000_000


def test_evaluating_int8_costs_as_much_as_the_wider_type_it_is_computed_in() -> None:
    add = Binary(BinaryKind.ADD)
    one, four = (typed(10_000, dtype=d) for d in (DType.INT8, DType.FLOAT32))
    assert work_of_evaluating(add, CallTypes((one, one), (one,))) == work_of_evaluating(
        add, CallTypes((four, four), (four,))
    )


def test_a_result_of_one_channel_costs_about_as_much_as_a_full_vector() -> None:
    def work(outputs: int) -> int:
        inputs = typed(1000, 1000), typed(outputs, 1000)
        return native_work(FullyConnected(), CallTypes(inputs, (typed(1000, outputs),)))

    assert work(32) < work(1) < 2 * work(32)


def test_products_that_fill_vector_registers_cost_less_than_narrow_ones() -> None:
    def work(*inputs: TensorType, result: TensorType) -> int:
        return native_work(FullyConnected(), CallTypes(inputs, (result,)))

    wide = work(typed(1000, 1000), typed(1600, 1000), result=typed(1000, 1600))
    narrow = work(typed(1000, 1000), typed(10, 1000), result=typed(1000, 10))
    assert wide < 2 * 1000 * 1000 * 1600
    assert narrow > 2 * 1000 * 1000 * 10


def folded(side: int) -> Subgraph:
    b = Builder()
    picture, window = (
        b.constant(np.ones((1, side, side, 1), np.float32)),
        b.constant(np.ones((1, 64, 64, 1), np.float32)),
    )
    convolved = b.add(Conv2D(), picture, window, b.constant(np.ones(1, np.float32)))
    return fold_constants(b.subgraph([convolved]))


@pytest.mark.parametrize(("side", "operations"), [(70, 0), (300, 1)])
def test_an_expensive_operation_is_not_folded(side: int, operations: int) -> None:
    assert len(folded(side).operations) == operations


def repeated(make: Callable[[Builder, int], int], times: int) -> Subgraph:
    b = Builder()
    last = b.constant(np.ones((1, 400, 400, 1), np.float32))
    for _ in range(times):
        last = make(b, last)
    return fold_constants(b.subgraph([last]))


def test_folding_has_one_work_budget_for_all_operations() -> None:
    def blurred(b: Builder, x: int) -> int:
        return b.add(Conv2D(), x, b.constant(np.ones((1, 16, 16, 1), np.float32)), b.constant(np.ones(1, np.float32)))

    one, many = repeated(blurred, 1), repeated(blurred, 12)
    assert not one.operations
    assert 0 < len(many.operations) < 12


LONG = {
    "declared": ((1 << 31) - 1, "{ h = Hardmax (x) y = ReduceSum <keepdims = 0> (h) }"),
    "computed": (
        1,
        "<int64[1] s = {2147483647}> { e = Expand (x, s) h = Hardmax (e) y = ReduceSum <keepdims = 0> (h) }",
    ),
    "indices": (
        1,
        """<int64[2] s = {60000, 60000}> { e = Expand (x, s) i = Cast <to = 7> (e)
        h = ScatterElements <axis = 1> (e, i, e) y = ReduceSum <keepdims = 0> (h) }""",
    ),
    "offsets": (
        1,
        """<int64[4] s = {1, 1, 60000, 60000}, int64[4] t = {1, 2, 60000, 60000}, float[1, 1, 1, 1] w = {1}>
        { e = Expand (x, s) o = Expand (x, t) h = DeformConv (e, w, o) y = ReduceSum <keepdims = 0> (h) }""",
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_no_table_is_allocated_for_a_tensor_that_exceeds_the_memory_limit(name: str) -> None:
    parser = pytest.importorskip("onnx.parser", reason="the package onnx reads the texts")
    length, body = LONG[name]
    text = f'<ir_version: 9, opset_import: ["" : 19]> g (float[{length}] x) => (float y) {body}'
    with pytest.raises(onert.CompileError, match="max_memory"):
        onert.compile(onert.load(parser.parse_model(text).SerializeToString()))
