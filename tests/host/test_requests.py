"""Requests: input checks, deadlines, cancellation, and callbacks."""

from __future__ import annotations

import os
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Event, Thread, current_thread
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE

import onert
from host.gated import ONE, SQUARES, GatedDevice, X, output, squares
from onert.host import BatchConfig, DeadlineError, DeviceConfig, HostConfig, HostManager
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

# ---- inputs


WRONG: dict[str, tuple[Any, str]] = {
    "missing": ({}, "is missing input 'x'"),
    "unknown": ({"x": X, "y": X}, "has no input 'y', expected 'x'"),
    "too many": ([X, X], "is given 2 inputs, expected 1"),
    "too few": ([], "is given 0 inputs, expected 1"),
    "shape": ([X[:2]], r"input 'x' is given shape \[2\], expected \[3\]"),
    "type": ([X.astype(np.float64)], "elements of type float64, expected float32"),
    "no array": ([object()], "is given a object, expected a NumPy array"),
    "ragged": ([[[1], [1, 2]]], "network 'n': input 'x': "),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG.keys())
def test_inputs_are_checked_before_they_are_queued(
    gated: tuple[HostManager, GatedDevice], given: Any, message: str
) -> None:
    host, device = gated
    futures = [host.run_network("n", [X]) for _ in range(2)]  # the queue is full
    with pytest.raises(onert.ExecutionError, match=message):
        host.run_network("n", given).result(0)
    with pytest.raises(onert.ExecutionError, match=message):
        host.run_network_blocking("n", given)
    device.gate.set()
    wait(futures, PATIENCE)
    assert device.began.qsize() == 2


# ---- time


