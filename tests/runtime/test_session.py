"""ONNX Runtime's interface: descriptions and results match ONNX Runtime's own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE

import onert
from onert.runtime.session import Backend, seeds

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")

TEXT = """<ir_version: 9, opset_import: ["" : 17], producer_name: "a writer", domain: "org.example",
 model_version: 3, doc_string: "adds">
sums (float[batch, 3] x, float[3] y) => (float[batch, 3] total, int64[2] shape) {
  total = Add (x, y)
  shape = Shape (x)
}"""
STATIC = """<ir_version: 9, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y) { y = Neg (x) }"""
SEQUENCE = """<ir_version: 9, opset_import: ["" : 17]>
g (seq(float[2]) xs, float[2] y) => (seq(float[2]) zs, int64 n) { zs = SequenceInsert (xs, y)
  n = SequenceLength (zs) }"""
WORDS = """<ir_version: 10, opset_import: ["" : 20]> g (string[n] x, string[n] y) => (string[n] z) {
  z = StringConcat (x, y) }"""
RANDOM = """<ir_version: 9, opset_import: ["" : 17]>
g (float[1, 64] x) => (float[1, 64] y, float[1, 64] z, float[1, 64] s) {
  y = RandomNormalLike (x)
  z = Bernoulli (x)
  s = RandomUniformLike <seed = 3.0> (x) }"""
ROW = np.float32([1, 2, 3])
FEED = {"x": np.ones((2, 3), np.float32), "y": ROW}


def _model(text: str = TEXT) -> bytes:
    content: bytes = onnx.parser.parse_model(text).SerializeToString()
    return content


def _session(text: str = TEXT, **choices: Any) -> onert.InferenceSession:
    return onert.InferenceSession(_model(text), **choices)


@pytest.mark.parametrize("text", [TEXT, STATIC, SEQUENCE, WORDS], ids=["open", "static", "sequence", "words"])
def test_inputs_and_outputs_are_described_as_in_onnx_runtime(text: str) -> None:
    peer = pytest.importorskip("onnxruntime").InferenceSession(_model(text))
    mine = _session(text)
    for ours, theirs in ((mine.get_inputs(), peer.get_inputs()), (mine.get_outputs(), peer.get_outputs())):
        assert [(a.name, a.type) for a in ours] == [(a.name, a.type) for a in theirs]
    if text not in (SEQUENCE,):  # ONNX Runtime reports no shape for a sequence
        assert [a.shape for a in mine.get_inputs()] == [a.shape for a in peer.get_inputs()]


def test_model_metadata_is_reported() -> None:
    said = _session().get_modelmeta()
    assert (said.producer_name, said.domain, said.description) == ("a writer", "org.example", "adds")
    assert (said.version, said.graph_name, said.custom_metadata_map) == (3, "sums", {})


def test_outputs_are_returned_in_the_requested_order() -> None:
    session = _session()
    shape, total = session.run(["shape", "total"], FEED)
    np.testing.assert_array_equal(shape, [2, 3])
    np.testing.assert_array_equal(total, [[2, 3, 4], [2, 3, 4]])
    np.testing.assert_array_equal(session.run(["shape"], {"x": [[1, 2, 3]], "y": [1, 2, 3]})[0], [1, 3])
    assert [len(r) for r in session.run(None, {**FEED, "x": np.zeros((5, 3), np.float32)})] == [5, 2]


@pytest.mark.parametrize(
    ("feed", "sentence"),
    [
        ({"x": FEED["x"]}, "Required inputs"),
        ({**FEED, "z": ROW}, "there is no input 'z'"),
        ({**FEED, "y": np.float64([1, 2, 3])}, "elements of float64"),
        ({**FEED, "y": np.float32([1, 2])}, r"shape \[2\]"),
        ({**FEED, "x": ROW}, r"shape \[3\]"),
    ],
)
def test_wrong_inputs_raise_value_error(feed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _session().run(None, feed)


def test_an_unknown_output_and_a_malformed_model_raise_value_error() -> None:
    with pytest.raises(ValueError, match="there is no output 'q'"):
        _session().run(["q"], FEED)
    with pytest.raises(ValueError, match="at byte"):
        onert.InferenceSession(_model()[:-3])


def test_bound_memory_is_read_and_written_in_place() -> None:
    session = _session(STATIC)
    x, y = np.ones((2, 3), np.float32), onert.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    bound = session.io_binding()
    bound.bind_input("x", "cpu", 0, np.float32, [2, 3], x.ctypes.data)
    bound.bind_ortvalue_output("y", y)
    address = y.data_ptr()
    for value in (1, 5):
        x[:] = value
        session.run_with_iobinding(bound)
        np.testing.assert_array_equal(y.numpy(), np.full((2, 3), -value))
    assert bound.get_outputs()[0].data_ptr() == address
    bound.clear_binding_outputs()
    bound.bind_output("y")
    session.run_with_iobinding(bound)
    (found,) = bound.copy_outputs_to_cpu()
    np.testing.assert_array_equal(found, np.full((2, 3), -5))


def test_a_binding_is_given_to_its_execution_once_until_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    session, given = _session(STATIC), list[object]()
    execution = session.new_execution()
    take = execution.set_input
    monkeypatch.setattr(execution, "set_input", lambda name, array: given.append(name) or take(name, array))
    monkeypatch.setattr(session, "new_execution", lambda: execution)
    x, other = (np.full((2, 3), value, np.float32) for value in (1, 9))
    y, z = (onert.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32) for _ in range(2))
    bound = session.io_binding()
    bound.bind_cpu_input("x", x)
    bound.bind_ortvalue_output("y", y)
    for value in (3, 5):
        x[:] = value
        session.run_with_iobinding(bound)
        np.testing.assert_array_equal(y.numpy(), -x)
    assert len(given) == 1
    bound.bind_cpu_input("x", other)
    session.run_with_iobinding(bound)
    np.testing.assert_array_equal(y.numpy(), -other)
    bound.bind_ortvalue_output("y", z)
    session.run_with_iobinding(bound)
    np.testing.assert_array_equal(z.numpy(), -other)
    assert len(given) == 3


def test_bindings_share_executions_unless_outputs_are_bound_to_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Applications make a binding for each run, for which making an execution would take too long."""
    session, made = _session(STATIC), list[object]()
    create = session.new_execution
    monkeypatch.setattr(session, "new_execution", lambda: made.append(None) or create())
    memory = onert.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    for value in range(1, 5):
        x = np.full((2, 3), value, np.float32)
        bound, written = session.io_binding(), session.io_binding()
        bound.bind_output("y")
        written.bind_ortvalue_output("y", memory)
        for each in (bound, written):
            each.bind_cpu_input("x", x)
            session.run_with_iobinding(each)
            np.testing.assert_array_equal(each.copy_outputs_to_cpu()[0], -x)
        np.testing.assert_array_equal(session.run(None, {"x": 2 * x})[0], -2 * x)
        np.testing.assert_array_equal(memory.numpy(), -x)
    assert len(made) == 5


