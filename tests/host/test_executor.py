"""Executing DAGs of partitions: the properties of Glow's ThreadPoolExecutorTest, on gated devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Barrier
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from patience import PATIENCE

import onert
from host.gated import GatedDevice, squares
from onert.backend import TensorInfo
from onert.host import (
    CompiledFunction,
    DeadlineError,
    DeviceManager,
    HostError,
    NetworkNotFoundError,
    RequestRefusedError,
)
from onert.host.dag import DAG, DAGNode
from onert.host.device_manager import Result
from onert.host.network import Network, PlacedNode
from onert.host.requests import Request, WaitingRequest
from onert.host.requests.executor import Executor
from onert.ir import Array, DType

INFO = TensorInfo("x", DType.FLOAT32, (3,))
OUT, IN = 100, 0
Edges = Mapping[str, Sequence[str]]

DIAMOND: Edges = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}
TWO_CHAINS: Edges = {
    "alpha": (), "beta": ("alpha",), "gamma": ("beta",), "delta": (), "eps": ("delta",), "zeta": ("eps",),
}  # fmt: skip
CHAIN: Edges = {"a": (), "b": ("a",), "c": ("b",)}
WIDE: Edges = {"a": (), **{f"b{i}": ("a",) for i in range(8)}, "c": tuple(f"b{i}" for i in range(8))}
DAGS = {"diamond": DIAMOND, "two chains": TWO_CHAINS, "chain": CHAIN, "wide": WIDE, "one": {"a": ()}}


def graph(edges: Edges) -> DAG:
    """Nodes that each compute 1 plus the sum of the values they read; a node without parents reads the input."""
    numbers = {name: at + 1 for at, name in enumerate(edges)}
    nodes = tuple(
        DAGNode(name, squares(), tuple(numbers[p] for p in parents) or (IN,), (numbers[name],), 1, "reference")
        for name, parents in edges.items()
    )
    used = {p for parents in edges.values() for p in parents}
    ends = [number for name, number in numbers.items() if name not in used]
    dag = DAG("n", nodes, ((INFO, IN),), tuple((evolve(INFO, name=f"y{i}"), end) for i, end in enumerate(ends)))
    dag.validate()
    return dag


def expected(edges: Edges, x: float) -> list[float]:
    """The expected outputs of a `graph`."""
    values: dict[str, float] = {}
    for name, parents in edges.items():
        values[name] = 1 + (sum(values[p] for p in parents) if parents else x)
    used = {p for parents in edges.values() for p in parents}
    return [value for name, value in values.items() if name not in used]


def adding(function: str, inputs: Sequence[Array]) -> list[Array]:
    return [np.sum(inputs, axis=0) + np.float32(1)]


PROGRAM = onert.compile(squares(), backends=("reference",), num_threads=1)


def placed(dag: DAG, devices: Sequence[DeviceManager]) -> list[PlacedNode]:
    """The nodes placed on the devices in turn."""
    found = []
    for at, node in enumerate(dag.nodes):
        device = devices[at % len(devices)]
        device.add_network([CompiledFunction(node.name, node.package, onert.Options(), PROGRAM)])
        found.append(PlacedNode(node, [device], [node.name]))
    return found


class Run:
    """A network on gated devices, an executor, and the results it has reported."""

    def __init__(
        self,
        edges: Edges,
        count: int = 1,
        outputs: Callable[[str, Sequence[Array]], Sequence[Array]] = adding,
        *,
        is_open: bool = True,
    ) -> None:
        self.devices = [GatedDevice(f"gated{i}", outputs, is_open=is_open) for i in range(count)]
        for device in self.devices:
            device.init()
        self.dag = graph(edges)
        self.network = Network(self.dag, placed(self.dag, self.devices), 1)
        self.reported: SimpleQueue[tuple[Request, Result]] = SimpleQueue()
        self.executor = Executor(lambda request, result: self.reported.put((request, result)))

    def request(self, x: float = 0.0, timeout: float | None = None) -> WaitingRequest:
        return WaitingRequest(self.network, (np.full(3, x, np.float32),), 0, 1, perf_counter(), timeout)

    def __call__(self, x: float = 0.0, *, here: bool = False, timeout: float | None = None) -> Result:
        request = self.request(x, timeout)
        immediate = self.executor.run(request, here=here)
        if immediate is not None:
            return immediate
        reported, result = self.reported.get(timeout=PATIENCE)
        assert reported is request
        return result

    def began(self) -> list[str]:
        return [device.begun() for device in self.devices for _ in range(device.began.qsize())]

    def stop(self) -> None:
        for device in self.devices:
            device.stop()
        assert self.reported.empty()


def numbers(result: Result) -> list[float]:
    assert not isinstance(result, BaseException), result
    assert all((array == array[0]).all() for array in result)
    return [float(array[0]) for array in result]


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize("edges", DAGS.values(), ids=DAGS.keys())
def test_every_node_runs_once_with_the_outputs_of_its_parents(edges: Edges, devices: int, here: bool) -> None:
    run = Run(edges, devices)
    for x in range(5):
        assert numbers(run(float(x), here=here)) == expected(edges, float(x))
        assert sorted(run.began()) == sorted(edges)
    run.stop()


@pytest.mark.parametrize("edges", DAGS.values(), ids=DAGS.keys())
def test_concurrent_requests_do_not_mix(edges: Edges) -> None:
    run = Run(edges, 2)
    requests = {}
    for x in range(40):
        request = run.request(float(x))
        requests[request] = float(x)
        assert run.executor.run(request, here=False) is None  # all have the same request number
    for _ in range(40):
        request, result = run.reported.get(timeout=PATIENCE)
        assert numbers(result) == expected(edges, requests.pop(request))
    assert requests == {}
    assert len(run.network.idle_states) <= 40
    run.stop()


def test_execution_states_are_reused() -> None:
    run = Run(DIAMOND)
    for x in range(10):
        run(float(x))
    (state,) = run.network.idle_states
    assert state.values == {}
    assert state.request is None
    run.stop()


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize("devices", [1, 2, 6])
def test_nodes_that_depend_on_a_failed_node_are_not_started(devices: int, here: bool) -> None:
    def outputs(function: str, inputs: Sequence[Array]) -> Sequence[Array]:
        if function == "eps":
            raise onert.ExecutionError("eps failed")
        return adding(function, inputs)

    run = Run(TWO_CHAINS, devices, outputs)
    for _ in range(10):
        result = run(here=here)
        assert isinstance(result, onert.ExecutionError)
        assert str(result) == "eps failed"
        began = run.began()
        assert "zeta" not in began
        assert "eps" in began
        assert len(began) == len(set(began))
    run.stop()


def test_the_first_of_two_errors_is_reported() -> None:
    turn = Barrier(2)
    first = SimpleQueue[None]()

    def outputs(function: str, inputs: Sequence[Array]) -> Sequence[Array]:
        if function in "bc":
            turn.wait(PATIENCE)
            if function == "c":
                first.get(timeout=PATIENCE)
            raise onert.ExecutionError(function)
        return adding(function, inputs)

    run = Run(DIAMOND, 3, outputs)  # b and c are on different devices
    state_settled = run.network.nodes[1].devices[0].worker  # type: ignore[attr-defined]
    original = state_settled._tell

    def notifying(done: Any, result: Any) -> None:
        original(done, result)
        first.put(None)

    state_settled._tell = notifying
    result = run()
    assert str(result) == "b"
    assert run.reported.empty()
    run.stop()


FAULTS: dict[str, tuple[Callable[[Run], object], type[Exception]]] = {
    "a node that the device lost": (lambda run: run.devices[-1].evict_network("d"), NetworkNotFoundError),
    "a root that the device lost": (lambda run: run.devices[0].evict_network("a"), NetworkNotFoundError),
    "devices that were stopped": (lambda run: [d.stop() for d in run.devices], RequestRefusedError),
    "a device that was stopped": (lambda run: run.devices[-1].stop(), RequestRefusedError),
    "a device that gives too little": (lambda run: setattr(run.devices[0], "outputs", lambda f, i: []), HostError),
}


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize(("fault", "error"), FAULTS.values(), ids=FAULTS.keys())
def test_every_failure_gives_exactly_one_answer(
    fault: Callable[[Run], object], error: type[Exception], here: bool
) -> None:
    run = Run(DIAMOND, 2)
    fault(run)
    for _ in range(3):
        assert isinstance(run(here=here), error)
        assert run.reported.empty()
    run.stop()


def test_a_request_past_its_deadline_ends_between_two_nodes() -> None:
    run = Run(CHAIN, 1, is_open=False)
    request = run.request(timeout=0.0)
    assert run.executor.run(request, here=False) is None
    run.devices[0].gate.set()
    reported, result = run.reported.get(timeout=PATIENCE)
    assert reported is request
    assert isinstance(result, DeadlineError)
    assert run.began() == ["a"]
    run.stop()


def test_branches_run_concurrently_on_their_own_devices() -> None:
    meeting = Barrier(2)

    def outputs(function: str, inputs: Sequence[Array]) -> Sequence[Array]:
        if function in "bc":
            meeting.wait(PATIENCE)  # passes only if both run concurrently
        return adding(function, inputs)

    run = Run(DIAMOND, 3, outputs)
    assert numbers(run()) == expected(DIAMOND, 0.0)
    run.stop()


def test_threads_that_run_nodes_themselves_get_their_own_answers() -> None:
    from onert.host import DeviceConfig
    from onert.host.devices.kinds import made

    devices = made([DeviceConfig(threads=1), DeviceConfig(threads=1)])
    dag = graph(CHAIN)
    network = Network(dag, placed(dag, devices), 1)
    done: dict[Request, SimpleQueue[Result]] = {}
    executor = Executor(lambda request, result: done[request].put(result))

    def ask(x: int) -> bool:
        for _ in range(50):
            request = WaitingRequest(network, (np.full(3, x, np.float32),), 0, x, perf_counter(), None)
            done[request] = SimpleQueue()
            result = executor.run(request, here=True)
            if result is None:
                result = done[request].get(timeout=PATIENCE)
            assert numbers(result) == [float(x) ** 8]
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(ask, range(4), timeout=PATIENCE))
    for device in devices:
        device.stop()


def test_a_node_goes_to_the_least_loaded_device_then_the_least_recently_used() -> None:
    devices = [GatedDevice(f"gated{i}") for i in range(3)]
    for device in devices:
        device.init()
        device.add_network([CompiledFunction("a", squares(), onert.Options(), PROGRAM)])
    node = PlacedNode(graph({"a": ()}).nodes[0], devices, ["a"])
    chosen = [node.choose()[0].name for _ in range(6)]
    assert chosen == ["gated0", "gated1", "gated2"] * 2
    devices[0].run_function("a", [], lambda _: None)
    devices[2].run_function("a", [], lambda _: None)
    assert [node.choose()[0].name for _ in range(3)] == ["gated1"] * 3
    for device in devices:
        device.stop()


def test_copies_on_one_device_are_used_in_turn() -> None:
    device = GatedDevice()
    device.init()
    node = PlacedNode(graph({"a": ()}).nodes[0], [device], ["a", "a_replicated1"])
    assert [node.choose()[1] for _ in range(4)] == ["a", "a_replicated1"] * 2
    device.stop()


def test_a_network_of_a_single_partition_needs_no_execution_state() -> None:
    run = Run({"a": ()})
    assert numbers(run()) == [1.0]
    assert run.network.idle_states == []
    run.stop()
