"""Bundles on bare boards under emulation: start-up code of our own, unaligned access trapped, no library but what
docs/bundles.md names."""

from __future__ import annotations

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
"""Models of 16-bit integers, whose sums take doubles: these come from the compiler where a processor has none."""

MOST = dict.fromkeys(("m4", "m7", "m33", "m55"), 7_600_000)
"""What `kws_ref_model` takes on a Cortex-M4 by CMSIS-NN's kernels in TFLite Micro."""

FOREIGN = (
    "mlperf-tiny/kws_ref_model",
    "mlperf-tiny/model_ToyCar_quant",
    "tflite-micro/micro_speech_lstm",
    "tflite-micro/trained_lstm",
    "esphome-mww/okay_nabu",
    *DOUBLES,
)


def _runs_alike(package: Package, board: Board, folder: Path, doubles: bool = False) -> None:
    files = onert.bundle(package, folder, name="model", target=board.target, cpu=board.cpu)
    program = onert.compile(package, backends=("reference",), num_threads=1)
    inputs = toys.random_inputs(program.inputs)
    told = run(board, folder, inputs)
    assert told.code == 0
    for found, wanted in zip(told.outputs, onert.Execution(program).run(inputs).values(), strict=True):
        toys.require_close(found, wanted)
    undefined = set(call(board.compiler.replace("gcc", "nm"), "-u", files.paths["o"]).split()) - {"U"}
    assert undefined <= (RUNTIME[board.family] if doubles or not board.hard else set())


@on(BOARDS)
def test_a_quantised_model_runs(tmp_path: Path, board: Board) -> None:
    _runs_alike(onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_int8"), board, tmp_path)


@on(BOARDS)
def test_a_network_of_floats_runs(tmp_path: Path, board: Board) -> None:
    _runs_alike(toys.network(), board, tmp_path)


@pytest.mark.long
@on([board for board in BOARDS if board.ram[1] > 16])
@pytest.mark.parametrize("name", SMALL)
def test_small_quantised_models_run(tmp_path: Path, board: Board, name: str) -> None:
    (tmp_path / "given.tflite").write_bytes(SMALL[name]())
    _runs_alike(onert.load(tmp_path / "given.tflite"), board, tmp_path)


@pytest.mark.long
@needs_shared
@on([board for board in BOARDS if board.ram[1] > 16])
@pytest.mark.parametrize("name", FOREIGN, ids=lambda n: n.partition("/")[2])
def test_models_of_others_run(tmp_path: Path, board: Board, name: str) -> None:
    _runs_alike(onert.load(SHARED / "models" / f"{name}.tflite"), board, tmp_path, name in DOUBLES)


@pytest.mark.long
@needs_shared
@on([board for board in BOARDS if board.name in MOST])
def test_keywords_take_no_more_instructions_than_with_cmsis(tmp_path: Path, board: Board) -> None:
    assert counted(SHARED / "models" / "mlperf-tiny/kws_ref_model.tflite", board, tmp_path)[0] <= MOST[board.name]


@on(BOARDS)
def test_a_broken_rule_is_an_error_code(tmp_path: Path, board: Board) -> None:
    onert.bundle(toys.lookup(), tmp_path, target=board.target, cpu=board.cpu)
    assert run(board, tmp_path, [np.array([4, 3, 2, 9], np.int32)]).code == 1