def test_ort_values_can_be_inputs_and_outputs() -> None:
    x = onert.OrtValue.ortvalue_from_numpy(FEED["x"].copy())
    (total,) = _session().run_with_ort_values(["total"], {"x": x, "y": onert.OrtValue.ortvalue_from_numpy(ROW)})
    assert (total.shape(), total.data_type(), total.is_tensor()) == ([2, 3], "tensor(float)", True)
    x.update_inplace(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(x.numpy(), np.zeros((2, 3), np.float32))


def test_tensors_of_other_libraries_are_shared_through_dlpack() -> None:
    x = np.ones((2, 3), np.float32)
    value = onert.OrtValue.from_dlpack(x)
    assert value.data_ptr() == x.ctypes.data
    x[0] = 5
    np.testing.assert_array_equal(np.from_dlpack(value), x)
    with pytest.raises(TypeError, match="a value is created from a list"):
        onert.OrtValue.from_dlpack([1.0])


def test_a_process_wide_seed_makes_sessions_draw_equal_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "_PROCESS", seeds._Process())

    def drawn() -> list[Any]:
        session = _session(RANDOM)
        return [np.concatenate(session.run(None, {"x": np.full((1, 64), 0.5, np.float32)})) for _ in range(2)]

    (free, _), (other, _) = drawn(), drawn()
    assert np.all(free[2] == other[2])  # the model fixes the seed of this one
    assert not np.array_equal(free, other)
    onert.set_seed(7)
    first, again = drawn(), drawn()
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(*first)
    assert np.all(free[2] == first[0][2])
    onert.set_seed(8)
    assert not np.array_equal(drawn(), first)


def test_sequences_are_lists_and_string_tensors_hold_str() -> None:
    items, count = _session(SEQUENCE).run(None, {"xs": [np.float32([1, 2])], "y": np.float32([3, 4])})
    np.testing.assert_array_equal(np.stack(items), [[1, 2], [3, 4]])
    assert count == 2
    (words,) = _session(WORDS).run(None, {"x": np.array(["a", "ü"]), "y": np.array(["b", "c"], object)})
    assert words.tolist() == ["ab", "üc"]


