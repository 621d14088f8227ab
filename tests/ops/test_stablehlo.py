"""StableHLO's operators give what LiteRT gives where it has kernels, and what their specification says elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from model_writer import LiteRt, Model, Options

import onert
from onert.ir import Array, DType

Result = tuple[DType, Sequence[int]]
Bodies = Sequence[tuple[str, DType] | None]


def _random(*shape: int, seed: int = 0, kind: Any = np.float32) -> Array:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape).astype(np.float32) if kind is np.float32 else rng.integers(-9, 9, shape).astype(kind)


def _body(model: Model, code: str, dtype: DType, swapped: bool = False) -> None:
    """A subgraph of one operator on two single elements; without a code it gives the second."""
    graph = model.graph(f"body of {code}")
    a, b = graph.input(dtype, ()), graph.input(dtype, ())
    if not code:
        graph.outputs(b)
        return
    out = graph.tensor(dtype, ())
    graph.operator(code, [b, a] if swapped else [a, b], [out])
    graph.outputs(out)


def _model(
    code: str,
    inputs: Sequence[Array],
    results: Sequence[Result],
    options: Options | None = None,
    body: tuple[str, DType] | None = None,
    constants: Sequence[int] = (),
) -> bytes:
    model = Model()
    graph = model.graph()
    given = [
        graph.constant(a) if at in constants else graph.input(DType.from_numpy(a.dtype), a.shape)
        for at, a in enumerate(inputs)
    ]
    outputs = [graph.tensor(dtype, shape) for dtype, shape in results]
    graph.operator(code, given, outputs, options)
    graph.outputs(*outputs)
    if body is not None:
        _body(model, *body)
    return model.done()


def _run(model: bytes, *inputs: Array) -> list[Array]:
    return list(onert.Execution(onert.compile(onert.load(model), backends=("reference",))).run(inputs).values())


def _one(code: str, inputs: Sequence[Array], result: Result, options: Options | None = None, body: Any = None) -> Array:
    return _run(_model(code, inputs, [result], options, body), *inputs)[0]


def _both(
    code: str,
    inputs: Sequence[Array],
    results: Sequence[Result],
    options: Options,
    body: tuple[str, DType] | None = None,
    constants: Sequence[int] = (),
) -> None:
    model = _model(code, inputs, results, options, body, constants)
    given = [a for at, a in enumerate(inputs) if at not in constants]
    for mine, theirs in zip(_run(model, *given), LiteRt(model)(*given), strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


KINDS = [np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8]
FUNCTIONS = ["STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("low", "high", "interior", "shape"),
    [
        ((1, 0), (2, 0), (0, 0), (6, 4)),
        ((0, 2), (1, 1), (2, 1), (8, 10)),
        ((-1, 1), (0, -2), (1, 0), (4, 3)),
        ((-2, 0), (-1, 0), (2, 3), (4, 13)),
    ],
)
def test_pad(kind: Any, low: Any, high: Any, interior: Any, shape: tuple[int, ...]) -> None:
    x, value = _random(3, 4, kind=kind), np.array(7, kind)
    options = ("StablehloPadOptions", {"edgePaddingLow": low, "edgePaddingHigh": high, "interiorPadding": interior})
    _both("STABLEHLO_PAD", [x, value], [(DType.from_numpy(kind), shape)], options)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64, np.int8])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_gather(kind: Any, index: Any) -> None:
    x = _random(3, 4, 2, kind=kind)
    indices = np.array([[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]], index)
    options = {
        "offsetDims": [2, 3],
        "collapsedSliceDims": [0],
        "startIndexMap": [1, 0],
        "indexVectorDim": 2,
        "sliceSizes": [1, 2, 2],
    }
    results = [(DType.from_numpy(kind), (2, 3, 2, 2))]
    _both("STABLEHLO_GATHER", [x, indices], results, ("StablehloGatherOptions", options))


def test_gather_in_other_places() -> None:
    x, indices = _random(4, 5, 3), np.int32([[2, 0, 4], [1, 3, -5]])
    options = {
        "offsetDims": [0, 2],
        "collapsedSliceDims": [2],
        "startIndexMap": [1, 0],
        "indexVectorDim": 0,
        "sliceSizes": [2, 3, 1],
    }
    found = _one("STABLEHLO_GATHER", [x, indices], (DType.FLOAT32, (2, 3, 3)), ("StablehloGatherOptions", options))
    for at, (column, row) in enumerate([(2, 1), (0, 2), (2, 0)]):
        np.testing.assert_array_equal(found[:, at], x[row : row + 2, column : column + 3, 0])


SCATTER = {
    "updateWindowDims": [2, 3],
    "insertedWindowDims": [0],
    "scatterDimsToOperandDims": [1, 0],
    "indexVectorDim": 2,
}


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64, np.int8])
@pytest.mark.parametrize("function", [*FUNCTIONS, ""])
def test_scatter(kind: Any, function: str) -> None:
    x = _random(3, 4, 2, kind=kind)
    indices = np.array([[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]]], np.int64)
    updates = _random(2, 3, 2, 2, seed=1, kind=kind)
    dtype = DType.from_numpy(kind)
    options = ("StablehloScatterOptions", {**SCATTER, "updateComputationSubgraphIndex": 1})
    _both("STABLEHLO_SCATTER", [x, indices, updates], [(dtype, x.shape)], options, (function, dtype))


def test_scatter_with_a_function_of_its_own() -> None:
    x, indices, updates = np.float32([1, 2, 3]), np.int32([[0], [2], [0], [7]]), np.float32([4, 5, 6, 9])
    options = {"insertedWindowDims": [0], "scatterDimsToOperandDims": [0], "indexVectorDim": 1}
    options["updateComputationSubgraphIndex"] = 1
    model = ("StablehloScatterOptions", options)
    found = _one("STABLEHLO_SCATTER", [x, indices, updates], (DType.FLOAT32, (3,)), model, ("SUB", DType.FLOAT32))
    np.testing.assert_array_equal(found, [-9, 2, -2])


WINDOWS = [
    ((2, 2), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), (3, 4)),
    ((2, 1), (2, 2), (1, 1), (2, 1), (1, 0, 0, 2), (2, 4)),
    ((1, 3), (1, 2), (2, 1), (1, 2), (-1, 1, 2, 0), (7, 2)),
]


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("size", "strides", "base", "window", "padding", "shape"), WINDOWS)
def test_reduce_window(
    kind: Any, function: str, size: Any, strides: Any, base: Any, window: Any, padding: Any, shape: Any
) -> None:
    x, start = _random(4, 5, kind=kind), np.array(1, kind)
    dtype = DType.from_numpy(kind)
    options = {
        "windowDimensions": size,
        "windowStrides": strides,
        "baseDilations": base,
        "windowDilations": window,
        "padding": padding,
        "bodySubgraphIndex": 1,
    }
    _both(
        "STABLEHLO_REDUCE_WINDOW",
        [x, start],
        [(dtype, shape)],
        ("StablehloReduceWindowOptions", options),
        (function, dtype),
        (1,),
    )


@pytest.mark.parametrize(("algorithm", "words"), [(0, 2), (0, 3), (1, 2), (1, 3), (2, 2)])
@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("count", [8, 7])
def test_random_bits(algorithm: int, words: int, kind: Any, count: int) -> None:
    states = np.array([[1, 2, 3], [2**63 + 5, 2**64 - 1, 7], [2**40, 2**32 - 1, 2**64 - 1]], np.uint64)
    results = [(DType.UINT64, (words,)), (DType.from_numpy(kind), (count,))]
    options = ("StablehloRngBitGeneratorOptions", {"algorithm": algorithm})
    model = _model("STABLEHLO_RNG_BIT_GENERATOR", [states[0, :words]], results, options)
    theirs = LiteRt(model)
    for state in states[:, :words]:
        for mine, other in zip(_run(model, state), theirs(state), strict=True):
            np.testing.assert_array_equal(mine, other)


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
    found = _run(_branches(), np.array(index, np.int32), x, y)[0]
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
    np.testing.assert_array_equal(_run(model.done(), given)[0], LiteRt(model.done())(given)[0])


def test_movement() -> None:
    x = _random(2, 3, 4)
    f = DType.FLOAT32
    options: Any = {"startIndices": [0, 1, 0], "limitIndices": [2, 3, 4], "strides": [1, 1, 3]}
    found = _one("STABLEHLO_SLICE", [x], (f, (2, 2, 2)), ("StablehloSliceOptions", options))
    np.testing.assert_array_equal(found, x[:, 1:3, ::3])
    found = _one("STABLEHLO_TRANSPOSE", [x], (f, (4, 2, 3)), ("StablehloTransposeOptions", {"permutation": [2, 0, 1]}))
    np.testing.assert_array_equal(found, x.transpose(2, 0, 1))
    np.testing.assert_array_equal(_one("STABLEHLO_RESHAPE", [x], (f, (6, 4))), x.reshape(6, 4))
    options = {"broadcastDimensions": [2, 0]}
    small = _random(3, 1)
    found = _one("STABLEHLO_BROADCAST_IN_DIM", [small], (f, (5, 2, 3)), ("StablehloBroadcastInDimOptions", options))
    np.testing.assert_array_equal(found, np.broadcast_to(small.T.reshape(1, 1, 3), (5, 2, 3)))
    found = _one("STABLEHLO_CONCATENATE", [x, x], (f, (2, 6, 4)), ("StablehloConcatenateOptions", {"dimension": 1}))
    np.testing.assert_array_equal(found, np.concatenate([x, x], 1))
    found = _one("STABLEHLO_IOTA", [], (DType.INT32, (2, 3)), ("StablehloIotaOptions", {"iotaDimension": 1}))
    np.testing.assert_array_equal(found, [[0, 1, 2]] * 2)
    bounds = [np.array(-0.5, np.float32), x, np.array(0.5, np.float32)]
    np.testing.assert_array_equal(_one("STABLEHLO_CLAMP", bounds, (f, x.shape)), np.clip(x, -0.5, 0.5))
    starts = [np.array(at, np.int32) for at in (1, 9, -3)]
    found = _one(
        "STABLEHLO_DYNAMIC_SLICE",
        [x, *starts],
        (f, (1, 2, 2)),
        ("StablehloDynamicSliceOptions", {"sliceSizes": [1, 2, 2]}),
    )
    np.testing.assert_array_equal(found, x[1:2, 1:3, 0:2])
    update = _random(1, 2, 2, seed=5)
    found = _one("STABLEHLO_DYNAMIC_UPDATE_SLICE", [x, update, *starts], (f, x.shape))
    expected = x.copy()
    expected[1:2, 1:3, 0:2] = update
    np.testing.assert_array_equal(found, expected)


def test_dot_general() -> None:
    x, y = _random(2, 3, 4, 5), _random(5, 2, 6, 3, seed=1)
    options = {
        "lhsBatchingDimensions": [0],
        "rhsBatchingDimensions": [1],
        "lhsContractingDimensions": [3, 1],
        "rhsContractingDimensions": [0, 3],
    }
    found = _one("STABLEHLO_DOT_GENERAL", [x, y], (DType.FLOAT32, (2, 4, 6)), ("StablehloDotGeneralOptions", options))
    np.testing.assert_allclose(found, np.einsum("bijk,kbni->bjn", x, y), atol=1e-5)
    a, b = _random(3, 4, kind=np.int8), _random(4, 2, kind=np.int8)
    options = {"lhsContractingDimensions": [1], "rhsContractingDimensions": [0]}
    found = _one("STABLEHLO_DOT_GENERAL", [a, b], (DType.INT32, (3, 2)), ("StablehloDotGeneralOptions", options))
    np.testing.assert_array_equal(found, a.astype(np.int32) @ b.astype(np.int32))


def _convolution(x: Array, kernel: Array, o: Any) -> Array:
    """The definition, element by element; x [batch, space, features], kernel [space, inputs, outputs]."""
    batch, outputs = x.shape[0] // o["batchGroupCount"], kernel.shape[3]
    groups, batches = o["featureGroupCount"], o["batchGroupCount"]
    sizes = []
    for i in range(2):
        wide = (x.shape[1 + i] - 1) * o["lhsDilation"][i] + 1 + o["padding"][2 * i] + o["padding"][2 * i + 1]
        sizes.append((wide - (kernel.shape[i] - 1) * o["rhsDilation"][i] - 1) // o["windowStrides"][i] + 1)
    out = np.zeros((batch, *sizes, outputs))
    for b, p, q, f in product(range(batch), range(sizes[0]), range(sizes[1]), range(outputs)):
        part = f // (outputs // groups)
        item = b + (f // (outputs // batches)) * batch
        for r, s, c in product(range(kernel.shape[0]), range(kernel.shape[1]), range(kernel.shape[2])):
            at = [
                place * o["windowStrides"][i] + step * o["rhsDilation"][i] - o["padding"][2 * i]
                for i, (place, step) in enumerate(((p, r), (q, s)))
            ]
            if any(a % d or not 0 <= a // d < n for a, d, n in zip(at, o["lhsDilation"], x.shape[1:3], strict=True)):
                continue
            source = (item, at[0] // o["lhsDilation"][0], at[1] // o["lhsDilation"][1], part * kernel.shape[2] + c)
            taps = (-1 - r if o["windowReversal"][0] else r, -1 - s if o["windowReversal"][1] else s)
            out[b, p, q, f] += float(x[source]) * float(kernel[(*taps, c, f)])
    return out


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"windowStrides": [2, 1], "padding": [1, 1, 0, 2], "rhsDilation": [1, 2]},
        {"lhsDilation": [2, 1], "padding": [2, 1, -1, 0], "windowReversal": [True, False]},
        {"featureGroupCount": 2},
        {"batchGroupCount": 2},
    ],
    ids=str,
)
def test_convolution(changed: dict[str, Any]) -> None:
    options: dict[str, Any] = {
        "windowStrides": [1, 1],
        "padding": [0, 0, 0, 0],
        "lhsDilation": [1, 1],
        "rhsDilation": [1, 1],
        "windowReversal": [False, False],
        "featureGroupCount": 1,
        "batchGroupCount": 1,
        **changed,
    }
    x, kernel = _random(4, 5, 6, 4), _random(2, 3, 4 // options["featureGroupCount"], 6, seed=1)
    expected = _convolution(x, kernel, options)
    for turned in (False, True):  # batch first and features last, or the other way round
        places = {
            "inputBatchDimension": 3 if turned else 0,
            "inputFeatureDimension": 0 if turned else 3,
            "inputSpatialDimensions": [2, 1] if turned else [1, 2],
            "kernelInputFeatureDimension": 2,
            "kernelOutputFeatureDimension": 3,
            "kernelSpatialDimensions": [0, 1],
            "outputBatchDimension": 3 if turned else 0,
            "outputFeatureDimension": 0 if turned else 3,
            "outputSpatialDimensions": [2, 1] if turned else [1, 2],
        }
        given = [x.transpose(3, 2, 1, 0) if turned else x, kernel]
        wanted = expected.transpose(3, 2, 1, 0) if turned else expected
        table = ("StablehloConvolutionOptions", {**options, **places})
        found = _one("STABLEHLO_CONVOLUTION", given, (DType.FLOAT32, wanted.shape), table)
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("function", [*FUNCTIONS, "SQUARED_DIFFERENCE"])
def test_reduce(function: str) -> None:
    x, start = _random(3, 2, 4) / 4, np.array(0.25, np.float32)
    options = ("StablehloReduceOptions", {"dimensions": [2, 0], "bodySubgraphIndex": 1})
    found = _one("STABLEHLO_REDUCE", [x, start], (DType.FLOAT32, (2,)), options, (function, DType.FLOAT32))
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
def test_sort_takes_other_tensors_along(code: str) -> None:
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
    found = _run(model.done(), given, along)
    order = np.argsort(given if code == "LESS" else -given, axis=1, kind="stable")
    np.testing.assert_array_equal(found[0], np.take_along_axis(given, order, 1))
    if code != "GREATER_EQUAL":  # of which no order is stable
        np.testing.assert_array_equal(found[1], np.take_along_axis(along, order, 1))


def test_while_loops() -> None:
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
    assert _run(model.done(), np.array(3, np.int32))[0] == 96


def test_a_custom_call_is_named() -> None:
    x = _random(2)
    model = _model(
        "STABLEHLO_CUSTOM_CALL",
        [x],
        [(DType.FLOAT32, (2,))],
        ("StablehloCustomCallOptions", {"callTargetName": b"stranger"}),
    )
    with pytest.raises(onert.CompileError, match="STABLEHLO_CUSTOM_CALL stranger"):
        onert.compile(onert.load(model))
