"""`onert_run`, given only a model and pictures or sounds, prints and draws the recorded answers for real models."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_material import SHARED, needs_shared

from onert.tools import run

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

ENTRIES: list[dict[str, Any]] = json.loads((SHARED / "data" / "expected.json").read_text()) if SHARED.is_dir() else []
BY_MODEL: dict[str, list[dict[str, Any]]] = defaultdict(list)
for each in ENTRIES:
    BY_MODEL[each["model"]].append(each)
TASKS = {"classify": "classes", "mnist": "classes", "audio": "classes", "detect": "detection", "pose": "keypoints"}


def _matches(entry: dict[str, Any], found: list[dict[str, Any]]) -> bool:
    """Whether an answer matches the recorded one, up to differences by resizing and rounding."""
    kind = entry["kind"]
    if kind in ("classify", "audio"):
        index, _, *label = entry["top3"][0]
        best = found[0]
        return best["class"] == index and best["label"] in ("", *(label if label and label[0] else [best["label"]]))
    if kind == "detect":
        sure = [one for one in found if one["score"] >= 0.53]
        expected = [one for one in entry["detections"] if one[1] >= 0.53]
        return [one["class"] for one in sure] == [index for index, _, _ in expected] and all(
            np.allclose(one["box"], box, atol=0.03) for one, (_, _, box) in zip(sure, expected, strict=True)
        )
    if kind == "segment":
        pixels = {one["class"]: one["pixels"] for one in found}
        return all(
            abs(pixels.get(index, 0) - count) <= 0.002 * 257 * 257 for index, count in entry["class_pixel_counts"]
        )
    points = [[one[0], one[1]] for one in entry["keypoints_yxs"]]
    sure = [at for at, one in enumerate(entry["keypoints_yxs"]) if one[2] > 0.5]
    read = [found[0]["points"][at][:2] for at in sure]
    return bool(np.allclose(read, [points[at] for at in sure], atol=0.03))


@needs_shared
@pytest.mark.parametrize("model", BY_MODEL, ids=lambda name: Path(name).stem)
def test_a_real_model_given_only_files_prints_and_draws_the_recorded_answers(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = BY_MODEL[model]
    files = [str(file) for entry in entries for file in sorted(SHARED.glob(entry["input"]))]
    is_sound = entries[0]["kind"] == "audio"
    for group in [[file] for file in files] if is_sound else [files]:
        words = [word for file in group for word in ("--input", file)]
        show = [] if is_sound else ["--show", str(tmp_path / "shown")]
        assert run.main([str(SHARED / model), *words, *show, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        items = printed.get("items") or [{"source": group[0], "topk": printed["topk"]}]
        found = [item["topk"] for item in items if item["topk"] or not is_sound]
        assert printed["task"] == TASKS.get(entries[0]["kind"], "segmentation")
        if entries[0]["kind"] == "mnist":
            assert [each[0]["class"] for each in found] == list(range(10))
            break
        if "metadata" in model or "google-coral" in model:
            assert all(one["label"] for each in found for one in each if entries[0]["kind"] in ("classify", "audio"))
        own = [entry for entry in entries if str(SHARED / entry["input"]) in group]
        assert [_matches(entry, each) for entry, each in zip(own, found, strict=True)] == [True] * len(own)
    drawn = [] if is_sound else sorted((tmp_path / "shown").glob("*.png"))
    assert len(drawn) == (0 if is_sound else len(files))
    for file in drawn:
        with Image.open(file) as image:
            assert max(image.size) >= 640


@needs_shared
def test_the_readme_s_detector_finds_a_face_and_draws_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, photo = SHARED / "models/onnx/nudenet-3.4.2__320n.onnx", SHARED / "data/coral/grace_hopper.bmp"
    assert run.main([str(model), "--input", str(photo), "--show", str(tmp_path / "out.png")]) == 0
    printed = capsys.readouterr().out
    assert "is read as a YOLO head of 2100 predictions, 1 per cell" in printed
    assert "FACE_FEMALE  box 0.2" in printed
    with Image.open(tmp_path / "out.png") as drawn, Image.open(photo) as original:
        large = np.asarray(original.convert("RGB").resize(drawn.size))
        changed = np.abs(np.asarray(drawn.convert("RGB")).astype(int) - large).max(-1) > 120
    rows, columns = np.nonzero(changed)
    height, width = changed.shape
    assert 0.15 < rows.min() / height < 0.25
    assert 0.5 < rows.max() / height < 0.62
    assert 0.28 < columns.min() / width < 0.38
    assert 0.65 < columns.max() / width < 0.75
