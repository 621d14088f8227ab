"""Traces, profiles, memory plan pictures, graphs and measured times from the tools."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from exec.test_observers import check_trace
from shared_material import REPOSITORY

import onert
from onert.compiler.report.graphviz import dot
from onert.compiler.report.memory_plan_svg import HEIGHT, WIDTH, plan_svg
from onert.tools import inspect, run

DIGITS = REPOSITORY / "nnpackage/examples/digits_float"


@pytest.fixture(autouse=True)
def _in_a_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_run_writes_a_trace(tmp_path: Path) -> None:
    assert run.main([str(DIGITS), "--trace", "trace.json", "-r", "3"]) == 0
    begun = check_trace(json.loads((tmp_path / "trace.json").read_text()))
    names = [name for thread in begun.values() for name in thread]
    assert sum(name.startswith("run ") for name in names) == 3
    assert names.count("operation 0 CONV_2D") == 3


def test_run_prints_the_time_of_each_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(DIGITS), "--profile", "-r", "2"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^operation +backend +runs +us +share +flop +GFLOP/s +bytes +GB/s$", out, re.MULTILINE)
    assert re.search(r"^operation 0 CONV_2D +llvm +2 ", out, re.MULTILINE)


def test_failing_to_write_a_trace_gives_a_one_line_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    assert run.main([str(DIGITS), "--trace", "file/trace.json"]) == 1
    assert capsys.readouterr().err.startswith("onert_run: the trace cannot be written to file/trace.json")


def test_the_scheduler_uses_times_measured_by_profile_backends(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WORKSPACE_DIR", "measured")
    assert run.main([str(DIGITS), "--profile-backends"]) == 0
    assert "times are written to measured/exec_time.json" in capsys.readouterr().out
    tree = json.loads((tmp_path / "measured" / "exec_time.json").read_text())
    assert {"llvm", "reference"} <= tree.keys()
    assert all(len(record) == 2 for kinds in tree["reference"].values() for r in kinds.values() for record in r)
    monkeypatch.setenv("USE_SCHEDULER", "1")
    assert run.main([str(DIGITS), "-v", "1"]) == 0
    assert "by measured times a run takes" in capsys.readouterr().err


def test_the_scheduler_without_measurements_names_the_command_that_makes_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USE_SCHEDULER", "1")
    assert run.main([str(DIGITS)]) == 1
    assert "`onert_run --profile-backends` creates it" in capsys.readouterr().err


@pytest.mark.parametrize("executor", ["Linear", "Parallel"])
def test_the_picture_of_a_memory_plan_shows_every_tensor_in_its_place(tmp_path: Path, executor: str) -> None:
    assert inspect.main([str(DIGITS), "--plan", "--svg", "plan.svg", "--executor", executor]) == 0
    root = ElementTree.fromstring((tmp_path / "plan.svg").read_text())
    space = "{http://www.w3.org/2000/svg}"
    bars = [bar for bar in root.iter(f"{space}rect") if bar.get("class") == "tensor"]
    program = onert.compile(onert.load(DIGITS), executor=executor)
    plan = program.memory_plan["host"]
    assert len(bars) == len({place.root for place in plan.placements.values()})
    boxes = []
    for bar in bars:
        x, y, width, height = (float(bar.get(name) or 0) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= WIDTH
        assert 0 <= y <= y + height <= HEIGHT
        assert bar.find(f"{space}title") is not None
        boxes.append((x, y, x + width, y + height))
    for i, (ax, ay, bx, by) in enumerate(boxes):
        for cx, cy, dx, dy in boxes[:i]:  # tensors that are alive together do not overlap, so neither do their bars
            assert min(bx, dx) - max(ax, cx) < 0.1 or min(by, dy) - max(ay, cy) < 0.1


def test_names_in_a_picture_are_escaped() -> None:
    program = onert.compile(onert.load(DIGITS), backends=("reference",))
    picture = ElementTree.fromstring(plan_svg(program.main, program.memory_plan["host"], '<&"'))
    assert any('<&"' in text for text in picture.itertext())


def test_subgraphs_are_dumped_as_dot_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONERT_WORKSPACE_DIR", str(tmp_path / "dots"))
    for level, files in ((1, {"after_lower_subg-0.dot"}), (2, {"after_lower_subg-0.dot", "before_lower_subg-0.dot"})):
        monkeypatch.setenv("ONERT_GRAPH_DOT_DUMP", str(level))
        program = onert.compile(onert.load(DIGITS))
        assert {p.name for p in (tmp_path / "dots").iterdir()} == files
    text = (tmp_path / "dots" / "after_lower_subg-0.dot").read_text()
    assert text == dot(program.main.subgraph, program.main)
    assert text.count("{") == text.count("}")
    assert len(re.findall(r"^ +o\d+ \[label=", text, re.MULTILINE)) == len(program.main.subgraph.operations)
    assert len(re.findall(r"subgraph cluster_", text)) == len(program.main.steps)
    assert re.search(r'^  in0 -> o0 \[label="%\d+ f32\[1, 8, 8, 1\]"\];$', text, re.MULTILINE)


def test_profiling_mode_measures_and_then_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILING_MODE", "1")
    monkeypatch.setenv("USE_SCHEDULER", "1")
    assert run.main([str(DIGITS), "-v", "1"]) == 0
    captured = capsys.readouterr()
    assert "times are written to exec_time.json" in captured.out
    assert "MODEL_LOAD" in captured.out
    assert "by measured times a run takes" in captured.err
