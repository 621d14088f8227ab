"""Bundles on emulated bare-metal boards: unaligned access traps, and only libraries in docs/bundles.md link."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY, SHARED, needs_shared

import onert
from onert.ir import Package

from . import toys
from .boards import BOARDS, RUNTIME, Board, on, run
from .instructions import counted
from .machines import call
from .small_models import SMALL

DOUBLES = frozenset({"arm-ml-zoo/ds_cnn_quantized"})
"""Int16 models, which sum in doubles; the compiler's library provides these where the processor has none."""

MOST = dict.fromkeys(("m4", "m7", "m33", "m55"), 7_600_000)
"""Instructions of `kws_ref_model` on a Cortex-M4 with TFLite Micro and CMSIS-NN's kernels."""

FOREIGN = (
    "mlperf-tiny/kws_ref_model",
    "mlperf-tiny/model_ToyCar_quant",
    "tflite-micro/micro_speech_lstm",
    "tflite-micro/trained_lstm",
    "esphome-mww/okay_nabu",
    *DOUBLES,
)


START = 128
"""An upper bound on the stack bytes used by a board's call and the compiler's library."""
CALLED = 256
"""Bytes that a call may use less than reported, on code paths that the inputs do not reach."""

BROKEN = [np.array([4, 3, 2, 9], np.int32)]
"""Indices, one of which is outside the table of `toys.lookup`."""


def _require_reference_results(
    models: Mapping[str, Package], board: Board, folder: Path, doubles: bool = False
) -> None:
    """Require that the models, in one image for the board, give the reference results, and `lookup` an error code."""
    bundled = {**models, "lookup": toys.lookup()}
    files = onert.bundle(bundled, folder, name="image", target=board.target, cpu=board.cpu, report=True)
    example = {name: toys.example(package) for name, package in models.items()}
    runs = run(board, folder, {**{name: inputs for name, (inputs, _) in example.items()}, "lookup": BROKEN})
    assert {name: result.code for name, result in runs.items()} == {**dict.fromkeys(models, 0), "lookup": 1}
    for name, (_, outputs) in example.items():
        for found, wanted in zip(runs[name].outputs, outputs, strict=True):
            toys.require_close(found, wanted)
    assert files.footprint is not None
    taken = max(result.stack for result in runs.values())
    assert taken - START <= files.footprint.stack <= taken + CALLED
    undefined = set(call(board.compiler.replace("gcc", "nm"), "-u", files.paths["o"]).split()) - {"U"}
    assert undefined <= (RUNTIME[board.family] if doubles or not board.hard else set())


@on(BOARDS)
def test_models_run_and_an_invalid_index_returns_an_error_code(tmp_path: Path, board: Board) -> None:
    digits = onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_int8")
    _require_reference_results({"digits": digits, "net": toys.network()}, board, tmp_path)


@pytest.mark.long
@on([board for board in BOARDS if board.ram[1] > 16])
def test_small_quantised_models_run(tmp_path: Path, board: Board) -> None:
    models = {}
    for name, make in SMALL.items():
        path = tmp_path / f"{name}.tflite"
        path.write_bytes(make())
        models[name.replace(" ", "_")] = onert.load(path)
    _require_reference_results(models, board, tmp_path)


@pytest.mark.long
@needs_shared
@on([board for board in BOARDS if board.ram[1] > 16])
@pytest.mark.parametrize("name", FOREIGN, ids=lambda n: n.partition("/")[2])
def test_shared_models_run(tmp_path: Path, board: Board, name: str) -> None:
    model = onert.load(SHARED / "models" / f"{name}.tflite")
    _require_reference_results({"model": model}, board, tmp_path, name in DOUBLES)


@needs_shared
@on([board for board in BOARDS if board.name in MOST])
def test_keyword_spotting_needs_no_more_instructions_than_with_cmsis_nn(tmp_path: Path, board: Board) -> None:
    assert counted(SHARED / "models" / "mlperf-tiny/kws_ref_model.tflite", board, tmp_path)[0] <= MOST[board.name]
