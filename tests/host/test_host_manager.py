"""HostManager: the properties of Glow's HostManagerTest and more."""

from __future__ import annotations

import gc
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from queue import SimpleQueue
from threading import Barrier, Thread
from time import monotonic
from typing import Any
from weakref import ref

import numpy as np
import pytest
from patience import PATIENCE
from shared_material import REPOSITORY

import onert
from host.gated import ONE, SQUARES, GatedDevice, X, output, products, squares
from onert.host import (
    ConfigurationError,
    DeviceConfig,
    DeviceNotFoundError,
    HostConfig,
    HostError,
    HostManager,
    NetworkBusyError,
    NetworkExistsError,
    NetworkNotFoundError,
    PartitionError,
    RequestRefusedError,
)

# ---- Glow's properties


def test_a_host_without_configured_devices_has_one_with_all_processors() -> None:
    with HostManager() as host:
        assert host.num_devices == 1
        assert host.devices[0].threads == onert.Options().num_threads


def test_an_added_network_runs(host: HostManager) -> None:
    host.add_network("squares", squares())
    assert host.network_added("squares")
    assert host.networks == ("squares",)
    assert output(host.run_network("squares", {"x": X}).result(PATIENCE)) == SQUARES
    assert output(host.run_network_blocking("squares", [X])) == SQUARES


def test_a_host_gives_the_same_results_as_an_execution(host: HostManager) -> None:
    package = onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_int8")
    host.add_network("digits", package)
    image = np.random.default_rng(0).integers(-128, 127, (1, 8, 8, 1)).astype(np.int8)
    want = onert.Execution(onert.compile(package, num_threads=1)).run([image])
    for got in (host.run_network_blocking("digits", [image]), host.run_network("digits", [image]).result(PATIENCE)):
        assert got.keys() == want.keys()
        assert all(got[name].tobytes() == want[name].tobytes() for name in want)


def test_each_of_a_hundred_requests_is_answered_or_refused_if_two_fit(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    called_back: SimpleQueue[Future[Any]] = SimpleQueue()
    futures = [host.run_network("n", [X], callback=called_back.put) for _ in range(100)]
    device.gate.set()
    answered = [called_back.get(timeout=PATIENCE) for _ in futures]
    assert {id(f) for f in answered} == {id(f) for f in futures}
    assert called_back.empty()
    errors = [f.exception() for f in futures]
    assert sum(error is None for error in errors) == 2
    assert sum(isinstance(error, RequestRefusedError) for error in errors) == 98
    assert host.statistics().networks["n"].requests_refused == 98
    assert "(at most 1) and" in str(errors[-1])


def test_six_threads_can_add_and_remove_their_own_networks() -> None:
    barrier = Barrier(6)

    def work(number: int) -> bool:
        barrier.wait(PATIENCE)
        for turn in range(20):
            name = f"n{number}_{turn}"
            host.add_network(name, squares())
            assert output(host.run_network_blocking(name, [X])) == SQUARES
            host.remove_network(name)
        return True

    with HostManager([DeviceConfig(threads=1, backend="reference")]) as host, ThreadPoolExecutor(6) as threads:
        assert list(threads.map(work, range(6), timeout=PATIENCE)) == [True] * 6
        assert host.networks == ()
        assert host.devices[0].functions == ()
        assert host.devices[0].available_memory == host.devices[0].maximum_memory


def test_six_threads_can_add_and_remove_the_same_name() -> None:
    barrier = Barrier(6)

    def work(_: int) -> int:
        barrier.wait(PATIENCE)
        added = 0
        for _ in range(20):
            try:
                host.add_network("n", squares())
                added += 1
            except (NetworkExistsError, NetworkBusyError):
                pass
            with suppress(NetworkBusyError):
                host.remove_network("n")
        return added

    with HostManager([DeviceConfig(threads=1, backend="reference")]) as host, ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(work, range(6), timeout=PATIENCE)) >= 1
        host.remove_network("n")
        assert host.devices[0].functions == ()
        host.add_network("n", squares())
        assert output(host.run_network_blocking("n", [X])) == SQUARES


def test_requests_from_many_threads_get_their_own_answers(host: HostManager) -> None:
    host.add_network("squares", squares())

    def ask(number: int) -> bool:
        mine = np.full(3, number, np.float32)
        for _ in range(50):
            assert output(host.run_network_blocking("squares", [mine])) == [number**2] * 3
        return True

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(ask, range(6), timeout=PATIENCE))
    counted = host.statistics().networks["squares"]
    assert (counted.requests_succeeded, counted.requests_failed, counted.requests_active) == (300, 0, 0)


