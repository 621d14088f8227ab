"""Models whose ranks only their inputs determine: sessions read them for a run, others with shapes given for that."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from onnx import TensorProto, helper

import onert
from onert.frontend.format import InputShapes
from onert.ir import Array, ModelError
from onert.runtime.errors import ArgumentError, RunError
from onert.tools import bench, bundle, inspect, run


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


OF_ANY_RANK = _model([["Transpose", "x", "r"], ["Softmax", "r", "y"]])
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
    path.write_bytes(OF_ANY_RANK)
    session = onert.InferenceSession(path)
    for shape in ([2, 3], [2, 3, 4], [5], [4, 3]):
        x = np.random.default_rng(0).random(shape, np.float32)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], _softmax(x.transpose()), rtol=1e-6)


@pytest.mark.parametrize("given", [{"x": (2, 3, 4)}, {0: (None, None, None)}])
def test_given_shapes_decide_the_ranks_of_a_loaded_model(given: InputShapes) -> None:
    package = onert.load(OF_ANY_RANK, given)
    assert package.model.primary.type(package.model.primary.inputs[0]).shape == (None, None, None)
    execution = onert.Execution(onert.compile(package))
    for shape in ([2, 3, 4], [4, 1, 5]):
        x = np.random.default_rng(0).random(shape, np.float32)
        (found,) = execution.run([x]).values()
        np.testing.assert_allclose(found, _softmax(x.transpose()), rtol=1e-6)


def test_the_length_of_a_shape_decides_the_rank_of_a_loaded_model() -> None:
    execution = onert.Execution(onert.compile(onert.load(RESHAPED, {"s": (2,)})))
    (found,) = execution.run([NUMBERS, np.int64([3, 4])]).values()
    np.testing.assert_allclose(found, _softmax(NUMBERS.reshape(3, 4)), rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        (
            OF_ANY_RANK,
            None,
            "node 0 Transpose.* unknown rank; ranks depend on the shape of 'x', which input_shapes can",
        ),
        (RESHAPED, {}, "unknown rank; ranks depend on the shape of 's', which input_shapes can"),
        (RESHAPED, {"x": (3, 4)}, "unknown rank; ranks depend on the shape of 's', which"),
        (_model([["Conv", "x", "x", "y"]]), {"x": (2,)}, "node 0 Conv"),
    ],
)
def test_a_model_of_open_ranks_is_refused_with_the_inputs_that_decide_them(
    model: bytes, given: InputShapes | None, message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        onert.load(model, given)


@pytest.mark.parametrize(
    ("command", "given"),
    [
        (run, ["--shape_prepare", "[0, [2, 3]]"]),
        (run, ["--load", "x.npy"]),
        (run, ["--load", "x.npz"]),
        (inspect, ["--shape_prepare", "[0, [2, 3]]"]),
        (bench, ["--shape_prepare", "[0, [2, 3]]", "--peers", "", "--rounds", "1"]),
        (bundle, ["--shape", "[0, [2, 3]]", "-o", "built"]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, ModuleType) else " ".join(value),
)
def test_commands_read_a_model_with_the_ranks_of_the_shapes_they_are_given(
    command: ModuleType,
    given: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").write_bytes(OF_ANY_RANK)
    np.save("x.npy", np.ones((2, 3), np.float32))
    np.savez("x.npz", x=np.ones((2, 3), np.float32))
    output = [] if command is not bundle else ["-o", "other"]
    assert command.main(["model.onnx", *output]) == 1
    option = given[0] if given[0] != "--load" else "--shape_prepare"
    assert f"ranks depend on the shape of 'x', which {option} can give" in capsys.readouterr().err
    assert command.main(["model.onnx", *given]) == 0


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


def test_options_of_another_class_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"sess_options is a builtins\.dict, expected onert\.SessionOptions"):
        onert.InferenceSession(RESHAPED, {})  # type: ignore[arg-type]


def test_other_models_are_still_refused_when_a_session_is_made() -> None:
    with pytest.raises(ArgumentError, match="Add"):
        onert.InferenceSession(_model([["Add", "x", "y"]], rank=[2]))
    computed = [["Unique", "s", "k"], ["Reshape", "x", "k", "r"], ["Softmax", "r", "y"]]
    with pytest.raises(ArgumentError, match="unknown rank"):
        onert.InferenceSession(_model(computed, 4, [2]))
