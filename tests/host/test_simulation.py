"""Simulation of hosts with a virtual clock."""

from __future__ import annotations

import json
import random
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from shared_material import REPOSITORY

import onert
from host.dividing import layers
from onert.host import BatchConfig, ConfigurationError, DeviceConfig, HostConfig
from onert.host.partitioner import Wanted
from onert.host.simulation import Outcome, Station, Stream, Workload, fewest, simulate
from onert.host.simulation.constant import applies, worked_out
from onert.host.simulation.events import Events
from onert.host.simulation.networks import Link, Timing, described, workload
from onert.host.simulation.plan import load_plan
from onert.tools.host import main

FREE = HostConfig(max_active_requests=1 << 40, max_queue_size=0)
DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_float"


def one(seconds: float, devices: int, arrivals: Any, **more: Any) -> Workload:
    """A workload for a network of a single station."""
    station = Station("n", tuple(range(devices)), {1: (seconds,)})
    return Workload("n", (station,), np.asarray(arrivals, np.float64), **more)


def by_events(found: Workload, config: HostConfig = FREE) -> Outcome:
    (made,) = Events([found], config).run()
    return made


def same(one: Outcome, other: Outcome) -> bool:
    numbers = [(o.answered, o.refused) for o in (one, other)]
    times = [
        (o.throughput, o.latency_mean, o.latency_p50, o.latency_p99, o.latency_max, *o.utilisation.values())
        for o in (one, other)
    ]
    return numbers[0] == numbers[1] and bool(np.allclose(times[0], times[1], rtol=1e-6))


def random_workload(seed: int) -> Workload:
    """A random network of up to four stations, each depending on some of the earlier ones."""
    rng = random.Random(seed)
    stations: list[Station] = []
    start = 0
    for at in range(rng.randrange(1, 5)):
        devices = rng.randrange(1, 5)
        parents = tuple(sorted(rng.sample(range(at), rng.randrange(at + 1)))) if at else ()
        stations.append(
            Station(
                f"s{at}",
                tuple(range(start, start + devices)),
                {1: (rng.uniform(0.1, 1.0),)},
                parents,
                (rng.uniform(0.5, 2.0),) * devices,
                tuple(rng.choice([0.0, 0.3]) for _ in parents or (0,)),
            )
        )
        start += devices
    rate = rng.uniform(0.3, 1.2) * min(len(s.devices) / (s.seconds[1][0] * s.factors[0]) for s in stations)
    return Workload("n", tuple(stations), Stream(rate, 2000, seed=seed).arrivals())


@pytest.mark.parametrize("seed", range(20))
def test_the_closed_form_simulation_matches_the_event_driven_one(seed: int) -> None:
    found = random_workload(seed)
    assert applies([found])
    fast = worked_out(found, FREE)
    assert fast is not None
    assert same(fast, by_events(found))


