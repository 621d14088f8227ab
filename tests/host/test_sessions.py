"""Sequences of requests that share state."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counters import running_sum
from patience import PATIENCE
from shared_material import SHARED, needs_shared

import onert
from host.gated import GatedDevice, squares
from onert.host import (
    DeviceConfig,
    HostConfig,
    HostManager,
    NetworkBusyError,
    NetworkNotFoundError,
    OutOfDeviceMemoryError,
    RequestRefusedError,
)
from onert.host.memory import program_memory
from onert.ir import Package
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

ONE = np.float32([1])


def squared_sum() -> Package:
    """The square of the running sum of the inputs."""
    b, total = running_sum()
    return Package((b.model([b.add(Unary(UnaryKind.SQUARE), total)]),), "sum")


def ask(host: HostManager, sequence: Any, x: float = 1.0) -> float:
    (found,) = host.run_network_blocking("n", [np.float32([x])], sequence=sequence).values()
    return float(found[0])


@pytest.fixture(params=[1, 2], ids=["whole", "divided"])
def host(request: pytest.FixtureRequest) -> Iterator[HostManager]:
    """The running sum, whole on each of four devices or split over each of two pairs."""
    config = HostConfig(max_sequences=8, sequence_idle=PATIENCE)
    with HostManager([DeviceConfig(threads=1)] * 4, config) as manager:
        manager.add_network("n", squared_sum(), parts=request.param, copies=None)
        yield manager


def test_each_sequence_has_its_own_state(host: HostManager) -> None:
    for turn in range(1, 20):
        assert ask(host, "a") == turn**2
        assert ask(host, "b", 2.0) == (2 * turn) ** 2
        assert ask(host, None) == 1


def test_requests_of_a_sequence_are_run_in_order(host: HostManager) -> None:
    futures = {name: [host.run_network("n", [ONE], sequence=name) for _ in range(12)] for name in "abcd"}
    for sent in futures.values():
        wait(sent, PATIENCE)
        assert [float(next(iter(f.result().values()))[0]) for f in sent] == [float(i**2) for i in range(1, 13)]


def test_blocking_callers_keep_the_order_of_their_sequences(host: HostManager) -> None:
    def work(number: int) -> bool:
        return [ask(host, number, float(number)) for _ in range(30)] == [(number * i) ** 2 for i in range(1, 31)]

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(1, 5), timeout=PATIENCE))


def test_an_ended_sequence_starts_with_fresh_state(host: HostManager) -> None:
    assert [ask(host, "a") for _ in range(3)] == [1, 4, 9]
    host.end_sequence("n", "a")
    host.end_sequence("n", "a")
    assert [ask(host, "a") for _ in range(2)] == [1, 4]


def test_the_memory_of_a_sequence_is_accounted_for_and_freed(host: HostManager) -> None:
    def free() -> int:
        return sum(device.available_memory for device in host.devices)

    before = free()
    ask(host, "a")
    with_one = free()
    ask(host, "a")
    ask(host, "b")
    assert before - with_one == with_one - free() > 0
    host.end_sequence("n", "a")
    assert free() == with_one
    host.end_sequence("n", "b")
    assert free() == before
    ask(host, "c")
    host.remove_network("n")
    assert free() == sum(device.maximum_memory for device in host.devices)


def test_a_failed_request_leaves_the_state_unchanged(host: HostManager) -> None:
    assert ask(host, "a") == 1
    with pytest.raises(onert.ExecutionError):
        host.run_network_blocking("n", [np.ones(2, np.float32)], sequence="a")
    assert ask(host, "a") == 4


def test_a_sequence_beyond_the_limit_is_refused_unless_another_is_idle() -> None:
    for idle, refused in ((PATIENCE, True), (0.0, False)):
        config = HostConfig(max_sequences=2, sequence_idle=idle)
        with HostManager([DeviceConfig(threads=1)], config) as host:
            host.add_network("n", squared_sum())
            assert [ask(host, name) for name in "abab"] == [1, 1, 4, 4]
            if refused:
                with pytest.raises(
                    RequestRefusedError, match="sequence 'c' exceeds the limit of 2, and none has been idle"
                ):
                    ask(host, "c")
                host.end_sequence("n", "a")
            assert ask(host, "c") == 1


def test_a_sequence_that_does_not_fit_in_memory_fails_its_request() -> None:
    memory = program_memory(onert.compile(squared_sum(), num_threads=1))
    one_more = memory.total + (memory.total - memory.constants)
    with HostManager([DeviceConfig(threads=1, memory=one_more)]) as host:
        host.add_network("n", squared_sum())
        assert ask(host, "a") == 1
        with pytest.raises(OutOfDeviceMemoryError, match="does not have enough memory for another sequence of 'n'"):
            ask(host, "b")
        assert ask(host, "a") == 4


def test_a_sequence_with_a_request_in_progress_cannot_be_ended() -> None:
    device = GatedDevice()
    with HostManager([device]) as host:
        host.add_network("n", squares())
        futures = [host.run_network("n", [np.float32([1, 2, 3])], sequence="a") for _ in range(2)]
        device.begun()
        with pytest.raises(NetworkBusyError, match="network 'n': sequence 'a' has a request in progress"):
            host.end_sequence("n", "a")
        assert device.began.empty()  # the second waits for the first
        device.gate.set()
        assert wait(futures, PATIENCE).not_done == set()
        session = host._dispatcher.sessions.of(host._networks["n"], "a")
        host.end_sequence("n", "a")
        with pytest.raises(NetworkNotFoundError, match="sequence 'a' was ended"):
            session.enter(type("Asked", (), {"network": host._networks["n"]})())


@needs_shared
@pytest.mark.parametrize("name", ["tflite-micro/trained_lstm", "tflite-micro/micro_speech_lstm"])
def test_a_sequence_gives_the_same_results_as_an_execution(name: str) -> None:
    package = onert.load(Path(SHARED / "models" / f"{name}.tflite"))
    program = onert.compile(package, num_threads=1)
    rng = np.random.default_rng(0)
    execution = onert.Execution(program)
    with HostManager([DeviceConfig(threads=1)] * 2) as host:
        host.add_network("n", package, copies=2)
        for _ in range(10):
            inputs = []
            for info in program.inputs:
                shape = tuple(d or 1 for d in info.shape)
                numbers = rng.uniform(-1, 1, shape)
                inputs.append(
                    numbers.astype(info.dtype.numpy) if info.dtype.is_float else np.ones(shape, info.dtype.numpy)
                )
            want = execution.run(inputs)
            got = host.run_network_blocking("n", inputs, sequence=7)
            assert {k: v.tobytes() for k, v in got.items()} == {k: v.tobytes() for k, v in want.items()}
