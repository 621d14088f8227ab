"""Where a model is cut behind sizes that only a run knows: everything that reads such tensors is compiled for them."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import Array
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.runtime.session import InferenceSession

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

MANY = 4096


def _head() -> bytes:
    """The features of the regions that score enough are enlarged. Enlarging those of all regions takes 8 MiB, more than
    is worth while, and their number is part of a shape that the layer is given."""
    helper, numbers, made = onnx.helper, onnx.numpy_helper, np.random.default_rng(1)
    nodes = [
        helper.make_node("Greater", ["scores", "least"], ["chosen"]),
        helper.make_node("NonZero", ["chosen"], ["where"]),
        helper.make_node("Squeeze", ["where", "first"], ["at"]),
        helper.make_node("Gather", ["features", "at"], ["picked"]),
        helper.make_node("Relu", ["picked"], ["positive"]),
        helper.make_node("ConvTranspose", ["positive", "w"], ["large"], strides=[2, 2]),
        helper.make_node("Relu", ["large"], ["y"]),
    ]
    constants = {
        "least": np.float32(0.5),
        "first": np.int64([0]),
        "w": made.normal(size=(4, 32, 2, 2)).astype(np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "head",
        [
            helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, [MANY]),
            helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, [MANY, 4, 2, 2]),
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 32, 4, 4])],
        [numbers.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    found: bytes = model.SerializeToString()
    return found


def _given(count: int) -> dict[str, Array]:
    rng = np.random.default_rng(count)
    scores = np.zeros(MANY, np.float32)
    scores[rng.permutation(MANY)[:count]] = 1
    return {"scores": scores, "features": rng.normal(size=(MANY, 4, 2, 2)).astype(np.float32)}


def test_a_layer_that_is_given_a_shape_with_a_computed_size_is_native(monkeypatch: pytest.MonkeyPatch) -> None:
    session, expected = InferenceSession(_head()), onnxruntime.InferenceSession(_head())
    monkeypatch.setattr(TransposeConv2D, "evaluate", None)
    for count in (3, 5, 1, 40):
        (mine,), (theirs,) = session.run(None, _given(count)), expected.run(None, _given(count))
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5, strict=True)
