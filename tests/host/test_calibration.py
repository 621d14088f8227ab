"""Run times measured on a host and used by simulations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from shared_material import REPOSITORY

import onert
from onert.host import ConfigurationError, DeviceConfig, HostManager, HostTrace
from onert.host.simulation import Station, Workload
from onert.host.simulation.calibration import FREE, Measurements, calibrate, read, write
from onert.host.simulation.events import Events
from onert.host.simulation.observed import observed
from onert.host.simulation.times import Times
from onert.host.trace import Slice
from onert.tools.host import main

DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_int8"
KEPT = Measurements({"n": (0.25, 0.5)}, {"n": (0, 1.5)}, 0.125, 0.0625)


def test_a_run_occupies_its_device_from_when_it_could_have_started() -> None:
    """Two devices, four requests: the first run starts late, the third waits, the fourth finds one idle."""
    with HostManager([DeviceConfig(threads=1) for _ in range(2)]) as host:
        dag = host.add_network("n", onert.load(DIGITS), copies=2)
    runs = [("a", 2, 4), ("b", 3, 7), ("a", 5, 8), ("b", 10, 11)]
    trace = HostTrace()
    for number, (came, (device, start, end)) in enumerate(zip((1, 3, 3, 10), runs, strict=True)):
        trace.slices.append(Slice(1, 1, "", start * 10**9, end * 10**9, "n", device))
        trace.answered(number, "n", came * 10**9, (end + 1) * 10**9, "")
    found = observed(trace, dag)
    assert found.kept["n"].tolist() == [3, 4, 4, 1]
    assert found.idle["n"].tolist() == [0, 2, 0, 3]
    assert found.latencies.tolist() == [4, 5, 6, 2]
    assert (found.came.tolist(), found.after, found.around) == ([0, 2, 2, 9], 1, 0.5)


def test_calibration_measures_every_partition() -> None:
    with HostManager([DeviceConfig(threads=1) for _ in range(2)], FREE) as host:
        dag = host.add_network("n", onert.load(DIGITS), parts=2)
        found = calibrate(host, "n", 0.05)
    assert found.seconds.keys() == {node.name for node in dag.nodes}
    assert all(times and min(times) > 0 for times in found.seconds.values())
    assert all(len(found.idle[name]) == len(times) for name, times in found.seconds.items())
    assert found.after > 0


def test_a_plan_can_be_measured_and_then_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "kept.json"
    text = (
        f'[[device]]\ncount = 2\nthreads = 1\n[[network]]\nmodel = "{DIGITS}"\nname = "n"\nrate = 100\nrequests = 50\n'
    )
    plan.write_text(text)
    assert main(["measure", str(plan), "--out", str(out), "--seconds", "0.05"]) == 0
    assert "occupied a device for" in capsys.readouterr().out
    plan.write_text(f'{text}kept = "kept.json"\nbatch = 2\n')
    assert main(["simulate", str(plan), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["networks"]
    assert found["answered"] == 50
    assert found["latency_p50"] >= min(read(out)["n"].seconds["n"])


def test_measured_times_survive_writing_and_reading(tmp_path: Path) -> None:
    write(tmp_path / "kept.json", {"n": KEPT})
    assert read(tmp_path / "kept.json") == {"n": KEPT}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"n": 1}',
        '{"n": {"seconds": {}, "idle": {}, "around": 0, "after": 0}}',
        '{"n": {"seconds": {"n": []}, "idle": {"n": []}, "around": 0, "after": 0}}',
        '{"n": {"seconds": {"n": ["1"]}, "idle": {"n": [0]}, "around": 0, "after": 0}}',
        '{"n": {"seconds": {"n": [NaN]}, "idle": {"n": [0]}, "around": 0, "after": 0}}',
        '{"n": {"seconds": {"n": [-1]}, "idle": {"n": [0]}, "around": 0, "after": 0}}',
        '{"n": {"seconds": {"n": [1]}, "idle": {"n": [-1]}, "around": 0, "after": 0}}',
        '{"n": {"seconds": {"n": [1]}, "idle": {"n": [0, 0]}, "around": 0, "after": 0}}',
        '{"n": {"seconds": {"n": [1]}, "around": 0, "after": 0}}',
        '{"n": {"seconds": {"n": [1]}, "idle": {"n": [0]}, "around": 0}}',
    ],
)
def test_malformed_files_of_times_are_rejected(text: str, tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"kept\.json"):
        read(tmp_path / "kept.json")


@pytest.mark.parametrize(
    ("more", "seconds", "message"),
    [
        ('kept = "none.json"', "1", "cannot be read"),
        ('kept = "kept.json"\nname = "m"', "1", "expected also 'm'"),
        ("", "0", "expected more than 0"),
        ("", "nan", "expected more than 0"),
    ],
)
def test_plans_and_durations_that_cannot_be_measured_are_rejected(
    more: str, seconds: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "kept.json", {"n": KEPT})
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[device]]\n[[network]]\nmodel = "{DIGITS}"\nrate = 1\nrequests = 1\n{more}\n')
    assert main(["measure", str(plan), "--out", str(tmp_path / "out.json"), "--seconds", seconds]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def test_measured_times_of_other_partitions_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "kept.json", {"n": KEPT})
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'[[device]]\ncount = 2\n[[network]]\nmodel = "{DIGITS}"\nname = "n"\nparts = 2\nrate = 1\nrequests = 1\n'
        'kept = "kept.json"\n'
    )
    assert main(["simulate", str(plan)]) == 1
    assert "expected also 'n_part0'" in capsys.readouterr().err


def test_a_run_takes_a_time_measured_after_a_similar_idle_spell() -> None:
    """Measured: 1 s and 1.5 s right after another run, 2 to 7 s after 1 to 6 idle seconds; equal ones taken in turn."""
    times = Times([1.0, 1.5, *range(2, 8)], [0.0, 0.0, *range(1, 7)])
    found = [times.take(spell) for spell in (0.0, 1.0, 0.0, 3.4, 0.0, 5.9, 100.0, 1e-9)]
    assert found == [1.0, 2.0, 1.5, 5.0, 1.0, 7.0, 7.0, 2.0]


@pytest.mark.parametrize("idle", [(), (0.0, 0.0, 0.0)], ids=["unknown", "none"])
def test_times_without_idle_spells_are_used_in_turn(idle: tuple[float, ...]) -> None:
    times = Times([1.0, 2.0, 3.0], idle)
    assert [times.take(spell) for spell in (0.0, 9.0, 0.5, 0.0)] == [1.0, 2.0, 3.0, 1.0]


def test_a_device_counts_as_idle_from_the_end_of_its_last_run() -> None:
    """Runs take 1 s right after another, 2 s after up to 5 idle seconds, otherwise 4 s."""
    station = Station("n", (0,), {1: (1.0, 2.0, 4.0)}, idle=(0.0, 5.0, 9.0))
    (found,) = Events([Workload("n", (station,), np.array([10.0, 11.0, 16.0]))], FREE).run()
    assert (found.latency_max, found.latency_p50, found.latency_mean) == (4.0, 4.0, 10 / 3)
    assert found.utilisation == {"n": 7 / 8}
