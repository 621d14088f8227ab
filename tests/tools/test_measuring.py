"""The measuring programs run (their numbers are not checked), and expected times grow with the work."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from report_models import MACHINE
from shared_material import REPOSITORY

import onert
from onert.backend import Backend
from onert.backend.registry import load_backends
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.tools import bench
from onert.tools.model_report.times import machine
from onert.tools.model_report.times.estimate import expected
from onert_llvm import Llvm

BENCH = REPOSITORY / "tests" / "bench"


def output_of(*arguments: str) -> str:
    """The output of a program in `tests/bench`, which must succeed."""
    command = [sys.executable, str(BENCH / arguments[0]), *arguments[1:]]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("kind", [(), ("--int8",)], ids=["floats", "bytes"])
def test_the_kernel_benchmark_measures_kernels_of_every_kind(kind: tuple[str, ...]) -> None:
    rows = output_of("kernels.py", "--rounds", "1", "--only", "mobilenet_v2", *kind).splitlines()
    assert "peak" in rows[0]
    labels = " ".join(rows[1:])
    assert all(part in labels for part in ("12544x32x16", "3->32 3x3/2", "dw 3x3/1", "dw 3x3/2"))
    assert all(row.endswith("%") for row in rows[1:])


HELP = """
import contextlib, io, json, runpy, sys
for path in sys.argv[1:]:
    said = io.StringIO()
    sys.argv = [path, "--help"]
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        runpy.run_path(path, run_name="__main__")
    print(json.dumps(said.getvalue()))
"""
"""Prints the help of several programs in one process, so that what they import in common is imported once."""


def test_each_benchmark_program_prints_its_usage(subtests: pytest.Subtests) -> None:
    programs = sorted(each for each in BENCH.glob("*.py") if "__main__" in each.read_text(encoding="utf-8"))
    assert len(programs) > 20
    command = [sys.executable, "-c", HELP, *map(str, programs)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, cwd=BENCH).stdout.splitlines()
    for program, line in zip(programs, lines, strict=True):
        with subtests.test(program.name):
            assert json.loads(line).startswith(f"usage: {program.name}")


def test_a_machine_is_measured_without_a_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "SECONDS", 0.0)
    monkeypatch.setattr(machine, "LEAST", 1)
    assert bench.main(["--machine", "--threads", "1,2", "--json"]) == 0
    one, two = json.loads(capsys.readouterr().out)["machines"]
    assert (one["threads"], two["threads"]) == (1, 2)
    assert one["flops_per_second"].keys() == {"float32", "int8"}
    assert bench.main(["--machine"]) == 0
    assert "float32 products" in capsys.readouterr().out
    assert bench.main(["--keep", "model.tflite"]) == 2
    assert "--keep is given without --machine" in capsys.readouterr().err
    stored: list[Mapping[str, float]] = []
    monkeypatch.setattr(Backend, "calibrate", lambda backend, figures: bool(stored.append(figures)))
    monkeypatch.setattr(Llvm, "calibrate", lambda backend, figures: stored.append(figures) is None)
    assert bench.main(["--machine", "--keep"]) == 0
    assert "stored for llvm" in capsys.readouterr().err
    assert all(figures.keys() == {"float32", "int8", "outer"} for figures in stored)
    assert bench.main(["--machine", "model.tflite"]) == 2
    assert "--machine and MODEL are both given, expected one" in capsys.readouterr().err


def test_only_data_and_unified_caches_are_read_from_the_system(tmp_path: Path) -> None:
    listed = {"index0": "1 Data 48K", "index1": "1 Instruction 32K", "index2": "2 Unified 2M", "index3": "x Unified ?"}
    for name, facts in listed.items():
        (tmp_path / name).mkdir()
        for file, fact in zip(("level", "type", "size"), facts.split(), strict=True):
            (tmp_path / name / file).write_text(f"{fact}\n")
    (tmp_path / "index4").mkdir()
    assert machine.caches(tmp_path) == {"1": 48 << 10, "2": 2 << 20}
    assert machine.caches(tmp_path / "none") == {}


# ---- estimates without measuring

EXPECTED = (
    (lambda: convolution(64, 64), lambda: convolution(128, 128), "four times the products"),
    (lambda: convolution(64, 16), lambda: convolution(64, 64), "four times the channels that are given"),
    (lambda: elementwise(UnaryKind.RELU), lambda: elementwise(UnaryKind.ERF), "a function that takes longer"),
)


def convolution(stored: int, result_channels: int) -> Package:
    b = Builder("made")
    x = b.input(TensorType(DType.FLOAT32, (1, 32, 32, stored)), "x")
    weight = b.constant(np.ones((result_channels, 3, 3, stored), np.float32))
    return Package((b.model([b.add(Conv2D(), x, weight, None)]),), "made")


def elementwise(kind: UnaryKind) -> Package:
    b = Builder("made")
    x = b.input(TensorType(DType.FLOAT32, (64, 1024)), "x")
    return Package((b.model([b.add(Unary(kind), x)]),), "made")


@pytest.mark.parametrize(("less", "more", "why"), EXPECTED, ids=[why for *_, why in EXPECTED])
def test_more_work_is_expected_to_take_longer(
    less: Callable[[], Package], more: Callable[[], Package], why: str
) -> None:
    times = []
    for package in (less(), more()):
        program = onert.compile(package, num_threads=1)
        times.append(sum(sum(expected(r, load_backends(()), MACHINE)) for r in program.routines))
    assert 0 < 1.2 * times[0] < times[1], why