def test_copies_on_two_devices_share_fifty_requests() -> None:
    devices = [GatedDevice(f"gated{i}", lambda _, inputs: [inputs[0] ** 2], is_open=True) for i in range(2)]
    with HostManager(devices) as host:
        host.add_network("squares", squares(), copies=None)
        assert host.get_device_partition_mapping("squares") == {"squares": ("gated0", "gated1")}
        futures = [host.run_network("squares", [X]) for _ in range(50)]
        assert all(output(future.result(PATIENCE)) == SQUARES for future in futures)
    began = [device.began.qsize() for device in devices]
    assert sum(began) == 50
    assert min(began) > 0


@pytest.mark.parametrize(("active", "queued"), [(1, 0), (1, 1), (2, 0), (3, 4)])
def test_the_limits_on_requests_are_exact(active: int, queued: int) -> None:
    device = GatedDevice()
    with HostManager([device], HostConfig(max_active_requests=active, max_queue_size=queued)) as host:
        host.add_network("n", squares())
        futures = [host.run_network("n", [X]) for _ in range(active + queued + 3)]
        refused = [f for f in futures if f.done()]
        assert refused == futures[active + queued :]
        assert all(isinstance(f.exception(), RequestRefusedError) for f in refused)
        counted = host.statistics()
        assert (counted.active, counted.queue_size) == (active, queued)
        device.gate.set()
        assert all(f.exception(PATIENCE) is None for f in futures[: active + queued])
        assert host.run_network_blocking("n", [X])


def test_queued_requests_run_by_priority_then_arrival() -> None:
    device = GatedDevice()
    with HostManager([device], HostConfig(max_active_requests=1)) as host:
        order: SimpleQueue[str] = SimpleQueue()
        host.add_network("n", squares())
        asked = {"first": 0, "second": 1, "third": 0, "fourth": 1, "fifth": -1}
        for name, priority in asked.items():
            host.run_network("n", [X], priority=priority).add_done_callback(lambda _, name=name: order.put(name))
        device.gate.set()
        assert [order.get(timeout=PATIENCE) for _ in asked] == ["first", "fifth", "third", "second", "fourth"]


def test_a_device_runs_its_waiting_requests_by_priority() -> None:
    device = GatedDevice()
    with HostManager([device]) as host:
        for name in "abc":
            host.add_network(name, squares())
        futures = [host.run_network("a", [X])]
        assert device.begun() == "a"
        futures += [host.run_network("b", [X], priority=1), host.run_network("c", [X])]
        device.gate.set()
        wait(futures, PATIENCE)
        assert [device.begun(), device.begun()] == ["c", "b"]


# ---- names, devices, memory


def test_adding_a_name_twice_is_rejected_until_it_is_removed(host: HostManager) -> None:
    host.add_network("n", squares())
    with pytest.raises(NetworkExistsError, match="a network called 'n' already exists"):
        host.add_network("n", squares())
    host.remove_network("n")
    host.remove_network("n")  # already removed: nothing happens
    host.add_network("n", squares())
    assert host.network_added("n")


@pytest.mark.parametrize("name", ["", "a/b", "a\nb", "x" * 201])
def test_names_that_cannot_be_part_of_a_url_are_rejected(host: HostManager, name: str) -> None:
    with pytest.raises(ConfigurationError, match="expected 1 to 200 printable characters without '/'"):
        host.add_network(name, squares())


def test_requests_for_a_missing_network_fail(host: HostManager) -> None:
    assert isinstance(host.run_network("n", [X]).exception(), NetworkNotFoundError)
    for call in (host.get_network_dag, host.get_device_partition_mapping):
        with pytest.raises(NetworkNotFoundError, match="there is no network 'n'"):
            call("n")
    with pytest.raises(NetworkNotFoundError, match="there is no network 'n'"):
        host.run_network_blocking("n", [X])


