"""Models that ONNX Runtime saved with all optimisations, whose convolutions take channels in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert
from onert.frontend.onnx.table import blocked

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")
ort: Any = pytest.importorskip("onnxruntime", reason="ONNX Runtime saves the models")

PADDED = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
Layer = tuple[str, list[str], str, dict[str, Any]]
FILTERS = {
    "first": (24, 3, 3, 3),
    "apart": (24, 1, 3, 3),
    "mixed": (24, 24, 1, 1),
    "wide": (64, 24, 3, 3),
    "groups": (64, 32, 3, 3),
    "squeezed": (16, 64, 1, 1),
    "excited": (64, 16, 1, 1),
}
NETWORKS: dict[str, list[Layer]] = {
    "filters of all channels, of each, and a residual": [
        ("Conv", ["x", "first"], "a", PADDED),
        ("Relu", ["a"], "b", {}),
        ("Conv", ["b", "apart"], "c", {**PADDED, "group": 24}),
        ("HardSigmoid", ["c"], "d", {}),
        ("Conv", ["d", "mixed"], "e", {}),
        ("Add", ["b", "e"], "f", {}),
        ("Tanh", ["f"], "y", {}),
    ],
    "hard swish": [
        ("Conv", ["x", "first"], "a", PADDED),
        ("HardSwish", ["a"], "b", {}),
        ("Conv", ["b", "mixed"], "y", {}),
    ],
    "groups, and channels weighted by an excitation": [
        ("Conv", ["x", "first"], "a", PADDED),
        ("Conv", ["a", "wide"], "b", {**PADDED, "strides": [2, 2]}),
        ("Conv", ["b", "groups"], "c", {**PADDED, "group": 2}),
        ("GlobalAveragePool", ["c"], "d", {}),
        ("Conv", ["d", "squeezed"], "e", {}),
        ("Relu", ["e"], "f", {}),
        ("Conv", ["f", "excited"], "g", {}),
        ("Sigmoid", ["g"], "h", {}),
        ("Mul", ["c", "h"], "y", {}),
    ],
    "pools, larger images and joined channels": [
        ("Conv", ["x", "first"], "a", PADDED),
        ("Conv", ["a", "wide"], "b", PADDED),
        ("MaxPool", ["b"], "c", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ("Resize", ["c", "", "twice"], "d", {"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
                                             "nearest_mode": "floor"}),
        ("AveragePool", ["b"], "e", {**PADDED, "count_include_pad": 1}),
        ("Resize", ["c", "", "twice"], "f", {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}),
        ("Concat", ["d", "e", "f"], "g", {"axis": 1}),
        ("GlobalMaxPool", ["g"], "y", {}),
    ],
    "an image with its channels last": [
        ("Conv", ["x", "first"], "a", PADDED),
        ("Conv", ["a", "wide"], "b", PADDED),
        ("Transpose", ["b"], "y", {"perm": [0, 2, 3, 1]}),
    ],
}  # fmt: skip


def saved(layers: list[Layer], folder: Path) -> Path:
    """The model as ONNX Runtime saves it."""
    h, draw = onnx.helper, np.random.default_rng(2)
    stored = {n: draw.standard_normal(s) / np.sqrt(np.prod(s[1:])) for n, s in FILTERS.items()}
    stored["twice"] = np.array([1.0, 1.0, 2.0, 2.0])
    graph = h.make_graph(
        [h.make_node(kind, inputs, [output], **attributes) for kind, inputs, output, attributes in layers],
        "network",
        [h.make_tensor_value_info("x", 1, [2, 3, 10, 10])],
        [h.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(x.astype(np.float32), name) for name, x in stored.items()],
    )
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "saved.onnx")
    ort.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    return folder / "saved.onnx"


@pytest.mark.parametrize("name", NETWORKS)
def test_a_model_saved_with_all_optimisations_gives_the_results_of_the_original(name: str, tmp_path: Path) -> None:
    path = saved(NETWORKS[name], tmp_path)
    x = np.random.default_rng(3).standard_normal((2, 3, 10, 10)).astype(np.float32)
    (wanted,) = ort.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"]).run(None, {"x": x})
    (found,) = onert.InferenceSession(path).run(None, {"x": x})
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_filters_are_put_in_order_from_blocks() -> None:
    plain = np.arange(16 * 16 * 2).reshape(16, 16, 1, 2)
    both = plain.reshape(2, 8, 2, 8, 1, 2).transpose(0, 2, 4, 5, 3, 1)
    assert (blocked.in_order(both.reshape(plain.shape), 8) == plain).all()
    few = plain[:, :3]
    assert (blocked.in_order(few.reshape(2, 8, 3, 1, 2).transpose(0, 2, 3, 4, 1).reshape(few.shape), 8) == few).all()


@pytest.mark.parametrize("shape", [(24, 3, 3, 3), (32, 24, 1, 1)])
def test_filters_in_blocks_of_another_processor_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(onert.ModelError, match="expected multiples of 16: ONNX Runtime saved the model on another"):
        blocked.in_order(np.zeros(shape, np.float32), 16)
