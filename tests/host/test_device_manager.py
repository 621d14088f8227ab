"""Device managers: the properties of Glow's DeviceManagerTest, for the in-process CPU device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Event, Thread, get_ident
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE

import onert
from host.gated import Answers, GatedDevice, products, squares
from onert.host import (
    CompiledFunction,
    ConfigurationError,
    DeviceConfig,
    DeviceNotFoundError,
    NetworkExistsError,
    NetworkNotFoundError,
    OutOfDeviceMemoryError,
    RequestRefusedError,
)
from onert.host.devices.cpu import CpuDevice
from onert.host.devices.kinds import made
from onert.host.memory import program_memory
from onert.ir import Package

X = np.float32([1, 2, 3])


def function(name: str, package: Package) -> CompiledFunction:
    options = onert.Options(backends=("reference",), num_threads=1)
    return CompiledFunction(name, package, options, onert.compile(package, options))


def results(answers: Answers) -> list[Any]:
    found = answers.next()
    assert not isinstance(found, BaseException), found
    return [array.tolist() for array in found]


@pytest.fixture
def device() -> Iterator[CpuDevice]:
    (found,) = made([DeviceConfig(threads=1)])
    assert isinstance(found, CpuDevice)
    yield found
    found.stop()


# ---- Glow's properties


def test_a_function_runs_and_answers_from_another_thread(device: CpuDevice) -> None:
    answers_queue: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    device.add_network([function("squares", squares())])
    assert device.run_function("squares", [X], lambda result: answers_queue.put((get_ident(), result))) == 1
    thread, result = answers_queue.get(timeout=PATIENCE)
    assert thread != get_ident()
    assert result[0].tolist() == [1, 4, 9]
    assert device.run_function("squares", [X], lambda _: None) == 2


def test_many_runs_of_many_functions_each_get_their_own_result(device: CpuDevice) -> None:
    device.add_network([function("squares", squares()), function("double", products(3))])
    device.add_network([function("treble", products(3, 3.0))])
    answers = {name: Answers() for name in ("squares", "double", "treble")}
    for turn in range(20):
        for name in answers:
            device.run_function(name, [X + turn], answers[name])
    for turn in range(20):
        x = X + turn
        assert results(answers["squares"]) == [(x * x).tolist()]
        assert results(answers["double"]) == [(2 * x).tolist()]
        assert results(answers["treble"]) == [(3 * x).tolist()]


def test_one_compiled_function_can_run_under_two_names_and_on_two_devices() -> None:
    devices = made([DeviceConfig(threads=1), DeviceConfig(threads=1)])
    compiled = function("a", squares())
    answers = Answers()
    for device in devices:
        again = CompiledFunction("b", compiled.package, compiled.options, compiled.program)
        device.add_network([compiled, again])
        for name in "ab":
            device.run_function(name, [X], answers)
            assert results(answers) == [[1, 4, 9]]
        device.stop()


def test_memory_is_accounted_for_to_the_byte() -> None:
    big, small = function("big", products(1000)), function("small", products(100))
    room = big.nbytes + small.nbytes
    (device,) = made([DeviceConfig(memory=room, threads=1)])
    assert device.maximum_memory == device.available_memory == device.info.available_memory == room
    assert device.is_memory_available(room)
    assert not device.is_memory_available(room + 1)
    device.add_network([big])
    assert device.available_memory == small.nbytes
    with pytest.raises(OutOfDeviceMemoryError) as caught:
        device.add_network([function("more", products(101))])
    nbytes = function("more", products(101)).nbytes
    assert f"needs {nbytes} bytes, {small.nbytes} of {room} are free" in str(caught.value)
    assert device.available_memory == small.nbytes
    device.add_network([small])
    assert device.available_memory == 0
    device.evict_network("big")
    assert device.available_memory == big.nbytes
    device.evict_network("small")
    assert device.available_memory == room
    device.stop()


def test_the_memory_of_a_function_is_constants_activations_inputs_and_outputs() -> None:
    package = products(1000)
    found = program_memory(onert.compile(package, backends=("reference",), num_threads=1))
    assert (found.inputs, found.outputs, found.constants, found.activations) == (4000, 4000, 4000, 0)
    assert found.total == 12000
    twice = program_memory(onert.compile(package, backends=("reference",), num_threads=1), contexts=2)
    assert twice.total == 20000


def test_either_all_functions_are_added_or_none(device: CpuDevice) -> None:
    device.add_network([function("a", squares())])
    free = device.available_memory
    with pytest.raises(NetworkExistsError, match="already has a function called 'a'"):
        device.add_network([function("b", squares()), function("a", squares())])
    assert device.functions == ("a",)
    assert device.available_memory == free


def test_errors_name_functions_that_are_not_loaded(device: CpuDevice) -> None:
    answers = Answers()
    for call in (
        lambda: device.run_function("a", [X], answers),
        lambda: device.run_here("a", [X]),
        lambda: device.evict_network("a"),
    ):
        with pytest.raises(NetworkNotFoundError, match="device 'cpu0' has no function called 'a'"):
            call()
    device.add_network([function("a", squares())])
    device.evict_network("a")
    with pytest.raises(NetworkNotFoundError):
        device.run_function("a", [X], answers)
    assert answers.is_empty


def test_a_failed_run_answers_with_its_error_and_the_device_continues(device: CpuDevice) -> None:
    answers = Answers()
    device.add_network([function("squares", squares())])
    device.run_function("squares", [X[:2]], answers)
    assert isinstance(answers.next(), onert.ExecutionError)
    device.run_function("squares", [X], answers)
    assert results(answers) == [[1, 4, 9]]


def test_a_failing_callback_does_not_stop_the_device(device: CpuDevice, caplog: pytest.LogCaptureFixture) -> None:
    def failing(result: Any) -> None:
        raise ValueError("mine")

    answers = Answers()
    device.add_network([function("squares", squares())])
    device.run_function("squares", [X], failing)
    device.run_function("squares", [X], answers)
    assert results(answers) == [[1, 4, 9]]
    assert "ValueError: mine" in caplog.text


# ---- the thread and its turn


def test_waiting_runs_are_ordered_by_priority_then_arrival() -> None:
    device = GatedDevice()
    device.init()
    names = ["a", "b", "c", "d", "e"]
    device.add_network([function(name, squares()) for name in names])
    answers = Answers()
    for name, priority in zip(names, [0, 1, 0, -5, 1], strict=True):
        device.run_function(name, [X], answers, priority)
        if name == "a":
            assert device.begun() == "a"
    assert device.load == 5
    device.gate.set()
    assert [device.begun() for _ in names[1:]] == ["d", "c", "b", "e"]
    device.stop()


def test_an_idle_device_runs_on_the_caller_s_thread_and_a_busy_one_does_not(device: CpuDevice) -> None:
    device.add_network([function("squares", squares())])
    result = device.run_here("squares", [X])
    assert result is not None
    assert not isinstance(result, BaseException)
    assert result[0].tolist() == [1, 4, 9]
    assert isinstance(device.run_here("squares", [X[:1]]), onert.ExecutionError)
    holding, release = Event(), Event()

    def hold() -> None:
        holding.set()
        assert release.wait(PATIENCE)

    worker = device._thread
    holder = Thread(target=worker.alone, args=(hold,))
    holder.start()
    assert holding.wait(PATIENCE)
    assert device.run_here("squares", [X]) is None
    assert device.load == 1
    release.set()
    holder.join(PATIENCE)
    assert device.run_here("squares", [X]) is not None


def test_a_turn_dropped_by_an_interrupted_caller_is_not_lost(device: CpuDevice) -> None:
    worker = device._thread
    turn = worker.borrow()
    loads = [worker.load, worker.borrow()]
    del turn  # an assertion would keep a reference to it
    assert loads == [1, None]
    assert worker.load == 0
    turn = worker.borrow()
    assert turn is not None
    worker.give_back(turn)
    assert worker.turns.qsize() == 1


def test_stopping_refuses_waiting_and_later_runs() -> None:
    device = GatedDevice()
    device.init()
    device.add_network([function("a", squares())])
    first, second = Answers(), Answers()
    device.run_function("a", [X], first)
    assert device.begun() == "a"
    device.run_function("a", [X], second)
    device.stop()
    assert not isinstance(first.next(), BaseException)
    assert isinstance(second.next(), RequestRefusedError)
    with pytest.raises(RequestRefusedError, match="device 'gated0' was stopped"):
        device.run_function("a", [X], first)
    device.stop()
    assert first.is_empty
    assert second.is_empty


def test_evicting_waits_for_the_current_run(device: CpuDevice) -> None:
    device.add_network([function("a", squares())])
    holding, release = Event(), Event()

    def hold() -> None:
        holding.set()
        assert release.wait(PATIENCE)

    holder = Thread(target=device._thread.alone, args=(hold,))
    holder.start()
    assert holding.wait(PATIENCE)
    evicting = Thread(target=device.evict_network, args=("a",))
    evicting.start()
    release.set()
    evicting.join(PATIENCE)
    holder.join(PATIENCE)
    assert not evicting.is_alive()
    assert device.functions == ()


# ---- state


def test_state_is_reset_for_every_run(device: CpuDevice) -> None:
    from onert.ir import DType, TensorType
    from onert.ir.builder import Builder
    from onert.ir.ops.elementwise.binary import Binary, BinaryKind

    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (3,)), "x")
    total = b.variable(TensorType(DType.FLOAT32, (3,)), "total")
    new = b.add(Binary(BinaryKind.ADD), x, total)
    b.update(total, new)
    compiled = function("sum", Package((b.model([new]),)))
    assert compiled.stateful
    device.add_network([compiled])
    answers = Answers()
    for _ in range(3):
        device.run_function("sum", [X], answers)
        assert results(answers) == [[1, 2, 3]]
    assert not function("squares", squares()).stateful


# ---- kinds and processors


def test_a_pinned_device_runs_only_on_its_own_processors_and_thread() -> None:
    cores = tuple(sorted(os.sched_getaffinity(0)))[:1]
    (device,) = made([DeviceConfig(cores=cores, threads=1)])
    assert isinstance(device, CpuDevice)
    device.add_network([function("a", squares())])
    assert device.run_here("a", [X]) is None
    answers_queue: SimpleQueue[set[int]] = SimpleQueue()
    device.run_function("a", [X], lambda _: answers_queue.put(os.sched_getaffinity(0)))
    assert answers_queue.get(timeout=PATIENCE) == set(cores)
    device.stop()


def test_binding_a_device_to_unavailable_processors_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="device 'cpu1' is bound to processors 123456, but this process may"):
        made([DeviceConfig(), DeviceConfig(cores=(123456,))])


def test_devices_share_the_processors_unless_their_threads_are_configured() -> None:
    devices = made([DeviceConfig(), DeviceConfig(), DeviceConfig(threads=7)])
    share = max(1, onert.Options().num_threads // 3)
    assert [device.threads for device in devices] == [share, share, 7]
    assert [device.info.peak_compute / devices[0].info.peak_compute for device in devices] == [1, 1, 7 / share]
    for device in devices:
        device.stop()


def test_an_unknown_kind_of_device_is_rejected() -> None:
    with pytest.raises(DeviceNotFoundError, match="device 'tpu0' is of kind 'tpu', expected one of cpu"):
        made([DeviceConfig(), DeviceConfig(kind="tpu", name="tpu0")])
