"""Trained models as bundles on every machine: floats within 1e-5 of the range, integers as the reference backend."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_material import SHARED, needs_shared

import onert
from onert.ir import Package

from . import toys
from .machines import HOST, Machine, every_sound_machine, needs_compiler, run, undefined
from .test_machines import LIBRARIES, LIGHT

Array = np.ndarray[Any, Any]

HERE_TOO = ("google-coral/mobilenet_v1_0.5_160_quant", "mediapipe-git/face_landmark", "ocr_tflite/ocr_dr")
"""Models that also run on the host in the default suite."""
MODELS = (
    *HERE_TOO,
    *LIGHT,
    "arm-ml-zoo/ds_cnn_quantized",
    "tflite-support/yamnet_audio_classifier_with_metadata",
    "lyra/lyragan",
    "esphome-mww/okay_nabu",
)


@cache
def _example(name: str) -> tuple[Package, list[Array], list[Array]]:
    """A model, inputs, and the reference backend's outputs."""
    package = onert.load(SHARED / "models" / f"{name}.tflite")
    return package, *toys.example(package)


def _require_reference_results(name: str, machine: Machine, folder: Path, cpu: str | None) -> None:
    package, inputs, wanted = _example(name)
    files = onert.bundle(package, folder, name="model", target=machine.target, cpu=cpu)
    code, outputs = run(machine, folder, inputs)
    assert code == 0
    for found, right in zip(outputs, wanted, strict=True):
        toys.require_close(found, right)
    if machine.target != "wasm32":
        assert undefined(machine, files.paths["o"]) <= LIBRARIES


@needs_shared
@needs_compiler
@pytest.mark.parametrize("name", HERE_TOO, ids=lambda n: n.partition("/")[2])
def test_shared_models_run_on_the_host(tmp_path: Path, name: str) -> None:
    _require_reference_results(name, HOST, tmp_path, "native")


@pytest.mark.long
@needs_shared
@every_sound_machine
@pytest.mark.parametrize("name", MODELS, ids=lambda n: n.partition("/")[2])
def test_shared_models_run_on_every_machine(tmp_path: Path, machine: Machine, name: str) -> None:
    _require_reference_results(name, machine, tmp_path, machine.cpu)
