"""Models of one StableHLO operator, run here and by LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from model_writer import LiteRt, Model, Options

import onert
from onert.ir import Array, DType

Result = tuple[DType, Sequence[int]]
Body = tuple[str, DType]
"""A body's operator and element type; with an empty operator the body returns its second operand."""


def random(*shape: int, seed: int = 0, kind: Any = np.float32) -> Array:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape).astype(np.float32) if kind is np.float32 else rng.integers(-9, 9, shape).astype(kind)


def gather(offset: list[int], collapsed: list[int], starts: list[int], vectors: int, sizes: list[int]) -> Options:
    """The options of a gather: its dimension numbers, and the sizes of slices."""
    names = ("offsetDims", "collapsedSliceDims", "startIndexMap", "indexVectorDim", "sliceSizes")
    return "StablehloGatherOptions", dict(zip(names, (offset, collapsed, starts, vectors, sizes), strict=True))


def convolution(**changed: Any) -> dict[str, Any]:
    """The options of a plain convolution over two dimensions, batch first, except for what is changed."""
    plain: dict[str, Any] = {
        "windowStrides": [1, 1],
        "padding": [0, 0, 0, 0],
        "lhsDilation": [1, 1],
        "rhsDilation": [1, 1],
        "windowReversal": [False, False],
        "featureGroupCount": 1,
        "batchGroupCount": 1,
        "inputBatchDimension": 0,
        "inputFeatureDimension": 3,
        "inputSpatialDimensions": [1, 2],
        "kernelInputFeatureDimension": 2,
        "kernelOutputFeatureDimension": 3,
        "kernelSpatialDimensions": [0, 1],
        "outputBatchDimension": 0,
        "outputFeatureDimension": 3,
        "outputSpatialDimensions": [1, 2],
    }
    return plain | changed


def _body(model: Model, code: str, dtype: DType) -> None:
    """Add a subgraph of one operator on two scalars."""
    graph = model.graph(f"body of {code}")
    a, b = graph.input(dtype, ()), graph.input(dtype, ())
    if not code:
        graph.outputs(b)
        return
    out = graph.tensor(dtype, ())
    graph.operator(code, [a, b], [out])
    graph.outputs(out)


def hlo_model(
    code: str,
    inputs: Sequence[Array],
    results: Sequence[Result],
    options: Options | None = None,
    body: Body | None = None,
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


def run(model: bytes, *inputs: Array, backends: Sequence[str] = ("reference",)) -> list[Array]:
    return list(onert.Execution(onert.compile(onert.load(model), backends=tuple(backends))).run(inputs).values())


def one(
    code: str, inputs: Sequence[Array], result: Result, options: Options | None = None, body: Body | None = None
) -> Array:
    return run(hlo_model(code, inputs, [result], options, body), *inputs)[0]


def agree_with_litert(
    code: str,
    inputs: Sequence[Array],
    results: Sequence[Result],
    options: Options,
    body: Body | None = None,
    constants: Sequence[int] = (),
) -> None:
    model = hlo_model(code, inputs, results, options, body, constants)
    given = [a for at, a in enumerate(inputs) if at not in constants]
    expected = LiteRt(model)(*given)
    for found in (run(model, *given), run(model, *given, backends=())):  # as it is, and decomposed
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.dtype == theirs.dtype
            assert mine.shape == theirs.shape
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)
