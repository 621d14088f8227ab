"""Float operators that also accept integers use the integer type's own arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from onert.runtime.session import Backend

onnx = pytest.importorskip("onnx", reason="the package onnx reads the text of models")

GEMM = """<ir_version: 8, opset_import: ["" : 13]>
g (int64[1, 2] a, int64[2, 1] b, int64[1, 1] c) => (int64[1, 1] y) {{ y = Gemm<alpha = {}, beta = {}>(a, b, c) }}"""
SHRINK = """<ir_version: 8, opset_import: ["" : 13]>
g ({}[4] x) => ({}[4] y) {{ y = Shrink<bias = {}, lambd = 0.5>(x) }}"""
BYTES = """<ir_version: 8, opset_import: ["" : 13]>
g ({0}[2, 3, 48] x, {0} less) => (int32[2, 3, 20] y) <{1}[48, 20] w, {1}[{2}] zero> {{
    y = MatMulInteger(x, w, less, zero) }}"""
BACKENDS = [(), ("reference",)]


@pytest.mark.parametrize("backends", BACKENDS)
@pytest.mark.parametrize(
    ("alpha", "beta", "expected"),
    [(1.0, 1.0, 18), (1.0, 0.0, 23), (2.0, 3.0, 31), (0.5, 1.0, 6), (0.5, 0.5, 9), (-1.0, 2.0, -33)],
)
def test_an_integer_gemm_is_scaled_and_truncated_to_an_integer(
    alpha: float, beta: float, expected: int, backends: tuple[str, ...]
) -> None:
    feed = {"a": np.array([[7, 1]]), "b": np.array([[3], [2]]), "c": np.array([[-5]])}
    model = onnx.parser.parse_model(GEMM.format(alpha, beta)).SerializeToString()
    (y,) = Backend.run_model(model, feed, backends=backends)
    assert y.dtype == np.int64
    assert y.tolist() == [[expected]]


@pytest.mark.parametrize("backends", BACKENDS)
@pytest.mark.parametrize(
    ("dtype", "bias", "x", "expected"),
    [
        ("uint8", 2.0, [0, 1, 3, 255], [0, 255, 1, 253]),
        ("uint8", -1.5, [0, 1, 254, 255], [0, 2, 255, 0]),
        ("int8", -2.0, [-128, -1, 1, 127], [126, -3, 3, -127]),
        ("uint32", 2.0, [0, 1, 3, 7], [0, 4294967295, 1, 5]),
    ],
)
def test_shrink_wraps_integers_that_leave_their_range(
    dtype: str, bias: float, x: list[int], expected: list[int], backends: tuple[str, ...]
) -> None:
    model = onnx.parser.parse_model(SHRINK.format(dtype, dtype, bias)).SerializeToString()
    (y,) = Backend.run_model(model, {"x": np.array(x, dtype)}, backends=backends)
    assert y.dtype == np.dtype(dtype)
    assert y.tolist() == expected


@pytest.mark.parametrize("backends", BACKENDS)
@pytest.mark.parametrize("left", ["uint8", "int8"])
@pytest.mark.parametrize("right", ["uint8", "int8"])
@pytest.mark.parametrize("zeros", [[0], [3], [100], "each"])
def test_a_byte_product_is_exact_for_all_zero_points_of_the_weights(
    left: str, right: str, zeros: list[int] | str, backends: tuple[str, ...]
) -> None:
    draw, low = np.random.default_rng(0), {"uint8": 0, "int8": -128}
    x = draw.integers(low[left], low[left] + 256, (2, 3, 48))
    w = draw.integers(low[right], low[right] + 256, (48, 20))
    zero = draw.integers(low[right], low[right] + 256, 20) if zeros == "each" else np.array(zeros)
    model = onnx.parser.parse_model(BYTES.format(left, right, len(zero)))
    constants = {"w": w.astype(right), "zero": zero.astype(right)}
    del model.graph.initializer[:]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    feed = {"x": x.astype(left), "less": np.array(7, left)}
    (y,) = Backend.run_model(model.SerializeToString(), feed, backends=backends)
    np.testing.assert_array_equal(y, (x - 7) @ (w - zero))
