"""Devices on the nodes of a Ray cluster; here the nodes run on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import sleep
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE
from shared_material import REPOSITORY

import onert
from host.gated import SQUARES, X, output, squares
from host.test_partitions_of_models import bits, inputs_of
from host.test_sessions import squared_sum
from onert.host import BatchConfig, ConfigurationError, DeviceConfig, DeviceLostError, HostConfig, HostManager
from onert.ir import ExecutionError

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
TWO = [DeviceConfig(name=name, kind="ray", threads=1, parameters={"patience": "30"}) for name in "ab"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of two nodes for actors and one for the driver."""
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    patience = "RAY_raylet_start_wait_time_s"  # the default of 30 s is too short on a busy machine
    os.environ[patience] = str(round(min(PATIENCE, 300)))
    store = 100 << 20
    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": store, "include_dashboard": False},
    )
    made.nodes = [made.add_node(num_cpus=2, object_store_memory=store) for _ in range(2)]
    ray.init(address=made.address, log_to_driver=False, namespace="onert")
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


def test_nodes_give_the_same_results_as_an_execution(cluster: Any) -> None:
    package = onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_int8")
    program = onert.compile(package, num_threads=1)
    inputs = inputs_of(program, {})
    want = bits(onert.Execution(program).run(inputs))
    with HostManager(TWO) as host:
        host.add_network("copies", package, copies=2)
        host.add_network("parts", package, parts=2)
        host.add_network("batches", package, batch=BatchConfig(max_size=4))
        for name in host.networks:
            assert bits(host.run_network_blocking(name, inputs)) == want
            futures = [host.run_network(name, inputs) for _ in range(10)]
            assert all(bits(future.result(PATIENCE)) == want for future in futures)
        host.remove_network("copies")
        assert not any("copies" in device.functions for device in host.devices)


def test_copies_share_the_program_in_the_object_store(cluster: Any) -> None:
    with HostManager(TWO) as host:
        host.add_network("n", squares(), copies=2)
        one, other = (device._sent["n"].payload for device in host.devices)  # type: ignore[attr-defined]
        assert one == other
        assert len({device._pid for device in host.devices}) == 2  # type: ignore[attr-defined]


def test_an_error_on_a_node_fails_its_request(cluster: Any) -> None:
    with HostManager(TWO[:1]) as host:
        host.add_network("n", squares())
        with pytest.raises(ExecutionError, match=r"is given shape \[2\], expected \[3\]"):
            host.run_network_blocking("n", [X[:2]])
        host.start_trace()
        assert output(host.run_network_blocking("n", [X])) == SQUARES
        (run,) = host.stop_trace().slices
        assert run.process == host.devices[0]._pid  # type: ignore[attr-defined]
        assert run.end >= run.start


def test_losing_a_node_loses_no_request(cluster: Any) -> None:
    """Four clients, and a node that is removed in the middle: everything is answered, and the lost device is restarted
    on the other node."""
    over = Event()

    def client(number: int) -> int:
        count = 0
        while not over.is_set():
            x = np.full(3, number + count % 100, np.float32)
            assert output(host.run_network("n", [x]).result(PATIENCE)) == (x**2).tolist()
            count += 1
        return count

    with HostManager(TWO, HostConfig(retries=3)) as host:
        host.add_network("n", squares(), copies=2)
        with ThreadPoolExecutor(4) as threads:
            counts = [threads.submit(client, number) for number in range(4)]
            try:
                sleep(1)
                cluster.remove_node(cluster.nodes.pop(), allow_graceful=False)
                assert _is_back(*host.devices)
                sleep(1)
            finally:
                over.set()
            answered = sum(count.result(PATIENCE) for count in counts)
        counted = host.statistics().networks["n"]
        assert (counted.requests_succeeded, counted.requests_failed) == (answered, 0)
        assert sum(device.restarts for device in host.devices) == 1  # type: ignore[attr-defined]
        assert output(host.run_network_blocking("n", [X])) == SQUARES


def _is_back(*devices: Any) -> bool:
    """Wait until one of the devices was lost and has been restarted; False if that does not happen in time."""
    for _ in range(round(min(PATIENCE, 120) * 10)):
        if any(device.restarts and device._actors for device in devices):
            return True
        sleep(0.1)
    return False


def test_the_state_of_a_sequence_dies_with_its_node_and_the_loss_is_reported(cluster: Any) -> None:
    import ray

    def add(sequence: str) -> float:
        return output(host.run_network_blocking("sum", [np.float32([1])], sequence=sequence))[0]

    def until_it_fails() -> None:
        for _ in range(10_000):  # the actor takes a moment to end
            add("a")

    with HostManager(TWO[:1]) as host:
        host.add_network("sum", squared_sum())
        assert [add("a") for _ in range(3)] == [1, 4, 9]
        (device,) = host.devices
        ray.kill(device._actors[0])  # type: ignore[attr-defined]
        with pytest.raises(DeviceLostError, match=r"its actor was lost"):
            until_it_fails()
        assert _is_back(device)
        with pytest.raises(DeviceLostError, match="was lost with its node"):
            add("a")
        assert add("b") == 1
        host.end_sequence("sum", "a")
        assert add("a") == 1


def test_a_cluster_without_room_is_reported(cluster: Any) -> None:
    large = DeviceConfig(kind="ray", threads=1, parameters={"num_cpus": "99", "start": "2"})
    with pytest.raises(DeviceLostError, match="no actor can be started in the cluster"):
        HostManager([large])
    with pytest.raises(ConfigurationError, match="patience is 'long'"):
        HostManager([DeviceConfig(kind="ray", parameters={"patience": "long"})])
