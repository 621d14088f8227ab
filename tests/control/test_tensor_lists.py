"""TensorFlow's lists of tensors, with which Keras's recurrent layers loop over sequences of an open batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from flexible import node
from model_writer import Model

import onert
from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.tensor_lists import ListFrom, ListGet, ListReserve, ListSet, ListStack
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

F32, I32 = DType.FLOAT32, DType.INT32
STEPS = 5
ROWS = np.random.default_rng(3).normal(size=(STEPS, 3, 4)).astype(np.float32)
_NUMBER, _LIST, _ROWS = TensorType(I32, ()), TensorType(DType.VARIANT, ()), TensorType(F32, (None, 4))


def _loop(at: str = "i", items: int = STEPS, shape: tuple[int, ...] = (-1, 4)) -> Subgraphs:
    """y = stack(list of states h = tanh(h + x[i])), where each round sets item `at`: `i`, or a constant."""
    b, condition, body = Builder(), Builder("condition"), Builder("body")
    x = b.input(TensorType(F32, (STEPS, 2, 4)), "x")
    types = (_NUMBER, _LIST, _LIST, _ROWS)
    dims, zero = b.constant(np.int32(shape)), b.constant(np.int32(0))
    read, made = b.add(ListFrom(), x, dims), b.add(ListReserve(), dims, b.constant(np.int32(items)))
    first = b.add(ListGet(F32), read, zero, dims)
    results = b.add_many(While(1, 2, types), zero, read, made, first)
    i = condition.input(_NUMBER)
    for type_ in types[1:]:
        condition.input(type_)
    less = condition.add(Comparison(ComparisonKind.LESS), i, condition.constant(np.int32(STEPS)))
    i, given, listed, h = (body.input(each) for each in types)
    add = Binary(BinaryKind.ADD)
    step = body.add(ListGet(F32), given, i, body.constant(np.int32(shape)))
    after = body.add(Unary(UnaryKind.TANH), body.add(add, h, step))
    place = i if at == "i" else body.constant(np.int32(int(at)))
    longer = body.add(ListSet(), listed, place, after)
    graph = b.subgraph([b.add(ListStack(F32), results[2], dims)])
    following = body.add(add, i, body.constant(np.int32(1)))
    return Subgraphs((graph, condition.subgraph([less]), body.subgraph([following, given, longer, after])))


def _states(x: np.ndarray) -> np.ndarray:
    h, found = x[0], []
    for row in x:
        h = np.tanh(h + row)
        found.append(h)
    return np.stack(found)


Expected = Callable[[np.ndarray], np.ndarray]
CASES: dict[str, tuple[Subgraphs, Expected]] = {
    "one item in each round": (_loop(), _states),
    "one item set again and again": (_loop("0", 1), lambda x: _states(x)[-1:]),
    "items that are never set are zeros": (
        _loop(items=STEPS + 2),
        lambda x: np.concatenate([_states(x), np.zeros((2, *x.shape[1:]), np.float32)]),
    ),
    "items of unknown shape": (_loop(shape=(-1, -1)), _states),
}


@pytest.mark.parametrize("optimize", [True, False], ids=["as tensors", "as lists"])
@pytest.mark.parametrize("name", CASES)
def test_a_loop_gets_and_sets_items_by_position(name: str, optimize: bool) -> None:
    model, expected = CASES[name]
    backends = {} if optimize else {"backends": ("reference",)}
    execution = onert.Execution(onert.compile(Package((model,), "made"), **backends))
    for batch in (2, 3, 1):
        x = ROWS[:, :batch] if batch < 3 else ROWS
        if batch != 2:
            execution.set_input_shape(0, x.shape)
        (y,) = execution.run([x]).values()
        np.testing.assert_allclose(y, expected(x), atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_a_loop_over_lists_is_enclosed(name: str) -> None:
    program = onert.compile(Package((CASES[name][0],), "made"))
    kinds = {type(operation.op) for operation in program.main.subgraph.operations}
    assert not kinds & {While, ListReserve, ListFrom, ListStack}


@pytest.mark.parametrize("backend", ["llvm", "reference"])
def test_setting_an_item_that_does_not_exist_is_an_error(backend: str) -> None:
    package = Package((_loop(items=STEPS - 2),), "made")
    with pytest.raises(onert.OnertError, match="position 3 is outside of a list of 3"):
        onert.Execution(onert.compile(package, backends=(backend, "reference"))).run([ROWS[:, :2]])


def _file(options: bytes) -> bytes:
    """A loop in a TFLite file that sets item i of a list to x + i."""
    model = Model()
    graph, condition, body = model.graph(), model.graph("condition"), model.graph("body")
    x = graph.input(F32, (2,))
    dims, zero = graph.constant(np.int32([2])), graph.constant(np.int32(0))
    count = graph.constant(np.int32(3))
    made, i, listed = (graph.tensor(dtype, ()) for dtype in (DType.VARIANT, I32, DType.VARIANT))
    same, y = graph.tensor(F32, (2,)), graph.tensor(F32, (3, 2))
    graph.operator("FlexTensorListReserve", [dims, count], [made], custom=node(element_dtype=1))
    options_of_loop = ("WhileOptions", {"condSubgraphIndex": 1, "bodySubgraphIndex": 2})
    graph.operator("WHILE", [zero, made, x], [i, listed, same], options_of_loop)
    graph.operator("FlexTensorListStack", [listed, dims], [y], custom=node(num_elements=3))
    graph.outputs(y)
    for each in (condition, body):
        i, listed, x = each.input(I32, ()), each.input(DType.VARIANT, ()), each.input(F32, (2,))
        if each is condition:
            less = each.tensor(DType.BOOL, ())
            each.operator("LESS", [i, each.constant(np.int32(3))], [less])
            each.outputs(less)
    number, item, following = body.tensor(F32, ()), body.tensor(F32, (2,)), body.tensor(I32, ())
    longer = body.tensor(DType.VARIANT, ())
    body.operator("CAST", [i], [number])
    body.operator("ADD", [x, number], [item])
    body.operator("FlexTensorListSetItem", [listed, i, item], [longer], custom=options)
    body.operator("ADD", [i, body.constant(np.int32(1))], [following])
    body.outputs(following, longer, x)
    return bytes(model.done())


def test_lists_are_read_from_tflite_files() -> None:
    package = onert.load(_file(node(resize_if_index_out_of_bounds=0)))
    (y,) = onert.Execution(onert.compile(package)).run([np.float32([1, 5])]).values()
    np.testing.assert_array_equal(y, [[1, 5], [2, 6], [3, 7]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (node(resize_if_index_out_of_bounds=1), "resize_if_index_out_of_bounds is set, expected a list of constant"),
        (node(resize_if_index_out_of_bounds="yes"), "'resize_if_index_out_of_bounds' is 'yes', expected true or false"),
        (b"\x07", "contain no NodeDef"),
        (node()[:-20] + b"\xff" * 20, "contain no NodeDef|wire type|field"),
    ],
)
def test_options_that_are_not_supported_or_malformed_are_refused(options: bytes, message: str) -> None:
    with pytest.raises(onert.ModelError, match=message):
        onert.load(_file(options))


def test_stacking_many_items_that_were_never_set_exceeds_the_memory_limit() -> None:
    b = Builder()
    count, shape = (b.input(TensorType(I32, (1,)), name) for name in ("count", "shape"))
    items = b.add(ListReserve(), shape, count)
    model = b.model([b.add(ListStack(F32), items, shape)])
    execution = onert.Execution(onert.compile(Package((model,), "made"), backends=("reference",)))
    assert next(iter(execution.run([np.int32([3]), np.int32([4])]).values())).shape == (3, 4)
    for number, size in ((100_000, 1_000_000), (1, 2**31 - 1), (2**31 - 1, 1)):
        with pytest.raises(onert.OnertError, match="max_memory"):
            execution.run([np.int32([number]), np.int32([size])])
