"""Retries of runs whose device was lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE

from host.dividing import layers
from host.gated import SQUARES, GatedDevice, X, output, squares
from host.test_sessions import squared_sum
from onert.host import BatchConfig, DeviceConfig, DeviceLostError, HostConfig, HostManager
from onert.host.device_manager import Result
from onert.host.devices.process import ProcessDevice
from onert.ir import Array


class Losing:
    """Squares its input; the device is lost in its first `times` runs and whenever an input element is 13."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.runs = 0

    def __call__(self, function: str, inputs: Sequence[Array]) -> Sequence[Array]:
        self.runs += 1
        if self.left > 0 or (inputs[0] == 13).any():
            self.left -= 1
            raise DeviceLostError(f"lost in run {self.runs}")
        return [inputs[0] ** 2]


class LendingDevice(GatedDevice):
    """A gated device that can also run on the caller's thread."""

    def run_here(self, name: str, inputs: Sequence[Array], session: int | None = None) -> Result | None:
        try:
            return self.outputs(name, inputs)
        except DeviceLostError as error:
            return error


def devices(*outputs: Losing) -> list[GatedDevice]:
    return [LendingDevice(f"d{at}", each, is_open=True) for at, each in enumerate(outputs)]


def ask(host: HostManager, x: Array, *, here: bool) -> dict[str, Array]:
    return host.run_network_blocking("n", [x]) if here else host.run_network("n", [x]).result(PATIENCE)


@pytest.mark.parametrize("here", [False, True])
def test_a_lost_run_is_retried_on_another_device(here: bool) -> None:
    lost, sound = Losing(100), Losing(0)
    with HostManager(devices(lost, sound)) as host:
        host.add_network("n", squares(), copies=2)
        assert [output(ask(host, X, here=here)) for _ in range(10)] == [SQUARES] * 10
        assert sound.runs == 10
        counted = host.statistics().networks["n"]
        assert (counted.requests_succeeded, counted.requests_failed) == (10, 0)
        assert counted.runs_retried == lost.runs > 0


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_lost_run_is_reported_after_the_configured_number_of_retries(retries: int, here: bool) -> None:
    lost = Losing(100)
    with HostManager(devices(lost), HostConfig(retries=retries)) as host:
        host.add_network("n", squares())
        with pytest.raises(DeviceLostError, match=f"lost in run {retries + 1}"):
            ask(host, X, here=here)
        assert lost.runs == retries + 1
        assert host.statistics().networks["n"].runs_retried == retries
        lost.left = retries
        assert output(ask(host, X, here=here)) == SQUARES


def test_a_lost_run_is_not_retried_after_the_deadline() -> None:
    lost = Losing(100)
    (device,) = devices(lost)
    device.gate.clear()
    with HostManager([device]) as host:
        host.add_network("n", squares())
        future = host.run_network("n", [X], timeout=0.5)
        assert device.begun() == "n"
        assert isinstance(future.exception(PATIENCE), TimeoutError)
        device.gate.set()
    assert lost.runs == 1


def test_only_the_lost_partition_of_a_network_is_retried() -> None:
    lost, sound = Losing(0), Losing(1)
    with HostManager(devices(lost, sound)) as host:
        host.add_network("n", layers(3, 3, 3), parts=2)
        (found,) = ask(host, np.float32([[1, 2, 3]]), here=False).values()
        assert found.tolist() == [[1, 16, 81]]
        assert (lost.runs, sound.runs) == (1, 2)


@pytest.mark.parametrize("stacked", [True, False])
def test_a_request_that_kills_its_device_does_not_fail_others_in_its_batch(stacked: bool) -> None:
    lost = Losing(0)
    (device,) = devices(lost)
    device.gate.clear()
    with HostManager([device]) as host:
        host.add_network("n", layers(3, 3), batch=BatchConfig(max_size=4, stacked=stacked))
        numbers = [1, 2, 13, 4, 5]
        futures = [host.run_network("n", [np.full((1, 3), n, np.float32)]) for n in numbers]
        device.gate.set()
        found: list[Any] = []
        for future in futures:
            error = future.exception(PATIENCE)
            found.append(type(error) if error else next(iter(future.result().values()))[0, 0])
        assert found == [1, 4, DeviceLostError, 16, 25]


def test_a_lost_run_of_a_sequence_is_reported_without_retrying() -> None:
    (device,) = devices(Losing(1))
    with HostManager([device]) as host:
        host.add_network("n", squared_sum())
        with pytest.raises(DeviceLostError):
            host.run_network("n", [np.ones(1, np.float32)], sequence="a").result(PATIENCE)
        assert host.statistics().networks["n"].runs_retried == 0


@pytest.mark.parametrize(
    ("kills", "pause"), [pytest.param(3, 0.4, id="3"), pytest.param(30, 1.0, id="30", marks=pytest.mark.long)]
)
def test_repeatedly_killed_processes_lose_no_request(kills: int, pause: float) -> None:
    """Four clients and two processes, which are killed in turn every `pause` seconds. Every request is answered, or is
    reported as lost if that happened to it more often than runs are retried."""
    over = Event()

    def client(number: int) -> tuple[int, int]:
        count = reported = 0
        while not over.is_set():
            x = np.full(3, number + count % 100, np.float32)
            future: Future[dict[str, Array]] = host.run_network("n", [x])
            try:
                assert output(future.result(PATIENCE)) == (x**2).tolist()
                count += 1
            except DeviceLostError:
                reported += 1
        return count, reported

    def kill(found: Sequence[ProcessDevice]) -> None:
        try:
            for turn in range(kills):
                over.wait(pause)
                with suppress(ProcessLookupError):
                    os.kill(found[turn % 2].pid, signal.SIGKILL)
            over.wait(pause)
        finally:
            over.set()

    configs = [DeviceConfig(name=name, kind="process", threads=1) for name in "ab"]
    with HostManager(configs, HostConfig(retries=3)) as host:
        host.add_network("n", squares(), copies=2)
        found = [device for device in host.devices if isinstance(device, ProcessDevice)]
        killer = Thread(target=kill, args=[found])
        killer.start()
        try:
            with ThreadPoolExecutor(4) as threads:
                counts = list(threads.map(client, range(4), timeout=PATIENCE))
        finally:
            over.set()
            killer.join()
        counted = host.statistics().networks["n"]
        answered, reported = map(sum, zip(*counts, strict=True))
        assert (counted.requests_succeeded, counted.requests_failed) == (answered, reported)
        assert answered > 100 * reported
        assert sum(device.restarts for device in found) >= kills - 1
