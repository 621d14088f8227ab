"""Traces of a host."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE

from host.dividing import layers
from host.gated import squares
from onert.host import ConfigurationError, DeviceConfig, HostError, HostManager, HostTrace, trace

X = np.ones((1, 16), np.float32)


@pytest.fixture
def recorded() -> HostTrace:
    """A trace of five requests to a pipeline of two partitions, and one request that fails."""
    with HostManager([DeviceConfig(threads=1)] * 2) as host:
        host.add_network("n", layers(16, 16, 16), parts=2)
        host.add_network("bad", squares())
        host.run_network_blocking("n", [X])
        host.start_trace()
        for _ in range(5):
            host.run_network("n", [X]).result(PATIENCE)
        host.devices[0].evict_network("bad")
        assert host.run_network("bad", [np.ones(3, np.float32)]).exception(PATIENCE)
        found = host.stop_trace()
        host.run_network_blocking("n", [X])
        return found


def test_a_trace_records_every_request_and_run_between_its_start_and_end(recorded: HostTrace) -> None:
    assert [span.network for span in recorded.spans] == ["n"] * 5 + ["bad"]
    assert [bool(span.error) for span in recorded.spans] == [False] * 5 + [True]
    assert len({span.number for span in recorded.spans}) == 6
    for part in ("0", "1"):
        runs = [each for each in recorded.slices if each.name == f"n/n_part{part}"]
        assert len(runs) == 5
        assert {(each.device, each.thread_name) for each in runs} == {(f"cpu{part}", f"cpu{part}")}
        for run, span in zip(runs, recorded.spans, strict=False):
            assert span.start <= run.start <= run.end <= span.end


def test_a_trace_names_processes_and_threads(recorded: HostTrace) -> None:
    events = recorded.events()
    names = {(e["name"], e["args"]["name"]) for e in events if e["ph"] == "M"}
    assert names == {("process_name", "onert host"), ("thread_name", "cpu0"), ("thread_name", "cpu1")}
    assert {e["pid"] for e in events} == {os.getpid()}
    phases = [e["ph"] for e in events]
    assert (phases.count("X"), phases.count("b"), phases.count("e")) == (10, 6, 6)
    assert min(e["ts"] for e in events if "ts" in e) == 0


def test_a_trace_is_written_as_one_json_object(recorded: HostTrace, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "trace.json"
    recorded.write(path)
    assert json.loads(path.read_text(encoding="utf-8"))["traceEvents"] == recorded.events()
    with pytest.raises(HostError, match=r"the trace cannot be written to .*folder: Is a directory"):
        recorded.write(tmp_path / "folder")


def test_a_caller_s_thread_that_runs_a_network_is_named_in_the_trace() -> None:
    with HostManager([DeviceConfig(threads=1)]) as host:
        host.add_network("n", squares())
        host.start_trace()
        host.run_network_blocking("n", [np.ones(3, np.float32)])
        (found,) = host.stop_trace().slices
        assert (found.thread_name, found.device) == ("MainThread", "cpu0")


def test_only_one_trace_can_be_recorded_at_a_time() -> None:
    with HostManager([DeviceConfig(threads=1)]) as host:
        with pytest.raises(ConfigurationError, match="is not recording a trace"):
            host.stop_trace()
        host.start_trace()
        with pytest.raises(ConfigurationError, match="is already recording a trace"):
            host.start_trace()
        assert list(host.stop_trace().spans) == []


def test_the_size_of_a_trace_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MOST_EVENTS", 10)
    with HostManager([DeviceConfig(threads=1)]) as host:
        host.add_network("n", squares())
        host.start_trace()
        for _ in range(30):
            host.run_network_blocking("n", [np.ones(3, np.float32)])
        found = host.stop_trace()
        assert (len(found.slices), len(found.spans)) == (10, 10)
