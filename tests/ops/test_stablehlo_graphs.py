"""StableHLO's operators that run subgraphs of the model: bodies, branches and comparators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from model_writer import LiteRt, Model
from stablehlo_models import agree_with_litert, one, random, run

from onert.ir import DType

FUNCTIONS = ["STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"]


SCATTER = {
    "updateWindowDims": [2, 3],
    "insertedWindowDims": [0],
    "scatterDimsToOperandDims": [1, 0],
    "indexVectorDim": 2,
}


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64, np.int8])
@pytest.mark.parametrize("function", [*FUNCTIONS, ""])
def test_scatter_equals_litert(kind: Any, function: str) -> None:
    x = random(3, 4, 2, kind=kind)
    indices = np.array([[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]]], np.int64)
    updates = random(2, 3, 2, 2, seed=1, kind=kind)
    dtype = DType.from_numpy(kind)
    options = ("StablehloScatterOptions", {**SCATTER, "updateComputationSubgraphIndex": 1})
    agree_with_litert("STABLEHLO_SCATTER", [x, indices, updates], [(dtype, x.shape)], options, (function, dtype))


def test_scatter_may_use_any_function() -> None:
    x, indices, updates = np.float32([1, 2, 3]), np.int32([[0], [2], [0], [7]]), np.float32([4, 5, 6, 9])
    options = {"insertedWindowDims": [0], "scatterDimsToOperandDims": [0], "indexVectorDim": 1}
    options["updateComputationSubgraphIndex"] = 1
    model = ("StablehloScatterOptions", options)
    found = one("STABLEHLO_SCATTER", [x, indices, updates], (DType.FLOAT32, (3,)), model, ("SUB", DType.FLOAT32))
    np.testing.assert_array_equal(found, [-9, 2, -2])


WINDOWS = [
    ((2, 2), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), (3, 4)),
    ((2, 1), (2, 2), (1, 1), (2, 1), (1, 0, 0, 2), (2, 4)),
    ((1, 3), (1, 2), (2, 1), (1, 2), (-1, 1, 2, 0), (7, 2)),
]


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("size", "strides", "base", "window", "padding", "shape"), WINDOWS)
def test_reduce_window_equals_litert(
    kind: Any, function: str, size: Any, strides: Any, base: Any, window: Any, padding: Any, shape: Any
) -> None:
    x, start = random(4, 5, kind=kind), np.array(1, kind)
    dtype = DType.from_numpy(kind)
    options = {
        "windowDimensions": size,
        "windowStrides": strides,
        "baseDilations": base,
        "windowDilations": window,
        "padding": padding,
        "bodySubgraphIndex": 1,
    }
    agree_with_litert(
        "STABLEHLO_REDUCE_WINDOW",
        [x, start],
        [(dtype, shape)],
        ("StablehloReduceWindowOptions", options),
        (function, dtype),
        (1,),
    )


def _branches() -> bytes:
    model = Model()
    graph = model.graph()
    index, x, y = graph.input(DType.INT32, ()), *(graph.input(DType.FLOAT32, (2,)) for _ in range(2))
    out = graph.tensor(DType.FLOAT32, (2,))
    graph.operator(
        "STABLEHLO_CASE", [index, x, y], [out], ("StablehloCaseOptions", {"branchSubgraphIndices": [1, 2, 3]})
    )
    graph.outputs(out)
    for code in ("ADD", "MUL", "SUB"):
        branch = model.graph(code)
        a, b = (branch.input(DType.FLOAT32, (2,)) for _ in range(2))
        result = branch.tensor(DType.FLOAT32, (2,))
        branch.operator(code, [a, b], [result], (f"{code.title()}Options", {}))
        branch.outputs(result)
    return model.done()


@pytest.mark.parametrize("index", [0, 1, 2, 3, -1, 2**31 - 1])
def test_case_runs_one_branch(index: int) -> None:
    x, y = np.float32([5, 6]), np.float32([2, 3])
    found = run(_branches(), np.array(index, np.int32), x, y)[0]
    expected = [x + y, x * y, x - y][index if 0 <= index < 3 else 2]
    np.testing.assert_array_equal(found, expected)
    if 0 <= index < 3:
        np.testing.assert_array_equal(found, LiteRt(_branches())(np.array(index, np.int32), x, y)[0])


def test_composite_runs_its_decomposition() -> None:
    model = Model()
    graph, inner = model.graph(), model.graph("decomposition")
    x, out = graph.input(DType.FLOAT32, (3,)), graph.tensor(DType.FLOAT32, (3,))
    options = {"name": b"odml.rms_norm", "decompositionSubgraphIndex": 1, "compositeAttributes": [0]}
    graph.operator("STABLEHLO_COMPOSITE", [x], [out], ("StableHLOCompositeOptions", options))
    graph.outputs(out)
    a, b = inner.input(DType.FLOAT32, (3,)), inner.tensor(DType.FLOAT32, (3,))
    inner.operator("MUL", [a, a], [b], ("MulOptions", {}))
    inner.outputs(b)
    given = np.float32([1, -2, 3])
    np.testing.assert_array_equal(run(model.done(), given)[0], LiteRt(model.done())(given)[0])


@pytest.mark.parametrize("function", [*FUNCTIONS, "SQUARED_DIFFERENCE"])
def test_reduce_follows_the_specification(function: str) -> None:
    x, start = random(3, 2, 4) / 4, np.array(0.25, np.float32)
    options = ("StablehloReduceOptions", {"dimensions": [2, 0], "bodySubgraphIndex": 1})
    found = one("STABLEHLO_REDUCE", [x, start], (DType.FLOAT32, (2,)), options, (function, DType.FLOAT32))
    apply = {
        "STABLEHLO_ADD": np.add,
        "STABLEHLO_MULTIPLY": np.multiply,
        "STABLEHLO_MAXIMUM": np.maximum,
        "STABLEHLO_MINIMUM": np.minimum,
        "SQUARED_DIFFERENCE": lambda a, b: (a - b) ** 2,
    }[function]
    for at in range(2):
        total = np.float32(0.25)
        for element in x[:, at].T.reshape(-1):
            total = apply(total, element)
        np.testing.assert_allclose(found[at], total, rtol=1e-5)


@pytest.mark.parametrize("code", ["LESS", "GREATER", "GREATER_EQUAL"])
def test_sort_reorders_its_other_operands_alike(code: str) -> None:
    model = Model()
    graph = model.graph()
    keys, values = graph.input(DType.INT32, (2, 6)), graph.input(DType.FLOAT32, (2, 6))
    outputs = [graph.tensor(DType.INT32, (2, 6)), graph.tensor(DType.FLOAT32, (2, 6))]
    options = {"dimension": 1, "isStable": True, "comparatorSubgraphIndex": 1}
    graph.operator("STABLEHLO_SORT", [keys, values], outputs, ("StablehloSortOptions", options))
    graph.outputs(*outputs)
    body = model.graph("comparator")
    a, b, *_ = (body.input(d, ()) for d in (DType.INT32, DType.INT32, DType.FLOAT32, DType.FLOAT32))
    out = body.tensor(DType.BOOL, ())
    body.operator(code, [a, b], [out])
    body.outputs(out)
    given = np.int32([[3, 1, 2, 3, 1, 0], [5, 5, 5, 4, 6, 5]])
    along = np.arange(12, dtype=np.float32).reshape(2, 6)
    found = run(model.done(), given, along)
    order = np.argsort(given if code == "LESS" else -given, axis=1, kind="stable")
    np.testing.assert_array_equal(found[0], np.take_along_axis(given, order, 1))
    if code != "GREATER_EQUAL":  # not a strict order, so ties may be in any order
        np.testing.assert_array_equal(found[1], np.take_along_axis(along, order, 1))


def test_while_runs_its_body_until_the_condition_fails() -> None:
    model = Model()
    graph, condition, body = model.graph(), model.graph("condition"), model.graph("body")
    x, out = graph.input(DType.INT32, ()), graph.tensor(DType.INT32, ())
    options = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    graph.operator("STABLEHLO_WHILE", [x], [out], ("StablehloWhileOptions", options))
    graph.outputs(out)
    a, less = condition.input(DType.INT32, ()), condition.tensor(DType.BOOL, ())
    condition.operator("LESS", [a, condition.constant(np.array(50, np.int32))], [less])
    condition.outputs(less)
    a, b = body.input(DType.INT32, ()), body.tensor(DType.INT32, ())
    body.operator("STABLEHLO_ADD", [a, a], [b])
    body.outputs(b)
    assert run(model.done(), np.array(3, np.int32))[0] == 96
