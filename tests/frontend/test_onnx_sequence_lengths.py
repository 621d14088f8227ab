"""ONNX recurrent layers with a length for each sequence match ONNX Runtime, and run natively."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onert
from onert.ir.ops.control_flow.control import While

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
TIME, BATCH, FEATURES, UNITS = 7, 4, 5, 6
Array = np.ndarray[Any, Any]


def _model(kind: str, direction: str, opened: bool = False, **attributes: Any) -> bytes:
    """A layer on x, with lengths, and initial states if these are inputs; all results are outputs."""
    rng, ways = np.random.default_rng(0), 2 if direction == "bidirectional" else 1
    gates, states = GATES[kind], ("h0", "c0")[: 2 if kind == "LSTM" else 1]
    shapes = {"w": (ways, gates * UNITS, FEATURES), "r": (ways, gates * UNITS, UNITS), "b": (ways, 2 * gates * UNITS)}
    if kind == "LSTM":
        shapes["p"] = (ways, 3 * UNITS)
    weights = [
        onnx.numpy_helper.from_array(rng.normal(0, 0.5, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    if kind == "GRU":
        attributes["linear_before_reset"] = 1
    inputs = ["x", "w", "r", "b", "lengths", *states, *(["p"] if kind == "LSTM" else [])]
    outputs = ["y", "h", "c"][: 1 + len(states)]
    layer = onnx.helper.make_node(kind, inputs, outputs, hidden_size=UNITS, direction=direction, **attributes)
    time, batch = ("t", "n") if opened else (TIME, BATCH)
    declared = {"x": (time, batch, FEATURES), "lengths": (batch,), **dict.fromkeys(states, (ways, batch, UNITS))}
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT32 if name == "lengths" else 1, shape)
        for name, shape in declared.items()
    ]
    results = [onnx.helper.make_tensor_value_info(name, 1, None) for name in outputs]
    graph = onnx.helper.make_graph([layer], "g", ends, results, initializer=weights)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    content: bytes = made.SerializeToString()
    return content


def _given(kind: str, direction: str, lengths: Array, time: int = TIME) -> dict[str, Array]:
    rng, ways = np.random.default_rng(1), 2 if direction == "bidirectional" else 1
    given: dict[str, Array] = {"x": rng.normal(size=(time, len(lengths), FEATURES)).astype(np.float32)}
    given["lengths"] = lengths.astype(np.int32)
    for name in ("h0", "c0")[: 2 if kind == "LSTM" else 1]:
        given[name] = rng.normal(size=(ways, len(lengths), UNITS)).astype(np.float32)
    return given


def _check(model: bytes, *runs: dict[str, Array]) -> None:
    session, peer = onert.InferenceSession(model), onnxruntime.InferenceSession(model)
    for given in runs:
        for one, other in zip(session.run(None, given), peer.run(None, given), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, strict=True)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [(7, 7, 7, 7), (1, 7, 3, 5), (2, 1, 1, 1)], ids=str)
def test_sequences_of_different_lengths_match_onnx_runtime(kind: str, direction: str, lengths: tuple[int, ...]) -> None:
    _check(_model(kind, direction), _given(kind, direction, np.array(lengths)))


@pytest.mark.parametrize("kind", GATES)
def test_open_sizes_match_onnx_runtime(kind: str) -> None:
    rows = [(7, (7, 3)), (5, (1, 5)), (9, (2, 9, 4)), (4, (4,)), (11, (8, 11, 1, 2, 3, 4, 5, 6, 7))]
    runs = [_given(kind, "bidirectional", np.array(lengths), time) for time, lengths in rows]
    _check(_model(kind, "bidirectional", opened=True), *runs)


@pytest.mark.parametrize("kind", GATES)
def test_clip_bounds_the_gates_and_not_the_cell_as_in_onnx_runtime(kind: str) -> None:
    _check(_model(kind, "bidirectional", clip=0.3), _given(kind, "bidirectional", np.array([7, 2, 5, 7])))


@pytest.mark.parametrize("kind", GATES)
def test_what_follows_the_end_of_a_sequence_does_not_matter(kind: str) -> None:
    lengths = np.array([1, 7, 3, 5])
    given = _given(kind, "bidirectional", lengths)
    session = onert.InferenceSession(_model(kind, "bidirectional"))
    expected = session.run(None, given)
    for at, length in enumerate(lengths):
        given["x"][length:, at] = np.nan
    for one, other in zip(session.run(None, given), expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", GATES)
def test_an_empty_sequence_keeps_its_state(kind: str) -> None:
    given = _given(kind, "forward", np.array([0, 7, 0, 2]))
    y, *states = onert.InferenceSession(_model(kind, "forward")).run(None, given)
    assert not y[:, :, [0, 2]].any()
    for state, name in zip(states, ("h0", "c0"), strict=False):
        np.testing.assert_array_equal(state[:, [0, 2]], given[name][:, [0, 2]])


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_layers_with_lengths_are_native(kind: str, direction: str) -> None:
    program = onert.compile(onert.load(_model(kind, direction)), num_threads=1)
    assert {step.backend for step in program.main.steps} == {"llvm"}
    assert not any(isinstance(o.op, While) for step in program.main.steps for o in step.sequence.body)
