"""Real models reproduce the answers recorded for real images and sounds.

The records come from LiteRT's default delegate, whose integer arithmetic differs from its reference kernels by up to
0.055 on these very inputs. A probability of a quantised model is therefore accepted if it is within 0.01 of the record
or if it matches the reference kernels exactly.
"""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_material import SHARED, needs_shared

import onert

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

ENTRIES: list[dict[str, Any]] = json.loads((SHARED / "data" / "expected.json").read_text()) if SHARED.is_dir() else []


def entries(kind: str) -> Any:
    chosen = [e for e in ENTRIES if e["kind"] == kind]
    names = [f"{Path(e['model']).stem}-{Path(e['input']).stem}" for e in chosen]
    return pytest.mark.parametrize("entry", chosen, ids=names)


def execution(entry: dict[str, Any]) -> onert.Execution:
    return onert.Execution(onert.compile(onert.load(SHARED / entry["model"])))


def is_reference(entry: dict[str, Any], run: onert.Execution, inputs: list[np.ndarray[Any, Any]]) -> bool:
    """Whether the run's outputs match LiteRT's reference kernels: integers exactly, floats to the last bits."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    interpreter = litert.Interpreter(
        model_path=str(SHARED / entry["model"]), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    for position, detail in enumerate(interpreter.get_output_details()):
        theirs, mine = interpreter.get_tensor(detail["index"]), run.get_output(position)
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6 if mine.dtype.kind == "f" else 0)
    return True


def image_input(run: onert.Execution, path: Path, unit: bool) -> np.ndarray[Any, Any]:
    """The image as it was for the recorded answers: resized bilinearly, then converted to the input's element type."""
    wanted = run.program.inputs[0]
    _, height, width, _ = wanted.shape
    image = Image.open(path).convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image)[None]
    if wanted.dtype.text == "u8":
        return pixels
    if wanted.dtype.text == "i8":
        return (pixels.astype(np.int16) - 128).astype(np.int8)
    return pixels.astype(np.float32) / 255 if unit else (pixels.astype(np.float32) - 127.5) / 127.5


def real(run: onert.Execution, position: int, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    quantization = run.program.outputs[position].quantization
    return array if quantization is None else (array.astype(np.float32) - quantization.zero_point) * quantization.scale


def run_image(
    entry: dict[str, Any], unit: bool = False
) -> tuple[onert.Execution, list[np.ndarray[Any, Any]], list[np.ndarray[Any, Any]]]:
    """The execution, its inputs, and its outputs as real numbers."""
    run = execution(entry)
    inputs = [image_input(run, SHARED / entry["input"], unit)]
    outputs = run.run(inputs)
    return run, inputs, [real(run, i, a) for i, a in enumerate(outputs.values())]


@needs_shared
@entries("classify")
def test_classifiers_match_the_record(entry: dict[str, Any]) -> None:
    # The float classifier's record was made with pixels from 0 to 1.
    run, inputs, (scores, *_) = run_image(entry, unit=True)
    top = int(np.argmax(scores))
    label, probability, _ = entry["top3"][0]
    assert top == label
    assert abs(float(scores.reshape(-1)[top]) - probability) <= 0.01 or is_reference(entry, run, inputs)


@needs_shared
@entries("detect")
def test_detectors_match_the_record(entry: dict[str, Any]) -> None:
    run, inputs, (boxes, classes, scores, count) = run_image(entry)
    found = [
        (int(classes[0, i]), float(scores[0, i]), boxes[0, i]) for i in range(int(count[0])) if scores[0, i] >= 0.5
    ]
    expected = entry["detections"]
    same = [c for c, _, _ in found] == [c for c, _, _ in expected] and all(
        abs(score - expected_score) <= 0.01 and np.allclose(box, expected_box, rtol=0, atol=0.02)
        for (_, score, box), (_, expected_score, expected_box) in zip(found, expected, strict=True)
    )
    assert same or is_reference(entry, run, inputs)


@needs_shared
@entries("segment")
def test_segmentation_matches_the_record(entry: dict[str, Any]) -> None:
    _, _, (scores, *_) = run_image(entry)
    classes, counts = np.unique(np.argmax(scores[0], axis=-1), return_counts=True)
    found = dict(zip(classes.tolist(), counts.tolist(), strict=True))
    for label, pixels in entry["class_pixel_counts"]:
        assert abs(found.get(label, 0) - pixels) <= 0.002 * scores.shape[1] * scores.shape[2]


@needs_shared
@entries("pose")
def test_keypoints_match_the_record(entry: dict[str, Any]) -> None:
    run, inputs, (keypoints, *_) = run_image(entry)
    same = np.allclose(keypoints.reshape(-1, 3), entry["keypoints_yxs"], rtol=0, atol=0.02)
    assert same or is_reference(entry, run, inputs)


@needs_shared
@entries("audio")
def test_sound_classes_match_the_record(entry: dict[str, Any]) -> None:
    with wave.open(str(SHARED / entry["input"])) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16).astype(np.float32) / 32768
    run = execution(entry)
    (length,) = run.program.inputs[0].shape
    assert length is not None
    piece = samples[len(samples) // 3 :][:length]
    inputs = [np.pad(piece, (0, length - len(piece)))]
    (scores, *_) = run.run(inputs).values()
    (label, probability), *_ = entry["top3"]
    assert int(np.argmax(scores)) == label
    assert abs(float(np.max(scores)) - probability) <= 0.01 or is_reference(entry, run, inputs)


@needs_shared
@entries("mnist")
def test_as_many_digits_are_recognised_as_recorded(entry: dict[str, Any]) -> None:
    run = execution(entry)
    correct = 0
    paths = sorted(SHARED.glob(entry["input"]))
    for path in paths:
        pixels = np.asarray(Image.open(path).convert("L"), np.float32) / 255
        run.reset_variables()
        (scores, *_) = run.run([pixels[None]]).values()
        correct += int(np.argmax(scores)) == int(path.name[0])
    assert (correct, len(paths)) == (entry["correct"], entry["total"])