def test_a_network_with_outstanding_requests_cannot_be_removed(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    futures = [host.run_network("n", [X]) for _ in range(2)]
    assert device.begun() == "n"
    for change in (lambda: host.remove_network("n"), host.clear_host):
        with pytest.raises(NetworkBusyError, match="1 of its requests are running and 1 are waiting"):
            change()
    device.gate.set()
    wait(futures, PATIENCE)
    host.clear_host()
    assert device.evicted == ["n"]
    assert host.networks == ()


def test_adding_a_network_does_not_wait_for_runs(gated: tuple[HostManager, GatedDevice]) -> None:
    host, device = gated
    future = host.run_network("n", [X])
    assert device.begun() == "n"
    host.add_network("other", squares())
    assert host.networks == ("n", "other")
    assert not future.done()


def test_networks_are_placed_only_on_available_devices() -> None:
    devices = [GatedDevice(f"gated{i}", is_open=True) for i in range(3)]
    with HostManager(devices) as host:
        host.set_available_devices(["gated2"])
        host.add_network("n", squares())
        assert host.get_device_partition_mapping("n") == {"n": ("gated2",)}
        for names, what in (([], "the list has no device"), (["gated0", "other"], "there is no device 'other'")):
            with pytest.raises(DeviceNotFoundError, match=f"{what}, expected some of gated0, gated1, gated2"):
                host.set_available_devices(names)
        with pytest.raises(PartitionError, match="2 copies on 1 devices each are requested, expected 1 to 1"):
            host.add_network("m", squares(), copies=2)


def test_adding_a_network_that_does_not_fit_leaves_nothing_behind() -> None:
    devices = [GatedDevice("small", memory=4000), GatedDevice("smaller", memory=3000)]
    with HostManager(devices) as host:
        message = r"the memory usage \(12000 bytes\) of one partition exceeds the available memory \(4000 bytes\)"
        with pytest.raises(PartitionError, match=message):
            host.add_network("n", products(1000))
        assert not host.network_added("n")
        assert [d.functions for d in devices] == [(), ()]
        host.add_network("n", products(10))
        assert host.network_added("n")


def test_a_failed_load_leaves_nothing_behind() -> None:
    devices = [GatedDevice(f"gated{i}") for i in range(2)]
    devices[1].refuses = "n"
    with HostManager(devices) as host:
        with pytest.raises(RuntimeError, match="refused"):
            host.add_network("n", squares(), copies=2)
        assert devices[0].evicted == ["n"]
        assert [d.functions for d in devices] == [(), ()]
        devices[1].refuses = None
        host.add_network("n", squares(), copies=2)
        assert [d.functions for d in devices] == [("n",), ("n",)]


# ---- the end


def test_closing_answers_accepted_requests_and_refuses_the_rest() -> None:
    device = GatedDevice()
    host = HostManager([device], ONE)
    host.add_network("n", squares())
    taken = [host.run_network("n", [X]) for _ in range(2)]
    closing = Thread(target=host.close)
    gate = host._dispatcher.close()
    refused = host.run_network("n", [X])
    closing.start()
    assert isinstance(refused.exception(PATIENCE), RequestRefusedError)
    assert not gate.is_open
    device.gate.set()
    closing.join(PATIENCE)
    assert gate.is_open
    assert [f.exception(PATIENCE) for f in taken] == [None, None]
    host.close()
    assert isinstance(host.run_network("n", [X]).exception(), RequestRefusedError)


def test_a_callback_cannot_close_its_host(host: HostManager) -> None:
    called_back: SimpleQueue[HostError] = SimpleQueue()

    def closing(future: Future[Any]) -> None:
        with pytest.raises(HostError, match="cannot be closed by a callback") as caught:
            host.close()
        called_back.put(caught.value)

    host.add_network("n", squares())
    host.run_network("n", [X], callback=closing)
    assert called_back.get(timeout=PATIENCE)


def test_a_garbage_collected_host_ends_its_threads() -> None:
    host = HostManager([DeviceConfig(threads=1)])
    host.add_network("n", squares())
    host.run_network("n", [X]).result(PATIENCE)  # an assertion would keep a reference to the host
    thread = host.devices[0]._worker._thread  # type: ignore[attr-defined]
    gone = ref(host)
    del host
    end = monotonic() + PATIENCE
    while gone() is not None and monotonic() < end:  # its worker may not have finished handling the request
        gc.collect()
    assert gone() is None
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_statistics_report_memory_and_latencies(host: HostManager) -> None:
    host.add_network("n", products(1000))
    for _ in range(10):
        host.run_network_blocking("n", [np.ones(1000, np.float32)])
    counted = host.statistics()
    device = counted.devices["cpu0"]
    assert device.functions == ("n",)
    assert device.used_memory == host.get_network_dag("n").nodes[0].size >= 12_000
    assert device.used_memory + device.available_memory == device.maximum_memory
    network = counted.networks["n"]
    assert 0 < network.latency_p50 <= network.latency_p90 <= network.latency_p99 <= network.latency_max
    assert network.latency_mean <= network.latency_max
