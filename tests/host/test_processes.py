"""Devices in processes of their own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE
from shared_material import REPOSITORY, SHARED, needs_shared

import onert
from host.gated import squares
from host.test_partitions_of_models import bits, inputs_of
from host.test_sessions import squared_sum
from onert.host import DeviceConfig, DeviceLostError, HostConfig, HostManager, PartitionError
from onert.host.devices.process import ProcessDevice
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

X = np.float32([1, 2, 3])
SQUARES = [1.0, 4.0, 9.0]
PROCESS = DeviceConfig(kind="process", threads=1)


def squared(host: HostManager) -> list[float]:
    (found,) = host.run_network("squares", [X]).result(PATIENCE).values()
    numbers: list[float] = found.tolist()
    return numbers


def process_of(host: HostManager) -> ProcessDevice:
    (found,) = (device for device in host.devices if isinstance(device, ProcessDevice))
    return found


NO_RETRIES = HostConfig(retries=0)


@pytest.fixture
def host() -> Iterator[HostManager]:
    with HostManager([PROCESS], NO_RETRIES) as manager:
        manager.add_network("squares", squares())
        yield manager


def test_a_process_gives_the_same_results_as_an_execution(host: HostManager) -> None:
    package = onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_int8")
    program = onert.compile(package, num_threads=1)
    host.add_network("digits", package)
    inputs = inputs_of(program, {})
    want = bits(onert.Execution(program).run(inputs))
    for _ in range(3):
        assert bits(host.run_network_blocking("digits", inputs)) == want
        assert bits(host.run_network("digits", inputs).result(PATIENCE)) == want
    assert process_of(host).pid != os.getpid()


@needs_shared
@pytest.mark.parametrize("name", ["generated-keras/mobilenet_v3_small_224_fp32", "tf-examples/detect"])
def test_partitioned_shared_models_run_in_processes(name: str) -> None:
    package = onert.load(Path(SHARED / "models" / f"{name}.tflite"))
    program = onert.compile(package, num_threads=1)
    inputs = inputs_of(program, {})
    with HostManager([PROCESS, DeviceConfig(kind="process", threads=1, name="other")]) as host:
        host.add_network("n", package, parts=2)
        assert bits(host.run_network("n", inputs).result(PATIENCE)) == bits(onert.Execution(program).run(inputs))


def kill(device: ProcessDevice, number: signal.Signals = signal.SIGKILL) -> int:
    """Kill the process of an idle device and wait for its end; returns its pid."""
    pid = device.pid
    os.kill(pid, number)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid


def kill_in_flight(host: HostManager, name: str, x: np.ndarray, **more: Any) -> tuple[int, Future[Any]]:
    """Kill the device's process during a request; returns its pid and the request's future."""
    device = process_of(host)
    pid, channel, sent = device.pid, device._processes[0].channel, Event()
    send = channel.send

    def sending(*given: Any) -> None:
        send(*given)
        sent.set()

    channel.send = sending  # type: ignore[method-assign]
    os.kill(pid, signal.SIGSTOP)
    future = host.run_network(name, [x], **more)
    assert sent.wait(PATIENCE)
    os.kill(pid, signal.SIGKILL)
    return pid, future


def test_a_process_that_dies_in_a_request_loses_only_that_one_and_is_replaced(host: HostManager) -> None:
    device = process_of(host)
    host.add_network("sum", squared_sum())
    for turn in range(1, 4):
        assert squared(host) == SQUARES
        pid, future = kill_in_flight(host, "squares", X)
        with pytest.raises(DeviceLostError, match=rf"process {pid} ended with signal 9 \(Killed\) during a request"):
            future.result(PATIENCE)
        assert squared(host) == SQUARES
        assert device.restarts == turn
        assert device.pid != pid
        (found,) = host.run_network_blocking("sum", [np.float32([2])]).values()
        assert found.tolist() == [4.0]


def test_an_idle_process_that_dies_is_replaced_without_losing_a_request(host: HostManager) -> None:
    device = process_of(host)
    for turn in range(1, 6):
        kill(device, [signal.SIGKILL, signal.SIGSEGV][turn % 2])
        assert squared(host) == SQUARES
        assert device.restarts == turn
    counted = host.statistics().networks["squares"]
    assert (counted.requests_succeeded, counted.requests_failed) == (5, 0)


def test_a_crash_does_not_affect_other_devices() -> None:
    with HostManager([DeviceConfig(threads=1), PROCESS], NO_RETRIES) as host:
        host.set_available_devices(["process1"])
        host.add_network("squares", squares())
        host.set_available_devices(["cpu0"])
        host.add_network("beside", squares())
        _, lost = kill_in_flight(host, "squares", X)
        assert host.run_network("beside", [X]).exception(PATIENCE) is None
        assert isinstance(lost.exception(PATIENCE), DeviceLostError)
        assert squared(host) == SQUARES


def test_many_threads_share_a_process(host: HostManager) -> None:
    def ask(number: int) -> bool:
        mine = np.full(3, number, np.float32)
        for _ in range(20):
            (blocking,) = host.run_network_blocking("squares", [mine]).values()
            (found,) = host.run_network("squares", [mine]).result(PATIENCE).values()
            assert blocking.tolist() == found.tolist() == [float(number) ** 2] * 3
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(ask, range(4), timeout=PATIENCE))


def test_the_state_of_a_sequence_dies_with_its_process_and_the_loss_is_reported(host: HostManager) -> None:
    def add(sequence: str | None) -> float:
        (found,) = host.run_network_blocking("sum", [np.float32([1])], sequence=sequence).values()
        return float(found[0])

    host.add_network("sum", squared_sum())
    assert [add("a") for _ in range(3)] == [1, 4, 9]
    assert [add("b"), add(None), add(None)] == [1, 1, 1]
    _, lost = kill_in_flight(host, "sum", np.float32([1]), sequence="a")
    with pytest.raises(DeviceLostError, match="ended with signal 9"):
        lost.result(PATIENCE)
    for _ in range(2):
        with pytest.raises(DeviceLostError, match="the state of this sequence of 'sum' was lost with its process"):
            add("a")
    assert add(None) == 1
    host.end_sequence("sum", "a")
    assert [add("a"), add("a"), add("c")] == [1, 4, 1]


def test_a_network_with_dynamic_inputs_is_rejected_by_process_devices(host: HostManager) -> None:
    b = Builder("checked")
    x = b.input(TensorType(DType.FLOAT32, (None,)), "x")
    package = Package((b.model([b.add(Unary(UnaryKind.SQUARE), x)]),), "checked")
    with pytest.raises(onert.BackendError, match="its size is not known before the run"):
        host.add_network("open", package)
    assert host.networks == ("squares",)
    assert process_of(host).functions == ("squares",)


def test_the_memory_of_process_devices_is_accounted_for() -> None:
    with HostManager([DeviceConfig(kind="process", threads=1, memory=60)]) as host:
        host.add_network("n", squares())
        assert host.devices[0].available_memory == 60 - 24
        host.add_network("m", squares())
        with pytest.raises(PartitionError, match=r"usage \(24 bytes\) .* available memory \(12 bytes\)"):
            host.add_network("o", squares())
        host.remove_network("n")
        assert host.devices[0].available_memory == 36


def test_a_trace_records_the_runs_of_processes_on_the_same_clock(host: HostManager) -> None:
    host.start_trace()
    squared(host)
    trace = host.stop_trace()
    (run,) = trace.slices
    (request,) = trace.spans
    assert run.process == process_of(host).pid
    assert request.start <= run.start <= run.end <= request.end
    names = [e["args"]["name"] for e in trace.events() if e["name"] == "process_name"]
    assert names == ["onert host", "onert device process0"]


def test_a_process_is_pinned_to_its_processors() -> None:
    cores = tuple(sorted(os.sched_getaffinity(0)))[:1]
    with HostManager([DeviceConfig(kind="process", cores=cores, threads=1)]) as host:
        host.add_network("squares", squares())
        assert squared(host) == SQUARES
        assert os.sched_getaffinity(process_of(host).pid) == set(cores)


def test_processes_end_with_their_host() -> None:
    host = HostManager([PROCESS], HostConfig())
    host.add_network("squares", squares())
    pid = process_of(host).pid
    host.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