@pytest.mark.parametrize("seed", range(3))
def test_the_choice_among_many_devices_matches_that_among_few(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    times = np.random.default_rng(seed).uniform(0.1, 2.0, 50)
    arrivals = Stream(4.0, 2000, seed=seed).arrivals()
    found = Workload("n", (Station("n", tuple(range(6)), {1: tuple(times)}),), arrivals)
    few = by_events(found)
    monkeypatch.setattr("onert.host.simulation.stations._FEW", 1)
    assert by_events(found) == few


def test_waiting_times_for_one_device_follow_the_pollaczek_khinchine_formula() -> None:
    """The mean waiting time for a device that is busy a share p of the time with runs of s seconds is
    p·s / (2·(1 - p)) (Pollaczek 1930, Khinchine 1932)."""
    for share in (0.3, 0.6, 0.8):
        (found,) = simulate([one(1.0, 1, Stream(share, 200_000).arrivals())], FREE)
        assert found.latency_mean == pytest.approx(1 + share / (2 * (1 - share)), rel=0.05)
        assert found.utilisation["n"] == pytest.approx(share, rel=0.02)


def test_a_thousand_devices_and_a_million_requests_can_be_simulated() -> None:
    (found,) = simulate([one(0.01, 1000, Stream(99_000.0, 1_000_000).arrivals())], FREE)
    assert (found.answered, found.refused) == (1_000_000, 0)
    assert 0.01 <= found.latency_p50 <= found.latency_p99 <= found.latency_max < 0.1
    assert found.utilisation["n"] == pytest.approx(0.99, rel=0.02)


def test_the_limits_on_requests_are_simulated() -> None:
    """Five requests arrive at once at one device: one runs, two wait, and two are refused."""
    found = one(1.0, 1, [0.0] * 5)
    (bounded,) = simulate([found], HostConfig(max_active_requests=1, max_queue_size=2))
    assert (bounded.answered, bounded.refused, bounded.latency_max) == (3, 2, 3.0)
    (free,) = simulate([found], FREE)
    assert (free.answered, free.refused, free.latency_max) == (5, 0, 5.0)


def test_batches_are_formed_as_by_the_host_s_batcher() -> None:
    """The first request runs alone, because the device is idle; then as many as allowed, in the next larger size."""
    station = Station("n", (0,), {1: (1.0,), 2: (1.5,), 4: (2.0,)})
    found = Workload("n", (station,), np.zeros(8), BatchConfig(max_size=4))
    assert by_events(found).latency_max == 1.0 + 2.0 + 2.0  # 1, 4 and 3 requests
    patient = Workload("n", (station,), np.array([0.0, 0.5, 5.0]), BatchConfig(max_size=4, max_delay=1.0))
    made = by_events(patient)
    assert made.latency_max == pytest.approx(2.5)  # waits 1.0 for another request, then both run for 1.5
    assert made.latency_p50 == pytest.approx(2.0)


def latencies(found: Workload, config: HostConfig = FREE) -> list[float | None]:
    """The latency of each request; None if it was refused or late."""
    made = Events([found], config)
    made.run()
    return [None if np.isnan(end) else float(end) for end in made._works[0].ends - found.arrivals]


def test_requests_with_a_lower_priority_number_run_first() -> None:
    """Both in the host's queue and among the runs waiting for a device."""
    given = one(1.0, 1, [0.0] * 4, priorities=np.array([1, 2, 0, 1]))
    order: list[float | None] = [1.0, 4.0, 2.0, 3.0]
    assert latencies(given) == order
    assert latencies(given, HostConfig(max_active_requests=1, max_queue_size=3)) == order
    (found,) = simulate([given], FREE)
    assert found.urgent_p99 == {0: 2.0, 1: pytest.approx(2.98), 2: 4.0}


@pytest.mark.parametrize(("last", "counts"), [(1.28, (1, 3, 1)), (1.35, (1, 4, 0))], ids=["before", "after"])
def test_an_expired_request_leaves_the_queue(last: float, counts: tuple[int, int, int]) -> None:
    """The third request expires at 1.3 seconds, while the second runs, which makes room for one that arrives later. The
    second is late too and occupies the device until 2 seconds."""
    bounded = HostConfig(max_active_requests=1, max_queue_size=2)
    (found,) = simulate([one(1.0, 1, [0.0, 0.0, 0.1, 1.25, last], timeout=1.2)], bounded)
    assert (found.answered, found.late, found.refused) == counts
    assert found.latency_max == 1.0


def test_no_further_partition_of_an_expired_request_is_started() -> None:
    stations = (Station("a", (0,), {1: (1.0,)}), Station("b", (1,), {1: (1.0,)}, parents=(0,)))
    for timeout, busy, answered in ((0.5, 0.0, 0), (1.5, 0.5, 0), (2.5, 0.5, 1)):
        (found,) = simulate([Workload("n", stations, np.zeros(1), timeout=timeout)], FREE)
        assert (found.utilisation["b"], found.answered, found.late) == (busy, answered, 1 - answered)


def test_requests_of_a_sequence_run_one_after_the_other() -> None:
    assert latencies(one(1.0, 4, [0.0] * 3, sequences=np.array([7, 7, 7]))) == [1.0, 2.0, 3.0]
    assert latencies(one(1.0, 4, [0.0] * 4, sequences=np.array([7, 8, 7, 8]))) == [1.0, 1.0, 2.0, 2.0]
    batched = one(1.0, 4, [0.0] * 3, sequences=np.array([7, 7, 7]), batch=BatchConfig(max_size=8))
    assert latencies(batched) == [1.0, 2.0, 3.0]
    late = one(1.0, 4, [0.0] * 3, sequences=np.array([7, 7, 7]), timeout=1.5)
    assert latencies(late) == [1.0, None, None]


def test_the_state_of_a_sequence_stays_on_its_device() -> None:
    """The second of two devices is four times as slow: a sequence that started there stays there."""
    arrivals, sequences = [0.0, 0.0, 10.0, 20.0, 30.0], np.array([1, 2, 2, 1, 2])
    for stateful, expected in ((True, [1.0, 4.0, 4.0, 1.0, 4.0]), (False, [1.0, 4.0, 1.0, 4.0, 1.0])):
        station = Station("n", (0, 1), {1: (1.0,)}, factors=(1.0, 4.0), stateful=stateful)
        assert latencies(Workload("n", (station,), np.array(arrivals), sequences=sequences)) == expected


def test_the_limit_on_sequences_is_simulated() -> None:
    given = one(1.0, 1, [0.0, 0.0, 20.0], sequences=np.array([1, 2, 3]))
    bounded = HostConfig(max_active_requests=9, max_sequences=1, sequence_idle=5.0)
    assert latencies(given, bounded) == [1.0, None, 1.0]


@pytest.mark.parametrize("seed", range(8))
def test_every_request_is_answered_refused_or_late_exactly_once(seed: int) -> None:
    plain = random_workload(seed)
    count = plain.arrivals.size
    rng = np.random.default_rng(seed)
    given = evolve(
        plain,
        priorities=rng.integers(0, 3, count),
        timeout=float(rng.uniform(1.2, 4.0)) * sum(2 * each.seconds[1][0] + 0.3 for each in plain.stations),
        sequences=rng.integers(0, 20, count) if seed % 2 else None,
    )
    bounded = HostConfig(max_active_requests=12, max_queue_size=20)
    (found,) = simulate([given], bounded)
    assert found.answered + found.refused + found.late == count
    assert found.answered > 0
    assert found.latency_max < given.timeout
    assert simulate([given], bounded) == [found]


def test_networks_on_the_same_devices_wait_for_each_other() -> None:
    several = [one(1.0, 1, [0.0, 0.0]), one(3.0, 1, [0.5])]
    first, second = simulate(several, FREE)
    assert (first.latency_max, second.latency_max) == (2.0, 4.5)


def test_a_slower_device_gets_fewer_requests() -> None:
    station = Station("n", (0, 1), {1: (1.0,)}, factors=(1.0, 4.0))
    found = Workload("n", (station,), np.arange(0, 1000, 0.9))
    made = by_events(found)
    assert made.latency_p99 < 10
    assert made.latency_max >= 4


def test_an_idle_device_takes_runs_waiting_for_another() -> None:
    """The first device is busy with the first request; the other runs the second and takes over the rest."""
    times = {1: (10.0, 1.0, 2.0, 3.0)}
    found = Workload("n", (Station("n", (0, 1), times),), np.zeros(4))
    made = by_events(found)
    assert made.latency_max == 10.0
    assert made.latency_mean == np.mean([10, 1, 1 + 2, 3 + 3])


@pytest.mark.parametrize("seed", range(4))
def test_devices_with_one_station_behave_like_servers_of_one_queue(seed: int) -> None:
    """Whatever the run times, a request starts when the first device becomes free (Kiefer and Wolfowitz 1955)."""
    rng = np.random.default_rng(seed)
    devices, count = int(rng.integers(2, 5)), 1000
    times = rng.exponential(1.0, count)
    arrivals = Stream(0.9 * devices, count, seed=seed).arrivals()
    made = by_events(Workload("n", (Station("n", tuple(range(devices)), {1: tuple(times)}),), arrivals))
    free = [0.0] * devices
    latency_list = []
    for came, seconds in zip(arrivals.tolist(), times.tolist(), strict=True):
        start = max(came, heappop(free))
        heappush(free, start + seconds)
        latency_list.append(start + seconds - came)
    assert made.latency_mean == pytest.approx(np.mean(latency_list))
    assert made.latency_max == pytest.approx(np.max(latency_list))


def test_a_network_is_partitioned_and_placed_by_the_host_s_own_code() -> None:
    devices = described([DeviceConfig(threads=1), DeviceConfig(threads=2), DeviceConfig(threads=1)])
    arrivals = np.zeros(1)
    made = workload(
        "n", layers(64, 64, 64, 64), devices, arrivals, wanted=Wanted(parts=3), link=Link(0.5, 1e3), timing=Timing()
    )
    assert [s.parents for s in made.stations] == [(), (0,), (1,)]
    assert sorted(s.devices[0] for s in made.stations) == [0, 1, 2]
    assert [s.transfers for s in made.stations] == [(0.5 + 64 * 4 / 1e3,)] * 3
    assert [device.functions for device in devices] == [
        (f"n/{s.name}",) for s in sorted(made.stations, key=lambda s: s.devices)
    ]
    assert all(seconds > 30e-6 for s in made.stations for seconds in s.seconds[1])


def test_the_speed_of_copies_depends_on_their_devices() -> None:
    devices = described([DeviceConfig(threads=1), DeviceConfig(threads=1, speeds={"peak_compute": 25e9})])
    made = workload("n", layers(8, 8), devices, np.zeros(1), wanted=Wanted(copies=None), timing=Timing(measured=True))
    (station,) = made.stations
    assert (station.devices, station.factors) == ((0, 1), (1.0, 2.0))
    assert len(station.seconds[1]) > 3


def test_batch_sizes_are_those_the_network_is_compiled_for() -> None:
    made = workload(
        "n",
        layers(8, 8),
        described([DeviceConfig(threads=1)]),
        np.zeros(1),
        wanted=Wanted(),
        batch=BatchConfig(max_size=6),
        timing=Timing(seconds=0.5, overhead=0.25),
    )
    assert made.stations[0].seconds == {1: (0.75,), 2: (1.25,), 4: (2.25,), 6: (3.25,)}


def test_the_smallest_sufficient_number_of_devices_is_found() -> None:
    arrivals = Stream(95.0, 20_000).arrivals()
    found, best = fewest(lambda count: simulate([one(0.1, count, arrivals)], FREE)[0], 0.15)
    assert best.latency_p99 <= 0.15
    assert simulate([one(0.1, found - 1, arrivals)], FREE)[0].latency_p99 > 0.15
    assert found > 9
    with pytest.raises(ConfigurationError, match=r"no number of devices meets a p99 of 0.05 seconds"):
        fewest(lambda count: simulate([one(0.1, count, arrivals)], FREE)[0], 0.05)


def test_a_number_of_devices_with_late_requests_is_not_sufficient() -> None:
    """Late requests count, although those answered in time are quick with any number of devices."""
    arrivals = np.zeros(8)
    made = fewest(lambda count: simulate([one(1.0, count, arrivals, timeout=1.5)], FREE)[0], 2.0)
    assert (made[0], made[1].late) == (8, 0)


@pytest.mark.parametrize("needed", [1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 33, 60])
def test_the_search_for_devices_finds_exactly_the_needed_number(needed: int) -> None:
    one_run = one(1.0, 1, [0.0])
    quick, slow = simulate([one_run], FREE)[0], simulate([one(3.0, 1, [0.0])], FREE)[0]
    assert fewest(lambda count: quick if count >= needed else slow, 2.0)[0] == needed


PLAN = f"""
[[device]]
count = 8
threads = 1

[[network]]
model = "{DIGITS}"
copies = 0
seconds = 0.01
overhead = 0.0
rate = 500.0
requests = 5000

[link]
latency = 0.001
"""


def test_a_plan_is_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "plan.toml"
    place.write_text(PLAN)
    assert main(["simulate", str(place), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (network,) = found["networks"]
    assert (found["devices"], network["answered"], network["bottleneck"]) == (8, 5000, "digits_float")
    assert network["latency_p50"] == pytest.approx(0.011, rel=0.1)
    assert main(["simulate", str(place), "--p99", "15"]) == 0
    assert "devices meet a p99 of 15 ms" in capsys.readouterr().out
    assert main(["simulate", str(place), "--p99", "5"]) == 1
    assert "no number of devices meets" in capsys.readouterr().err


def test_a_recorded_trace_is_replayed_in_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text("7.5\n5.0\n6.0\n")
    assert Stream(trace=tmp_path / "trace.txt").arrivals().tolist() == [0.0, 1.0, 2.5]


def test_a_plan_can_have_priorities_timeouts_and_sequences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "plan.toml"
    more = "requests = 2000\npriorities = [0, 5]\ntimeout = 0.05\nsequences = 100\n\n[host]\nmax_sequences = 99\n"
    place.write_text(PLAN.replace("count = 8", "count = 4").replace("requests = 5000\n", more))
    assert main(["simulate", str(place), "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    assert network["answered"] + network["late"] + network["refused"] == 2000
    assert min(network["late"], network["refused"]) > 0
    assert network["urgent_p99"]["0"] < network["urgent_p99"]["5"] <= 0.05
    assert main(["simulate", str(place)]) == 0
    assert "p99 by priority 0: " in capsys.readouterr().out


WRONG = {
    "no file": (None, "cannot be read"),
    "no TOML": ("[[", "is not TOML"),
    "no devices": ("[[network]]\nmodel='x'", r"there is no table \[\[device\]\]"),
    "no networks": ("[[device]]", r"there is no table \[\[network\]\]"),
    "unknown table": (PLAN + "[links]", "unknown table links, expected device, host"),
    "unknown field": (PLAN.replace("rate", "rates"), "network 0: unknown field rates"),
    "count": (PLAN.replace("count = 8", "count = 0"), "device 0: count is 0, expected a whole number from 1"),
    "many": (PLAN.replace("count = 8", "count = 99999999"), "count is 99999999"),
    "rate": (PLAN.replace("500.0", "'fast'"), "rate is 'fast', expected a number"),
    "no rate": (PLAN.replace("rate = 500.0", ""), "a stream has 5000 requests, 0 per second"),
    "times": (PLAN.replace("seconds = 0.01", "times = 'guessed'"), "times is 'guessed'"),
    "link": (PLAN.replace("latency = 0.001", "latency = -1"), "link: latency is -1"),
    "priorities": (PLAN.replace("rate", "priorities = []\nrate"), r"priorities are \[\], expected a list"),
    "priority": (PLAN.replace("rate", "priorities = [0.5]\nrate"), "a priority is 0.5, expected a whole number"),
    "timeout": (PLAN.replace("rate", "timeout = 0\nrate"), "timeout is 0, expected a number from 1e-09"),
    "sequences": (PLAN.replace("rate", "sequences = -1\nrate"), "sequences is -1"),
    "trace": (PLAN.replace("rate = 500.0", "trace = 'nix'"), "the trace cannot be read"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG.keys())
def test_invalid_plans_are_rejected(text: str | None, message: str, tmp_path: Path) -> None:
    place = tmp_path / "plan.toml"
    if text is not None:
        place.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        simulate(
            [
                workload(n.name, onert.load(n.model), described(plan.devices), n.stream.arrivals(), wanted=Wanted())
                for plan in [load_plan(place)]
                for n in plan.networks
            ],
            FREE,
        )
