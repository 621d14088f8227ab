"""ONNX Runtime's quantised operators round numbers between two integers as ONNX Runtime does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_peer import precise_session

from onert.runtime.session import Backend

onnx = pytest.importorskip("onnx")
helper = onnx.helper

TYPES = {np.uint8: onnx.TensorProto.UINT8, np.int8: onnx.TensorProto.INT8}
ONE, TWO = ["a", "as", "az", "ys", "yz"], ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]
SHAPES = {
    "QLinearAdd": (TWO, {"a": (256, 1), "b": (1, 256)}, {}),
    "QLinearMul": (TWO, {"a": (256, 1), "b": (1, 256)}, {}),
    "QLinearGlobalAveragePool": (ONE, {"a": (1, 4096, 2, 2)}, {"channels_last": 0}),
    "QLinearAveragePool": (ONE, {"a": (1, 16, 16, 16)}, {"kernel_shape": [2, 2]}),
    "QGemm": ([*TWO[:6], "", *TWO[6:]], {"a": (64, 16), "b": (16, 64)}, {}),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("scales", [(0.05, 0.1, 0.1), (0.02, 0.03, 0.09), (0.1, 0.3, 0.4)])
@pytest.mark.parametrize("name", SHAPES)
def test_ties_are_rounded_as_in_onnx_runtime(name: str, scales: tuple[float, ...], kind: type) -> None:
    operands, shapes, attributes = SHAPES[name]
    ends = np.iinfo(kind)
    rng = np.random.default_rng(0)
    inputs: dict[str, Any] = {
        key: np.resize(rng.permutation(256) + ends.min, shape).astype(kind) for key, shape in shapes.items()
    }
    if name == "QGemm":
        inputs["b"] = inputs["b"] // 40
    numbers = dict(zip(("as", "bs", "ys"), map(np.float32, scales), strict=True))
    numbers |= dict(zip(("az", "bz", "yz"), map(kind, (7, 2, 20)), strict=True))
    constants = [onnx.numpy_helper.from_array(np.array(numbers[key]), key) for key in operands if key in numbers]
    node = helper.make_node(name, operands, ["y"], domain="com.microsoft", **attributes)
    declared = [helper.make_tensor_value_info(key, TYPES[kind], array.shape) for key, array in inputs.items()]
    result = helper.make_tensor_value_info("y", TYPES[kind], None)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", declared, [result], constants)
    content = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    (expected,) = precise_session(content).run(None, inputs)
    (found,) = Backend.run_model(content, inputs)
    np.testing.assert_array_equal(found, expected)


def test_the_mean_of_a_large_plane_of_integers_is_exact() -> None:
    size = 512
    x = np.random.default_rng(0).permutation(np.repeat(np.uint8([200, 201]), size * size // 2))
    numbers = {"as": np.float32(0.1), "az": np.uint8(0), "ys": np.float32(0.1), "yz": np.uint8(0)}
    constants = [onnx.numpy_helper.from_array(np.array(value), key) for key, value in numbers.items()]
    node = helper.make_node("QLinearGlobalAveragePool", ONE, ["y"], domain="com.microsoft", channels_last=1)
    declared = helper.make_tensor_value_info("a", TYPES[np.uint8], [1, size, size, 2])
    graph = helper.make_graph(
        [node], "g", [declared], [helper.make_tensor_value_info("y", TYPES[np.uint8], None)], constants
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    (found,) = Backend.run_model(content, {"a": np.stack([x, x], -1).reshape(1, size, size, 2)})
    assert found.reshape(-1).tolist() == [200, 200]
