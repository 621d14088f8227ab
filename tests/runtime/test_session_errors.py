"""Errors, options and names that applications of ONNX Runtime use, compared with ONNX Runtime's own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onert

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")

X = np.ones((2, 3), np.float32)
HEAD = '<ir_version: 9, opset_import: ["" : 17, "org.example" : 1]> g '
NEG = HEAD + "(float[2, 3] x) => (float[2, 3] y) { y = Neg (x) }"
GATHER = HEAD + "(float[2, 3] x, int64[n] i) => (float[n, 3] y) { y = Gather (x, i) }"
RESHAPE = HEAD + "(float[2, 3] x, int64[1] i) => (float[n] y) { y = Reshape (x, i) }"
SUMMED = HEAD + "(float[2, 3] x) => (float[2, 3] y) <float[3] w = {1, 2, 3}> { y = Add (x, w) }"


def _model(text: str) -> bytes:
    content: bytes = onnx.parser.parse_model(text).SerializeToString()
    return content


def _raised(package: Any, call: Callable[[Any], object]) -> BaseException:
    with pytest.raises(Exception) as found:  # noqa: PT011 # which one it is is what tests ask
        call(package)
    return found.value


FAULTS: list[tuple[str, str, Callable[[Any], object]]] = [
    ("no file", "NoSuchFile", lambda rt: rt.InferenceSession("/nowhere/model.onnx")),
    ("no model", "InvalidProtobuf", lambda rt: rt.InferenceSession(b"junk")),
    ("no operator", "InvalidGraph", lambda rt: rt.InferenceSession(_model(NEG.replace("Neg", "Nope")))),
    ("no path", "TypeError", lambda rt: rt.InferenceSession(5)),
    ("no input", "ValueError", lambda rt: rt.InferenceSession(_model(NEG)).run(None, {})),
    ("another input", "InvalidArgument", lambda rt: rt.InferenceSession(_model(NEG)).run(None, {"x": X, "z": X})),
    ("another output", "InvalidArgument", lambda rt: rt.InferenceSession(_model(NEG)).run(["z"], {"x": X})),
    ("another type", "InvalidArgument", lambda rt: rt.InferenceSession(_model(NEG)).run(None, {"x": X.astype(float)})),
    ("another rank", "InvalidArgument", lambda rt: rt.InferenceSession(_model(NEG)).run(None, {"x": X[0]})),
    ("another shape", "InvalidArgument", lambda rt: rt.InferenceSession(_model(NEG)).run(None, {"x": X[:1]})),
    ("no such size", "Fail", lambda rt: rt.InferenceSession(_model(RESHAPE)).run(None, {"x": X, "i": np.array([5])})),
    ("terminated", "Fail", lambda rt: rt.InferenceSession(_model(NEG)).run(None, {"x": X}, _terminated(rt))),
]


def _terminated(package: Any) -> Any:
    options = package.RunOptions()
    options.terminate = True
    return options


@pytest.mark.parametrize(("name", "call"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_errors_can_be_caught_by_onnx_runtime_s_names(name: str, call: Callable[[Any], object]) -> None:
    peer = pytest.importorskip("onnxruntime")
    peer.set_default_logger_severity(4)
    mine, theirs = _raised(onert, call), _raised(peer, call)
    assert type(theirs).__name__ == name
    assert name in [kind.__name__ for kind in type(mine).__mro__]
    assert isinstance(mine, onert.OnertError) or name == "TypeError"


def test_a_model_that_does_not_compile_raises_onnx_runtime_s_not_implemented_and_onert_s_error() -> None:
    large = NEG.replace("2, 3", "1000000, 1000000")
    with pytest.raises(onert.OnertError, match="max_memory") as found:
        onert.InferenceSession(_model(large))
    assert type(found.value).__name__ == "NotImplemented"


@pytest.mark.parametrize("options", [onert.SessionOptions(), onert.RunOptions()], ids=lambda o: type(o).__name__)
def test_a_configuration_entry_that_was_not_added_is_an_error_of_onert(options: Any) -> None:
    kind = "run" if isinstance(options, onert.RunOptions) else "session"
    getattr(options, f"add_{kind}_config_entry")("key", "value")
    assert getattr(options, f"get_{kind}_config_entry")("key") == "value"
    with pytest.raises(onert.OnertError, match="no configuration entry 'other'"):
        getattr(options, f"get_{kind}_config_entry")("other")


@pytest.mark.parametrize("feed", [None, [X], X], ids=["nothing", "a list", "an array"])
def test_inputs_without_names_are_refused_with_a_sentence(feed: Any) -> None:
    with pytest.raises(onert.OnertError, match=f"is given a {type(feed).__name__} as inputs, expected a dictionary"):
        onert.InferenceSession(_model(NEG)).run(None, feed)


def test_errors_can_be_imported_from_onnx_runtime_s_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    for loaded in [one for one in sys.modules if one.split(".")[0] == "onnxruntime"]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, "onnxruntime", onert)
    state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    other = importlib.import_module("onnxruntime.capi._pybind_state")
    names = ("EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoModel")
    for name in (*names, "NoSuchFile", "NotImplemented", "RuntimeException"):
        assert issubclass(getattr(state, name), onert.OnertError)
        assert getattr(other, name).__name__ == name
    with pytest.raises(state.NoSuchFile):
        onert.InferenceSession("nowhere.onnx")
    for loaded in [one for one in sys.modules if one.startswith("onnxruntime.")]:
        monkeypatch.delitem(sys.modules, loaded)


USED = {
    "": "InferenceSession SessionOptions RunOptions OrtValue IOBinding GraphOptimizationLevel ExecutionMode "
    "get_available_providers get_all_providers get_device set_default_logger_severity disable_telemetry_events "
    "__version__ __path__",
    "InferenceSession": "run run_with_iobinding run_with_ort_values run_async io_binding get_inputs get_outputs "
    "get_providers set_providers get_provider_options get_modelmeta get_session_options end_profiling "
    "disable_fallback enable_fallback get_overridable_initializers get_profiling_start_time_ns",
    "SessionOptions": "add_free_dimension_override_by_name add_session_config_entry get_session_config_entry "
    "add_initializer add_external_initializers register_custom_ops_library add_provider has_providers",
    "RunOptions": "add_run_config_entry get_run_config_entry",
    "IOBinding": "bind_input bind_output bind_cpu_input bind_ortvalue_input bind_ortvalue_output get_outputs "
    "copy_outputs_to_cpu synchronize_inputs synchronize_outputs clear_binding_inputs clear_binding_outputs",
    "OrtValue": "ortvalue_from_numpy ortvalue_from_shape_and_type ortvalue_from_numpy_with_onnx_type numpy shape "
    "data_ptr data_type device_name element_type has_value is_tensor is_tensor_sequence update_inplace",
}
"""Names used by rapidocr, magika, openwakeword, silero-vad, faster-whisper, fastembed, insightface, kokoro-onnx,
nudenet, onnx-asr, optimum-onnx, piper-tts, rembg and rtmlib, and others from ONNX Runtime's documentation."""


