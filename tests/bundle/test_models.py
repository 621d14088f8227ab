"""Trained models as bundles, on every machine: floats within 1e-5 of the range, integers as the reference backend."""

from __future__ import annotations

from pathlib import Path

import pytest
from shared_material import REPOSITORY, SHARED, needs_shared

import onert

from . import toys
from .machines import Machine, every_sound_machine, run, undefined
from .test_machines import LIBRARIES

OWN = ("digits_float", "digits_int8")
FOREIGN = (
    "google-coral/mobilenet_v1_0.5_160_quant",
    "mlperf-tiny/kws_ref_model",
    "mediapipe-git/face_landmark",
    "tflite-micro/trained_lstm",
    "generated-keras/cf_while_cond_fp32",
    "ocr_tflite/ocr_dr",
    "arm-ml-zoo/ds_cnn_quantized",
    "tflite-support/yamnet_audio_classifier_with_metadata",
    "lyra/lyragan",
    "esphome-mww/okay_nabu",
)


def _runs_alike(model: Path, machine: Machine, folder: Path) -> None:
    package = onert.load(model)
    files = onert.bundle(package, folder, name="model", target=machine.target, cpu=machine.cpu)
    program = onert.compile(package, backends=("reference",), num_threads=1)
    inputs = toys.random_inputs(program.inputs)
    code, outputs = run(machine, folder, inputs)
    assert code == 0
    for found, wanted in zip(outputs, onert.Execution(program).run(inputs).values(), strict=True):
        toys.require_close(found, wanted)
    if machine.target != "wasm32":
        assert undefined(machine, files.paths["o"]) <= LIBRARIES


@every_sound_machine
@pytest.mark.parametrize("name", OWN)
def test_the_shipped_packages_run_on_every_machine(tmp_path: Path, machine: Machine, name: str) -> None:
    _runs_alike(REPOSITORY / "nnpackage" / "examples" / name, machine, tmp_path)


@needs_shared
@every_sound_machine
@pytest.mark.parametrize("name", FOREIGN, ids=lambda n: n.partition("/")[2])
def test_models_of_others_run_on_every_machine(tmp_path: Path, machine: Machine, name: str) -> None:
    _runs_alike(SHARED / "models" / f"{name}.tflite", machine, tmp_path)
