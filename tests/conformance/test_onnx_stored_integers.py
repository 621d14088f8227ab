"""Networks quantised by ONNX Runtime's tools store the nearest integers, whatever is fused."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import Array

onnx = pytest.importorskip("onnx", reason="the package onnx reads the texts")
quantization = pytest.importorskip("onnxruntime.quantization", reason="onnxruntime quantises the networks")

NETWORKS = {
    "residual": """g (float[1, 3, 10, 10] x, float[16, 3, 3, 3] a, float[16] b, float[16, 1, 3, 3] c, float[24, 16] d,
        float[24] e) => (float[1, 24] y) {
            p = Conv <pads = [1, 1, 1, 1]> (x, a, b) q = Relu (p)
            r = Conv <group = 16, pads = [1, 1, 1, 1]> (q, c) s = HardSwish (r) t = Add (q, s)
            u = GlobalAveragePool (t) v = Flatten (u) w = Gemm <transB = 1> (v, d, e) y = Softmax (w) }""",
    "shuffled": """g (float[2, 8, 6, 6] x, float[4, 4, 1, 1] a, float[4] b, float[16, 2, 3, 3] c, float[16] d)
        => (float[2, 6, 6, 16] y) <int64[5] open = {2, 2, 4, 6, 6}, int64[4] whole = {2, 8, 6, 6}> {
            p, q = Split <axis = 1, num_outputs = 2> (x) r = Conv (q, a, b) s = Relu (r) t = Concat <axis = 1> (p, s)
            u = Reshape (t, open) v = Transpose <perm = [0, 2, 1, 3, 4]> (u) w = Reshape (v, whole)
            z = Conv <group = 4, pads = [1, 1, 1, 1]> (w, c, d) y = Transpose <perm = [0, 2, 3, 1]> (z) }""",
    "attention": """g (float[1, 9, 16] x, float[16] a, float[16] b, float[16, 16] c, float[16, 16] d, float[16, 16] e)
        => (float[1, 9, 16] y) {
            n = LayerNormalization (x, a, b) q = MatMul (n, c) k = MatMul (n, d) v = MatMul (n, e)
            t = Transpose <perm = [0, 2, 1]> (k) s = MatMul (q, t) p = Softmax (s) m = MatMul (p, v)
            y = Add (x, m) }""",
    "pyramid": """g (float[1, 4, 8, 8] x, float[8, 4, 3, 3] a, float[8] b, float[8, 4, 2, 2] c)
        => (float[1, 20, 16, 16] y) <float[4] twice = {1, 1, 2, 2}> {
            p = Conv <pads = [1, 1, 1, 1]> (x, a, b) g1 = Sigmoid (p) q = Mul (p, g1)
            r = ConvTranspose <strides = [2, 2]> (q, c) m = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (q)
            s = Resize <mode = "linear"> (q, , twice) t = Resize <mode = "nearest"> (m, , twice)
            y = Concat <axis = 1> (s, r, t) }""",
}
WAYS = {
    "signed": ("QInt8", "QInt8", False),
    "signed, a scale for each filter": ("QInt8", "QInt8", True),
    "unsigned": ("QUInt8", "QUInt8", False),
    "unsigned, signed weights": ("QUInt8", "QInt8", True),
    "of 16 bits": ("QInt16", "QInt8", False),
    "weights of 4 bits": ("QUInt8", "QInt4", False),
}


class _Calibration(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
    def __init__(self, feed: dict[str, Array]) -> None:
        self.left = [feed]

    def get_next(self) -> dict[str, Array] | None:
        return self.left.pop() if self.left else None


def _quantized(text: str, way: tuple[str, str, bool], path: Path) -> tuple[Any, dict[str, Array]]:
    """The quantised network with random weights, and an input for it."""
    rng = np.random.default_rng(7)
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    drawn = {
        each.name: rng.normal(size=[d.dim_value for d in each.type.tensor_type.shape.dim]).astype(np.float32)
        for each in model.graph.input
    }
    feed = {"x": drawn.pop("x")}
    del model.graph.input[1:]
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in drawn.items())
    activations, weights, each_filter = way
    logging.disable(logging.WARNING)  # it advises to preprocess the model
    try:
        quantization.quantize_static(
            model,
            path,
            _Calibration(feed),
            activation_type=quantization.QuantType[activations],
            weight_type=quantization.QuantType[weights],
            per_channel=each_filter,
        )
    finally:
        logging.disable(logging.NOTSET)
    return onnx.load(path), feed


def _run(model: Any, feed: dict[str, Array]) -> dict[str, Array]:
    return dict(onert.Execution(onert.compile(onert.load(model.SerializeToString()))).run(dict(feed)))


def _storing(model: Any) -> Any:
    """The model with every stored integer tensor as an additional output."""
    kinds = {each.name: each.data_type for each in model.graph.initializer}
    more = onnx.ModelProto.FromString(model.SerializeToString())
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            more.graph.output.append(onnx.helper.make_tensor_value_info(node.output[0], kinds[node.input[2]], None))
    return more


def _evaluated(node: Any, given: list[Array], imports: Any) -> list[Array]:
    inputs = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name]
    graph = onnx.helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=name) for name in node.output])
    single = onnx.reference.ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=imports))
    found: list[Array] = single.run(None, {name: x for name, x in zip(node.input, given, strict=True) if name})
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NETWORKS)
def test_each_stored_integer_is_the_nearest_to_the_real_value_it_quantises(name: str, way: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx.reference")
    model, feed = _quantized(NETWORKS[name], WAYS[way], tmp_path / "model.onnx")
    found = _run(_storing(model), feed)
    for result, fused in _run(model, feed).items():
        np.testing.assert_array_equal(fused, found[result])
    values = dict(feed) | {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    for node in model.graph.node:
        given = [values.get(name, np.empty(0)) for name in node.input]
        if node.op_type != "QuantizeLinear":
            values |= zip(node.output, _evaluated(node, given, model.opset_import), strict=True)
            continue
        x, scale, zero = given
        low, high = np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max
        real = np.clip(x.astype(np.float64) / scale + zero, low, high)
        stored = values[node.output[0]] = found[node.output[0]]
        assert np.abs(real - stored).max() <= 0.5 + 2**-20 * (high - low), node.name
    for each in model.graph.output:
        np.testing.assert_allclose(found[each.name], values[each.name], rtol=1e-5, atol=1e-5)