@pytest.mark.parametrize("owner", USED)
def test_names_used_by_applications_exist_here_and_in_onnx_runtime(owner: str) -> None:
    peer = pytest.importorskip("onnxruntime")
    for package in (onert, peer):
        found = getattr(package, owner) if owner else package
        assert [name for name in USED[owner].split() if not hasattr(found, name)] == []


@pytest.mark.parametrize("external", [False, True])
def test_an_initializer_may_be_overridden_by_the_caller(external: bool) -> None:
    options = onert.SessionOptions()
    value = onert.OrtValue.ortvalue_from_numpy(np.float32([10, 20, 30]))
    if external:
        options.add_external_initializers(["w"], [value])
    else:
        options.add_initializer("w", value)
    (found,) = onert.InferenceSession(_model(SUMMED), options).run(None, {"x": X})
    np.testing.assert_array_equal(found, X + np.float32([10, 20, 30]))
    (before,) = onert.InferenceSession(_model(SUMMED)).run(None, {"x": X})
    np.testing.assert_array_equal(before, X + np.float32([1, 2, 3]))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("v", np.zeros(3, np.float32), "no initializer 'v'"),
        ("w", np.zeros(4, np.float32), r"given float32\[4\], expected f32\[3\]"),
        ("w", np.zeros(3, np.int32), "given int32"),
    ],
)
def test_a_mismatched_initializer_is_refused(name: str, value: Any, sentence: str) -> None:
    options = onert.SessionOptions()
    options.add_initializer(name, onert.OrtValue.ortvalue_from_numpy(value))
    with pytest.raises(ValueError, match=sentence):
        onert.InferenceSession(_model(SUMMED), options)


def test_external_data_of_a_missing_file_may_be_supplied(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(SUMMED)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.zeros(3, np.float32), "w"))
    onnx.save_model(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    (tmp_path / "m.bin").unlink()
    options = onert.SessionOptions()
    options.add_external_initializers(["w"], [onert.OrtValue.ortvalue_from_numpy(np.float32([7, 8, 9]))])
    (found,) = onert.InferenceSession(tmp_path / "m.onnx", options).run(None, {"x": X})
    np.testing.assert_array_equal(found, X + np.float32([7, 8, 9]))


def test_memory_may_be_reinterpreted_as_another_element_type() -> None:
    bits = np.uint16([0x3F80, 0x4000])
    value = onert.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    assert value.data_type() == "tensor(bfloat16)"
    np.testing.assert_array_equal(value.numpy().astype(np.float32), [1, 2])
    with pytest.raises(ValueError, match="differ in size"):
        onert.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 1)