def _ml_model(operator: str, given: Any, made: Any, **attributes: Any) -> bytes:
    helper = onnx.helper
    node = helper.make_node(operator, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], "g", [helper.make_value_info("x", given)], [helper.make_value_info("y", made)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    return content


def _map_type(key: int, value: int) -> Any:
    return onnx.helper.make_map_type_proto(key, onnx.helper.make_tensor_type_proto(value, []))


FLOAT, INT64, STRING = 1, 7, 8
NAMED = {STRING: {"classlabels_strings": ["a", "b", "c"]}, INT64: {"classlabels_int64s": [7, 5, 9]}}


@pytest.mark.parametrize("key", NAMED)
def test_named_scores_are_a_dictionary_for_each_row(key: int) -> None:
    rows = onnx.helper.make_tensor_type_proto(FLOAT, ["n", 3])
    made = onnx.helper.make_sequence_type_proto(_map_type(key, FLOAT))
    session = onert.InferenceSession(_ml_model("ZipMap", rows, made, **NAMED[key]))
    names = next(iter(NAMED[key].values()))
    x = np.float32([[1, 2.5, 3], [4, 5, 6]])
    assert session.run(None, {"x": x}) == [[dict(zip(names, row, strict=True)) for row in x.tolist()]]
    named = "string" if key == STRING else "int64"
    assert session.get_outputs()[0].type == f"seq(map({named},tensor(float)))"
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    (value,) = binding.get_outputs()
    assert value.data_type() == f"seq(map({named},tensor(float)))"


DICTIONARIES: dict[str, tuple[int, int, dict[str, Any], Any, list[Any]]] = {
    "words": (STRING, FLOAT, {"string_vocabulary": ["a", "b"]}, {"b": 2.0, "z": 1.0}, [0, 2]),
    "numbers": (INT64, FLOAT, {"int64_vocabulary": [3, 4, 5]}, {4: 2.5}, [0, 2.5, 0]),
    "dense": (INT64, FLOAT, {"cast_to": "TO_FLOAT"}, {9: 2.0, 1: 3.0}, [3, 2]),
    "sparse": (
        INT64,
        FLOAT,
        {"cast_to": "TO_INT64", "map_form": "SPARSE", "max_map": 4},
        {3: 2.0, 1: 3.0},
        [0, 3, 0, 2],
    ),
}


@pytest.mark.parametrize("name", DICTIONARIES)
def test_dictionaries_are_accepted_as_inputs(name: str) -> None:
    key, value, attributes, given, wanted = DICTIONARIES[name]
    operator = "DictVectorizer" if "cast_to" not in attributes else "CastMap"
    kind = INT64 if attributes.get("cast_to") == "TO_INT64" else value
    made = onnx.helper.make_tensor_type_proto(kind, [1, None])
    session = onert.InferenceSession(_ml_model(operator, _map_type(key, value), made, **attributes))
    assert session.run(None, {"x": given})[0].tolist() == [wanted]
    with pytest.raises(ValueError, match="a map is given as list, expected a dictionary"):
        session.run(None, {"x": [1.0]})


def test_asynchronous_runs_call_back() -> None:
    session = _session()
    told, ended = list[Any](), threading.Event()

    def callback(outputs: list[Any], data: Any, error: str) -> None:
        told.extend((outputs, data, error))
        ended.set()

    session.run_async(["total"], FEED, callback, "mine")
    assert ended.wait(PATIENCE)
    (total,), data, error = told
    assert total.tolist() == [[2, 3, 4]] * 2
    assert (data, error) == ("mine", "")
    with pytest.raises(ValueError, match="there is no output 'none'"):
        session.run_async(["none"], FEED, callback)


def test_the_error_for_a_missing_file_names_it() -> None:
    with pytest.raises(ValueError, match=r"missing\.onnx"):
        onert.InferenceSession("missing.onnx")


def test_options_take_effect_or_emit_a_warning(tmp_path: Path) -> None:
    choices = onert.SessionOptions()
    choices.intra_op_num_threads = 1
    choices.graph_optimization_level = onert.GraphOptimizationLevel.ORT_DISABLE_ALL
    choices.add_free_dimension_override_by_name("batch", 4)
    choices.add_session_config_entry("session.intra_op.allow_spinning", "0")
    choices.enable_profiling = True
    choices.profile_file_prefix = str(tmp_path / "trace_")
    with pytest.warns(onert.OnertWarning, match="CUDAExecutionProvider"):
        session = _session(sess_options=choices, providers=["CUDAExecutionProvider"])
    assert session.get_providers() == onert.get_available_providers() == ["CPUExecutionProvider"]
    (total,) = session.run(["total"], {"x": np.zeros((4, 3), np.float32), "y": ROW})
    np.testing.assert_array_equal(total, [ROW] * 4)
    assert Path(session.end_profiling()).stat().st_size


def test_threads_can_share_a_session() -> None:
    session = _session()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: session.run(["total"], {**FEED, "y": ROW * n})[0][0], range(40)))
    np.testing.assert_array_equal(found, [1 + ROW * n for n in range(40)])


def test_the_onnx_backend_interface_prepares_and_runs_models() -> None:
    prepared = Backend.prepare(onnx.parser.parse_model(STATIC))
    np.testing.assert_array_equal(prepared.run([np.ones((2, 3), np.float32)])[0], -np.ones((2, 3)))
    assert Backend.supports_device("CPU")
    assert not Backend.supports_device("CUDA")
