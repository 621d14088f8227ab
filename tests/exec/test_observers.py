"""Observers: what they report is true, and observing changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from threading import current_thread
from typing import Any

import numpy as np
import pytest
from compiler.test_program import everything, graphs, numbers
from compiler.test_program import program as toy_program
from compiler.toy import Draft, ToyAdd, ToyBackend, ToyScale, ToyVeil
from hypothesis import HealthCheck, given, settings
from shared_material import REPOSITORY, SHARED, needs_shared

import onert
from onert.exec import Execution
from onert.exec.observers import MemoryTimeline, MinMax, Observer, Profile, Trace, Work
from onert.ir import ExecutionError, Subgraph
from onert.ir.shape import static

from .slow import branches, chain, compiled, failing, sleeping

ONES = np.ones(4, np.float32)
DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"


def check_trace(trace: dict[str, Any]) -> dict[str, list[str]]:
    """Check what readers of the Trace Event Format require; return the names of begun slices by thread name."""
    assert trace["displayTimeUnit"] == "ms"
    events = trace["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert any(e["ph"] == "M" and e["name"] == "process_name" for e in events)
    stacks: dict[tuple[int, int], list[str]] = {}
    last: dict[tuple[int, int], float] = {}
    begun: dict[str, list[str]] = {}
    for event in events:
        assert event["ph"] in ("M", "B", "E", "C")
        if event["ph"] == "M":
            continue
        assert isinstance(event["ts"], float | int)
        assert event["ts"] >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, int) for value in event["args"].values())
            continue
        key = (event["pid"], event["tid"])
        assert key in names
        assert event["ts"] >= last.get(key, 0.0)
        last[key] = event["ts"]
        if event["ph"] == "B":
            stacks.setdefault(key, []).append(event["name"])
            begun.setdefault(names[key], []).append(event["name"])
        else:
            assert stacks[key].pop() == event["name"]
    assert not any(stacks.values())
    return begun


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_observed_runs_give_the_same_bits(graph: Subgraph) -> None:
    inputs = [numbers(*(d or 0 for d in graph.type(i).shape), seed=i) for i in graph.inputs]
    for executor in ("Linear", "Dataflow", "Parallel"):
        program = toy_program(graph, everything(), executor=executor, num_threads=3)
        trace, memory = Trace(), MemoryTimeline()
        plain, watched = Execution(program), Execution(program, observers=(trace, Profile(), memory, MinMax()))
        for _ in range(2):
            expected, got = plain.run(inputs), watched.run(inputs)
            assert {k: v.tobytes() for k, v in got.items()} == {k: v.tobytes() for k, v in expected.items()}
        check_trace(json.loads(json.dumps({"traceEvents": trace.events(), "displayTimeUnit": "ms"})))
        for space, plan in program.memory_plan.items():
            assert memory.peaks.get(space, 0) <= plan.size


def test_without_observers_kernels_are_called_directly() -> None:
    program = onert.compile(onert.load(DIGITS), num_threads=1)
    plain, watched = Execution(program), Execution(program, observers=(Profile(),))
    assert type(plain._frame.calls[0]).__module__.startswith("onert_llvm")
    assert not type(watched._frame.calls[0]).__module__.startswith("onert_llvm")


def test_a_trace_names_threads_operations_and_runs(tmp_path: Path) -> None:
    program = compiled(branches(2, length=2), sleeping(0.002), "Parallel")
    path = tmp_path / "made" / "trace.json"
    with Execution(program, observers=(Trace(path),)) as execution:
        for _ in range(3):
            execution.run([ONES])
    begun = check_trace(json.loads(path.read_text()))
    assert [name for name in begun[current_thread().name] if name.startswith("run")] == ["run 0", "run 1", "run 2"]
    assert sorted(name for names in begun.values() for name in names if "Scale" in name) == sorted(
        3 * [f"operation {i} ToyScale" for i in range(4)]
    )


def test_the_trace_of_a_failed_run_is_complete_and_contains_the_error() -> None:
    trace = Trace()
    execution = Execution(compiled(branches(2, factor=12.0), failing, "Parallel"), observers=(trace,))
    with pytest.raises(ExecutionError, match="thirteen"):
        execution.run([ONES])
    events = trace.events()
    check_trace({"traceEvents": events, "displayTimeUnit": "ms"})
    assert [e["args"]["error"] for e in events if e.get("args", {}).get("error")] == ["thirteen"]


def test_a_profile_counts_every_operation_once_per_run_on_every_backend() -> None:
    package = onert.load(DIGITS)
    for backend in ("llvm", "reference"):
        program = onert.compile(package, backends=(backend,), num_threads=2)
        profile = Profile()
        execution = Execution(program, observers=(profile,))
        for _ in range(4):
            execution.run([np.zeros(program.inputs[0].type.shape, np.float32)])
        rows = profile.rows
        assert {row.runs for row in rows} == {4}
        assert abs(sum(row.share for row in rows) - 1) < 1e-6
        assert sum(len(row.label.split(" + ")) for row in rows) >= 4
        assert max(row.flops for row in rows) > 10_000
        assert all(row.gflops >= 0 and row.nbytes > 0 for row in rows)


def test_the_flops_of_a_convolution_follow_its_formula() -> None:
    program = onert.compile(onert.load(DIGITS), backends=("reference",))
    profile = Profile()
    Execution(program, observers=(profile,)).run([np.zeros(program.inputs[0].type.shape, np.float32)])
    subgraph = program.main.subgraph
    for row in profile.rows:
        operation = next(o for o in subgraph.operations if str(o) == row.label)
        if operation.op.name() == "Conv2D":
            weight, out = (static(subgraph.type(i).shape) for i in (operation.used[1], operation.outputs[0]))
            assert row.flops == 2 * int(np.prod(out)) * int(np.prod(weight[1:]))


def test_the_memory_timeline_of_a_linear_run_peaks_at_the_lower_bound() -> None:
    for backend in ("llvm", "reference"):
        program = onert.compile(onert.load(DIGITS), backends=(backend,), num_threads=1)
        memory = MemoryTimeline()
        execution = Execution(program, observers=(memory,))
        for _ in range(2):
            execution.run([np.zeros(program.inputs[0].type.shape, np.float32)])
        assert memory.peaks == {"host": program.memory_plan["host"].lower_bound}
        assert memory.samples[-1].nbytes == 0
        times = [sample.time for sample in memory.samples]
        assert times == sorted(times)


@needs_shared
@pytest.mark.parametrize("name", ["yamnet_audio_classifier_with_metadata", "nmp", "kws_ref_model", "face_landmark"])
def test_real_models_use_as_much_memory_as_planned(name: str) -> None:
    program = onert.compile(onert.load(next((SHARED / "models").rglob(f"{name}.tflite"))), num_threads=1)
    memory, profile = MemoryTimeline(), Profile()
    execution = Execution(program, observers=(memory, profile))
    execution.run([np.zeros([d or 1 for d in info.shape], info.dtype.numpy) for info in program.inputs])
    assert memory.peaks == {"host": program.memory_plan["host"].lower_bound}
    assert {row.runs for row in profile.rows} == {1}


def test_dynamic_tensors_count_with_their_actual_bytes() -> None:
    d = Draft()
    x = d.input(4, name="x")
    graph = d.graph(d.op(ToyScale(2.0), d.op(ToyVeil(), x)))
    memory = MemoryTimeline()
    Execution(toy_program(graph, [ToyBackend("reference")]), observers=(memory,)).run([ONES])
    assert memory.peaks == {"host": 16}


def test_ranges_of_tensors_cover_all_runs(tmp_path: Path) -> None:
    d = Draft()
    x, y = d.input(4, name="x"), d.input(4, name="y")
    graph = d.graph(d.op(ToyAdd(), d.op(ToyScale(-2.0), x), y))
    path = tmp_path / "minmax.json"
    ranges = MinMax(path)
    execution = Execution(toy_program(graph, [ToyBackend("one", single=True)], optimize=False), observers=(ranges,))
    execution.run([np.array([1, 2, 3, np.nan], np.float32), np.zeros(4, np.float32)])
    execution.run([np.array([-1, 0, 0, np.inf], np.float32), np.ones(4, np.float32)])
    execution.close()
    found = json.loads(path.read_text())
    assert found["x"] == {"min": -1.0, "max": 3.0, "runs": 2}
    assert found["t2"] == {"min": -6.0, "max": 2.0, "runs": 2}
    assert found["y"] == {"min": 0.0, "max": 1.0, "runs": 2}


def test_an_observer_may_be_a_user_defined_class() -> None:
    seen: list[str] = []

    class Noting(Observer):
        def begins(self, work: Work, tensors: Any) -> None:
            seen.append(f"{work.backend} {work.label}")

    Execution(compiled(chain(2.0, 3.0), sleeping(0)), observers=(Noting(),)).run([ONES])
    assert seen == ["slow operation 0 ToyScale", "slow operation 1 ToyScale"]


def test_the_environment_enables_recordings_in_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONERT_TRACING_MODE", "1")
    monkeypatch.setenv("ONERT_MINMAX_DUMP", "1")
    monkeypatch.setenv("ONERT_WORKSPACE_DIR", str(tmp_path / "work"))
    program = onert.compile(onert.load(DIGITS))
    with Execution(program) as execution:
        execution.run([np.zeros(program.inputs[0].type.shape, np.float32)])
    check_trace(json.loads((tmp_path / "work" / "trace.chrome.json").read_text()))
    assert "GFLOP/s" in (tmp_path / "work" / "trace.table.md").read_text()
    assert program.inputs[0].name in json.loads((tmp_path / "work" / "minmax.json").read_text())


def test_a_trace_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    execution = Execution(compiled(chain(2.0), sleeping(0)), observers=(Trace(tmp_path / "file" / "trace.json"),))
    with pytest.raises(ExecutionError, match="the trace cannot be written to "):
        execution.close()
