"""Sessions run models whose ranks only the inputs of a run determine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import onert
from onert.ir import Array
from onert.runtime.errors import ArgumentError, RunError


def _model(nodes: list[list[str]], length: str | int | None = "n", rank: list[int] | None = None) -> bytes:
    """Nodes given as a kind, inputs, and an output, of `x` with this shape and the vector `s` of this length."""
    made = [helper.make_node(kind, names, [output]) for kind, *names, output in nodes]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, rank)
    s = helper.make_tensor_value_info("s", TensorProto.INT64, [length])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    used = [v for v in (x, s) if any(v.name in node for node in nodes)]
    graph = helper.make_graph(made, "g", used, [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    found: Array = powers / powers.sum(-1, keepdims=True)
    return found


RESHAPED = _model([["Reshape", "x", "s", "r"], ["Softmax", "r", "y"]], rank=[12])
NUMBERS = np.random.default_rng(0).random(12, np.float32)


@pytest.mark.parametrize("length", ["n", None])
@pytest.mark.parametrize("kind", ["Reshape", "Expand"])
def test_a_shape_of_unknown_length_determines_the_rank_of_what_follows(kind: str, length: str | None) -> None:
    model = _model([[kind, "x", "s", "r"], ["Add", "r", "x", "t"], ["Softmax", "t", "y"]], length, [1, 3])
    session = onert.InferenceSession(model)
    x = np.float32([[1, 2, 4]])
    for shape in ([1, 3], [1, 1, 3], [3], [1, 3]) if kind == "Reshape" else ([2, 3], [2, 1, 3], [5, 3], [2, 3]):
        wider = np.reshape(x, shape) if kind == "Reshape" else np.broadcast_to(x, shape)
        (found,) = session.run(None, {"x": x, "s": np.int64(shape)})
        np.testing.assert_allclose(found, _softmax(wider + x), rtol=1e-6)


def test_an_input_without_a_declared_rank_has_that_of_each_run(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(_model([["Transpose", "x", "r"], ["Softmax", "r", "y"]]))
    session = onert.InferenceSession(path)
    for shape in ([2, 3], [2, 3, 4], [5], [4, 3]):
        x = np.random.default_rng(0).random(shape, np.float32)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], _softmax(x.transpose()), rtol=1e-6)


def test_bound_memory_may_change_its_rank() -> None:
    session = onert.InferenceSession(RESHAPED)
    binding = session.io_binding()
    for shape in ([3, 4], [2, 2, 3]):
        out = onert.OrtValue.ortvalue_from_shape_and_type(shape, np.float32)
        binding.bind_cpu_input("x", NUMBERS)
        binding.bind_cpu_input("s", np.int64(shape))
        binding.bind_ortvalue_output("y", out)
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(out.numpy(), _softmax(NUMBERS.reshape(shape)), rtol=1e-6)


def test_a_shape_that_does_not_fit_is_one_error_of_the_run() -> None:
    session = onert.InferenceSession(RESHAPED)
    with pytest.raises(RunError, match="elements"):
        session.run(None, {"x": NUMBERS, "s": np.int64([5, 7])})
    with pytest.raises(ArgumentError, match="missing"):
        session.run(None, {"x": NUMBERS})
    wrong = onert.InferenceSession(_model([["Transpose", "x", "r"], ["Conv", "r", "r", "y"]]))
    with pytest.raises(RunError, match="Conv"):
        wrong.run(None, {"x": NUMBERS})


def test_other_models_are_still_refused_when_a_session_is_made() -> None:
    with pytest.raises(ArgumentError, match="Add"):
        onert.InferenceSession(_model([["Add", "x", "y"]], rank=[2]))
    computed = [["Unique", "s", "k"], ["Reshape", "x", "k", "r"], ["Softmax", "r", "y"]]
    with pytest.raises(ArgumentError, match="unknown rank"):
        onert.InferenceSession(_model(computed, 4, [2]))
