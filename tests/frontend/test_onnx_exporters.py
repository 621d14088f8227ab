"""Models as exporters write them give the results of ONNX Runtime, with all inputs given at run time."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.ir import Array

onnx = pytest.importorskip("onnx", reason="the package onnx reads the texts")

CASES: dict[str, tuple[str, dict[str, Array]]] = {
    "lengths are products in float32": (
        'g (float[n, 20] x) => (float[n, m] y) <float[2] s = {1, 2.3}> { y = Resize <mode = "linear"> (x, , s) }',
        {"x": np.arange(40, dtype=np.float32).reshape(2, 20)},
    ),
    "triangles of matrices of open size above the diagonal": (
        "g (float[n, m] x) => (float[n, m] y) <int64 k = {1}> { y = Trilu <upper = 1> (x, k) }",
        {"x": np.arange(1, 13, dtype=np.float32).reshape(3, 4)},
    ),
    "triangles of matrices of open size below it": (
        "g (float[n, m] x) => (float[n, m] y) <int64 k = {-1}> { y = Trilu <upper = 0> (x, k) }",
        {"x": np.arange(1, 13, dtype=np.float32).reshape(4, 3)},
    ),
}


@pytest.mark.parametrize("backends", [("reference",), ()], ids=["reference", "native"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_onnx_runtimes(name: str, backends: tuple[str, ...]) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is the peer")
    text, feed = CASES[name]
    content = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {text}').SerializeToString()
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    found = onert.Execution(onert.compile(onert.load(content), backends=backends)).run(dict(feed))
    for mine, theirs in zip(found.values(), session.run(None, feed), strict=True):
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        assert np.allclose(mine, theirs, rtol=1e-5, atol=1e-5, equal_nan=True)