def test_a_blocking_caller_waits_no_longer_than_the_timeout(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    running = host.run_network("n", [X])
    assert device.begun() == "n"
    with pytest.raises(DeadlineError, match=r"network 'n': request \d was not answered within 0 seconds") as caught:
        host.run_network_blocking("n", [X], timeout=0)
    assert isinstance(caught.value, TimeoutError)
    device.gate.set()
    assert running.exception(PATIENCE) is None
    assert host.run_network_blocking("n", [X])
    assert device.began.qsize() == 1  # the abandoned request was not run


def test_expired_requests_make_room_in_the_queue(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    running = host.run_network("n", [X])
    late = host.run_network("n", [X], timeout=0)
    in_time = host.run_network("n", [X], timeout=PATIENCE)
    assert isinstance(late.exception(0), DeadlineError)
    device.gate.set()
    assert running.exception(PATIENCE) is None
    assert in_time.exception(PATIENCE) is None


def test_a_queued_request_is_answered_at_its_deadline(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    called_back: SimpleQueue[Future[Any]] = SimpleQueue()
    running = host.run_network("n", [X])
    late = host.run_network("n", [X], timeout=0.01, callback=called_back.put)
    assert isinstance(late.exception(PATIENCE), DeadlineError)
    assert called_back.get(timeout=PATIENCE) is late
    assert not running.done()
    following = host.run_network("n", [X])  # in its place
    device.gate.set()
    assert running.exception(PATIENCE) is following.exception(PATIENCE) is None
    assert device.began.qsize() == 2


@pytest.mark.parametrize("batch", [None, BatchConfig(max_size=2, max_delay=PATIENCE)], ids=["alone", "in a batch"])
def test_a_running_request_is_answered_at_its_deadline(batch: BatchConfig | None) -> None:
    device = GatedDevice()
    called_back: SimpleQueue[Future[Any]] = SimpleQueue()
    with HostManager([device], ONE) as host:
        host.add_network("n", squares(), batch=batch)
        late = host.run_network("n", [X], timeout=0.5, callback=called_back.put)
        assert isinstance(late.exception(PATIENCE), DeadlineError)
        assert called_back.get(timeout=PATIENCE) is late
        following = host.run_network("n", [X])
        assert not following.done()  # the device is not free
        assert host.statistics().active == 1
        device.gate.set()
        if batch is None:
            assert following.exception(PATIENCE) is None
    assert following.exception(PATIENCE) is None
    assert called_back.empty()
    counted = host.statistics().networks["n"]
    assert (counted.requests_succeeded, counted.requests_failed) == (1, 1)


def test_deadlines_of_finished_requests_take_no_memory(host: HostManager) -> None:
    host.add_network("n", squares())
    for _ in range(1000):
        assert output(host.run_network("n", [X], timeout=3600).result(PATIENCE)) == SQUARES
    assert len(host._dispatcher._deadlines._entries) < 200
    assert len(host._dispatcher._alarm._calls) < 10


def test_a_request_cancelled_in_the_queue_is_not_run(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    running = host.run_network("n", [X])
    queued = host.run_network("n", [X])
    assert device.begun() == "n"
    assert not running.cancel()
    assert queued.cancel()
    following = host.run_network("n", [X])  # in its place
    device.gate.set()
    assert wait([running, queued, following], PATIENCE).not_done == set()
    assert following.exception() is None
    assert device.began.qsize() == 1


# ---- callbacks and errors


def test_a_blocking_callback_occupies_its_slot_but_no_device(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    device.gate.set()
    release = Event()
    threads: SimpleQueue[Thread] = SimpleQueue()

    def blocking(future: Future[Any]) -> None:
        threads.put(current_thread())
        assert release.wait(PATIENCE)

    first = host.run_network("n", [X], callback=blocking)
    assert first.result(PATIENCE)
    threads.get(timeout=PATIENCE)
    second = host.run_network("n", [X])
    assert host.statistics().queue_size == 1
    release.set()
    assert second.result(PATIENCE)


def test_an_exception_in_a_callback_is_logged_and_harmless(host: HostManager, caplog: pytest.LogCaptureFixture) -> None:
    def failing(future: Future[Any]) -> None:
        raise ValueError("mine")

    host.add_network("n", squares())
    futures = [host.run_network("n", [X], callback=failing) for _ in range(3)]
    assert all(output(f.result(PATIENCE)) == SQUARES for f in futures)
    host.close()
    assert caplog.text.count("ValueError: mine") == 3


def test_a_failed_run_fails_only_its_own_request() -> None:
    def outputs(function: str, inputs: Any) -> Any:
        if inputs[0][0] == 2:
            raise onert.ExecutionError("two")
        return inputs

    with HostManager([GatedDevice(outputs=outputs, is_open=True)]) as host:
        host.add_network("n", squares())
        futures = [host.run_network("n", [np.full(3, i, np.float32)]) for i in range(4)]
        assert [str(f.exception(PATIENCE)) for f in futures] == ["None", "None", "two", "None"]
        with pytest.raises(onert.ExecutionError, match="two"):
            host.run_network_blocking("n", [np.full(3, 2, np.float32)])
        counted = host.statistics().networks["n"]
        assert (counted.requests_succeeded, counted.requests_failed, counted.requests_processed) == (3, 2, 5)


def test_several_deadlines_expire_one_after_the_other() -> None:
    device = GatedDevice()
    with HostManager([device], HostConfig(max_active_requests=1)) as host:
        host.add_network("n", squares())
        running = host.run_network("n", [X])
        for timeouts in ([0.03, 0.01, 0.02], [0.01]):
            late = [host.run_network("n", [X], timeout=timeout) for timeout in timeouts]
            assert all(isinstance(future.exception(PATIENCE), DeadlineError) for future in late)
        assert not running.done()
        device.gate.set()


def test_requests_for_several_networks_share_one_priority_order() -> None:
    device = GatedDevice()
    with HostManager([device], HostConfig(max_active_requests=1)) as host:
        for name in "abc":
            host.add_network(name, squares())
        futures = [
            host.run_network(name, [X], priority=priority)
            for name, priority in zip("acbcab", [5, 1, 1, 0, 1, 0], strict=True)
        ]
        device.gate.set()
        assert wait(futures, PATIENCE).not_done == set()
        assert "".join(device.begun() for _ in futures) == "acbcba"


def test_a_caller_that_lends_its_thread_gets_a_short_run_s_answer_at_once() -> None:
    with HostManager([DeviceConfig(threads=1)]) as host:
        host.add_network("n", squares())
        network = host._network("n")
        assert not network.is_brief(60.0, [X])  # the duration of a run is not known yet
        host.run_network_blocking("n", [X])
        assert network.is_brief(60.0, [X])
        assert not network.is_brief(0.0, [X])
        future = host.run_network("n", [X], lend=60.0, timeout=60.0)
        assert future.done()
        assert output(future.result()) == SQUARES


def test_a_caller_s_thread_is_not_lent_to_a_pinned_or_remote_device() -> None:
    cores = sorted(os.sched_getaffinity(0))[:1]
    bound = DeviceConfig(threads=1, cores=tuple(cores))
    for device in (bound, GatedDevice(outputs=lambda _, inputs: [inputs[0] ** 2], is_open=True)):
        with HostManager([device]) as host:
            host.add_network("n", squares())
            assert output(host.run_network("n", [X], lend=60.0).result(PATIENCE)) == SQUARES
            assert host.devices[0].last_run("n", [X]) == float("inf")


def test_a_caller_s_thread_is_lent_only_for_the_shapes_every_device_ran_last() -> None:
    b = Builder("open")
    x = b.input(TensorType(DType.FLOAT32, (None, 2)), "x")
    package = Package((b.model([b.add(Binary(BinaryKind.MUL), x, x)]),), "open")
    three, four = (np.ones((rows, 2), np.float32) for rows in (3, 4))
    with HostManager([DeviceConfig(threads=1), DeviceConfig(threads=1)]) as host:
        host.add_network("n", package, copies=2)
        network = host._network("n")
        for given, is_brief in ((three, False), (three, True), (four, False), (four, True), (three, False)):
            host.run_network_blocking("n", [given])
            assert network.is_brief(60.0, [given]) == is_brief
        assert min(device.last_run("n", [four]) for device in host.devices) < float("inf")
