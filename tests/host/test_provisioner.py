"""DAGs and their placement on devices: the properties of Glow's ProvisionerTest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

import onert
from host.gated import GatedDevice, products, squares
from host.test_executor import CHAIN, DIAMOND, graph
from onert.backend import Program
from onert.compiler import Options
from onert.host import DAG, BackendHints, DAGNode, DeviceNotFoundError, OutOfDeviceMemoryError, PartitionError
from onert.host.memory import program_memory
from onert.host.provisioner import Provisioner, assign, evict
from onert.ir import Package


class Compiler:
    """Compiles and records what was compiled."""

    def __init__(self) -> None:
        self.compiled: list[tuple[str, Options]] = []

    def __call__(self, package: Package, options: Options) -> Program:
        self.compiled.append((package.name, options))
        return onert.compile(package, options)


def devices(*memories: int) -> list[GatedDevice]:
    found = [GatedDevice(f"gated{i}", memory=memory) for i, memory in enumerate(memories)]
    for device in found:
        device.init()
    return found


def stop(made: Sequence[GatedDevice]) -> None:
    for device in made:
        device.stop()


def sized(sizes: Sequence[int], logical: Sequence[Sequence[int]] | None = None) -> DAG:
    """A chain of nodes of the given sizes, each on its own logical device unless `logical` says otherwise."""
    edges = {f"n{i}": (f"n{i - 1}",) if i else () for i in range(len(sizes))}
    found = graph(edges)
    places = [(i,) for i in range(len(sizes))] if logical is None else logical
    nodes = (
        evolve(node, size=size, logical_devices=tuple(place))
        for node, size, place in zip(found.nodes, sizes, places, strict=True)
    )
    return evolve(found, nodes=tuple(nodes))


def names(places: dict[int, Any]) -> dict[int, str]:
    return {logical: device.name for logical, device in places.items()}


# ---- assigning


def test_larger_nodes_go_to_the_devices_with_the_most_room_and_all_are_spread_evenly() -> None:
    made = devices(1000, 3000, 2000)
    assert names(assign(sized([100, 300, 200]), made)) == {1: "gated1", 2: "gated2", 0: "gated0"}
    assert names(assign(sized([1, 1, 1, 1, 1, 1]), made)) == {
        0: "gated1", 1: "gated2", 2: "gated0", 3: "gated1", 4: "gated2", 5: "gated0",
    }  # fmt: skip
    stop(made)


def test_replicas_are_on_different_devices_even_if_one_has_the_most_room() -> None:
    """n1, the largest node, takes gated0; in the next round gated1, which has more room left, comes first."""
    made = devices(1000, 1000)
    places = names(assign(sized([10, 500], [(0, 1), (2,)]), made))
    assert places[2] == "gated0"
    assert {places[0], places[1]} == {"gated0", "gated1"}
    stop(made)


def test_a_node_that_does_not_fit_on_the_next_device_goes_where_there_is_room() -> None:
    made = devices(1000, 300)
    assert names(assign(sized([400, 350]), made)) == {0: "gated0", 1: "gated0"}
    stop(made)


def test_copies_of_a_node_are_on_different_devices() -> None:
    made = devices(5000, 1000, 1000)
    places = assign(sized([100, 10], [(0, 1, 2), (3,)]), made)
    assert len({places[i].name for i in range(3)}) == 3
    stop(made)


def test_the_error_for_a_logical_device_that_fits_nowhere_names_the_sizes() -> None:
    made = devices(1000, 900)
    with pytest.raises(
        OutOfDeviceMemoryError,
        match="logical device 0 needs 800 bytes, more than is free on any device of backend 'reference': "
        "gated0 100, gated1 0",
    ):
        assign(sized([800, 900, 900]), made)
    stop(made)


def test_a_backend_that_no_device_has_is_rejected() -> None:
    made = devices(1000)
    dag = sized([1, 1])
    dag = evolve(dag, nodes=(dag.nodes[0], evolve(dag.nodes[1], backend_name="other")))
    with pytest.raises(DeviceNotFoundError, match="network 'n': no device has the backend 'other'"):
        assign(dag, made)
    stop(made)


# ---- provisioning


def test_six_networks_are_spread_over_six_devices() -> None:
    made = devices(*[1 << 20] * 6)
    provisioner = Provisioner(onert.compile)
    for number in range(6):
        dag = evolve(graph({"a": ()}), name=f"n{number}")
        (placed,) = provisioner.provision(dag, made, Options())
        assert [d.name for d in placed.devices] == [f"gated{number}"]
    assert [d.functions for d in made] == [(f"n{i}/a",) for i in range(6)]
    stop(made)


def test_each_partition_is_compiled_once_for_all_its_devices() -> None:
    made = devices(1 << 20, 1 << 20, 1 << 20)
    compiler = Compiler()
    dag = sized([100, 100], [(0, 1, 2), (0,)])
    dag = evolve(dag, nodes=(dag.nodes[0], evolve(dag.nodes[1], replication_count=3)))
    placed = Provisioner(compiler).provision(dag, made, Options())
    assert len(compiler.compiled) == 2
    assert placed[1].functions == ("n/n1", "n/n1_replicated1", "n/n1_replicated2")
    programs = {id(f.program) for d in made for f in d.programs.values() if f.name.startswith("n/n1")}
    assert len(programs) == 1
    assert sorted(len(d.functions) for d in made) == [1, 1, 4]
    evict(dag, placed)
    assert [d.functions for d in made] == [(), (), ()]
    stop(made)


def test_partitions_are_compiled_for_the_threads_their_hints_request() -> None:
    made = devices(1 << 20)
    made[0].threads = 4
    compiler = Compiler()
    dag = sized([1, 1], [(0,), (0,)])
    first = evolve(dag.nodes[0], hints=BackendHints(execution_units=2))
    second = evolve(dag.nodes[1], hints=BackendHints(execution_units=8), prepared=True)
    Provisioner(compiler).provision(evolve(dag, nodes=(first, second)), made, Options())
    assert [o.num_threads for _, o in compiler.compiled] == [2, 4]
    assert [o.optimize for _, o in compiler.compiled] == [True, False]
    assert {o.backends for _, o in compiler.compiled} == {("reference",)}
    stop(made)


def test_nothing_is_left_on_the_devices_if_one_partition_does_not_fit() -> None:
    small = program_memory(onert.compile(squares())).total
    made = devices(small, small + 100)
    nodes = sized([1, 1]).nodes
    dag = evolve(sized([1, 1]), nodes=(nodes[0], evolve(nodes[1], package=products(100))))
    with pytest.raises(OutOfDeviceMemoryError, match="does not have enough memory for 'n/n1': it needs 1200 bytes"):
        Provisioner(onert.compile).provision(dag, made, Options())
    assert [d.functions for d in made] == [(), ()]
    assert [d.available_memory for d in made] == [small, small + 100]
    assert "n/n0" in [name for d in made for name in d.evicted]
    stop(made)


# ---- DAGs


def node(name: str, inputs: Sequence[int], outputs: Sequence[int], **more: Any) -> DAGNode:
    return DAGNode(name, squares(), tuple(inputs), tuple(outputs), 1, "reference", **more)


INVALID: dict[str, tuple[Sequence[DAGNode], str]] = {
    "a circle of two": (
        [node("a", [0, 2], [1]), node("b", [1], [2, 3])],
        "network 'n': a cycle is detected among partitions 'a', 'b'",
    ),
    "one that waits for itself": ([node("a", [0, 3], [3])], "a cycle is detected among partitions 'a'"),
    "a circle beside a chain": (
        [node("x", [0], [3]), node("a", [2], [1]), node("b", [1, 3], [2])],
        "a cycle is detected among partitions 'a', 'b'",
    ),
    "an isolated node": ([node("a", [0], [3]), node("b", [0], [1])], "an isolated node is detected: 'b'"),
    "one name twice": ([node("a", [0], [1]), node("a", [1], [3])], "two partitions are called 'a'"),
    "one value twice": ([node("a", [0], [3]), node("b", [0], [3])], "'b' produces value 3 a second time"),
    "an input made again": ([node("a", [0], [0, 3])], "'a' produces value 0 a second time"),
    "a value of nobody's": ([node("a", [0, 7], [3])], "'a' reads 7, which nothing produces"),
    "an output of nobody's": ([node("a", [0], [1])], "no partition produces output value 3"),
    "no device": ([node("a", [0], [3], logical_devices=())], "'a' is on no device"),
    "no copy": ([node("a", [0], [3], replication_count=0)], "'a' is on no device"),
}


@pytest.mark.parametrize(("nodes", "message"), INVALID.values(), ids=INVALID.keys())
def test_invalid_dags_are_rejected(nodes: Sequence[DAGNode], message: str) -> None:
    plain = graph({"a": ()})
    (info, _), (output, _) = plain.inputs[0], plain.outputs[0]
    dag = DAG("n", tuple(nodes), ((info, 0),), ((output, 3),))
    with pytest.raises(PartitionError, match=message):
        dag.validate()


def test_a_dag_has_parents_children_roots_and_a_topological_order() -> None:
    dag = graph(DIAMOND)
    assert dag.parents == ((), (0,), (0,), (1, 2))
    assert dag.children == ((1, 2), (3,), (3,), ())
    assert dag.roots == (0,)
    assert dag.order == (0, 1, 2, 3)
    assert graph(CHAIN).order == (0, 1, 2)
    assert sized([1, 1], [(0, 2), (1,)]).logical_devices == (0, 1, 2)
