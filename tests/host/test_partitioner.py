"""Partitioning networks: the properties of Glow's PartitionerTest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import onert
from host.dividing import GREAT, WIDTH, assert_same, compiled, kinds, layers, partitioner, run
from onert.host import (
    DeviceInfo,
    PartitionError,
)
from onert.host.memory import GraphMemInfo, graph_memory
from onert.host.partitioner import Partitioner, Wanted
from onert.host.partitioner.costs import roofline
from onert.host.partitioner.report import received_bytes
from onert.host.partitioner.units import components, unit_graph
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

# ---- memory


def test_a_network_that_fits_is_not_partitioned() -> None:
    package = layers(WIDTH, WIDTH, WIDTH)
    found = partitioner(kinds(GREAT, GREAT)).partition("n", package)
    assert [node.name for node in found.dag.nodes] == ["n"]
    assert found.dag.nodes[0].package is package
    assert found.programs.keys() == {0}
    assert_same(package, found.dag)


@pytest.mark.parametrize(("depth", "room", "count"), [(4, 2600, 2), (4, 1700, 4), (6, 2600, 3), (6, 5000, 2)])
@pytest.mark.parametrize("branches", [1, 2])
def test_a_network_that_does_not_fit_is_split_into_the_fewest_partitions_that_do(
    depth: int, room: int, count: int, branches: int
) -> None:
    package = layers(*[WIDTH] * (1 + depth // branches), branches=branches)
    found = partitioner(kinds(*[room] * 6)).partition("n", package)
    dag = found.dag
    assert [node.name for node in dag.nodes] == [f"n_part{i}" for i in range(count)]
    assert all(node.size <= room for node in dag.nodes)
    assert dag.logical_devices == tuple(range(count))
    assert f"reference: {count} partitions, the slowest takes" in dag.notes[0]
    assert_same(package, dag)


def test_devices_of_different_sizes_are_used_according_to_their_memory() -> None:
    package = layers(*[WIDTH] * 5)
    found = partitioner(kinds(100, 2600, 300, 2600)).partition("n", package)
    assert len(found.dag.nodes) == 2


ERRORS: dict[str, tuple[Sequence[int], str]] = {
    "one part": (
        [1000] * 9,
        r"network 'n': the memory usage \(1\d\d\d bytes\) of one partition exceeds the available memory \(1000 bytes\)",
    ),
    "too few devices": (
        [1700, 1700],
        r"the number of given 'reference' devices \(2\) is fewer than the required minimal partitions \(4\) of at most "
        r"1700 bytes",
    ),
}


@pytest.mark.parametrize(("memories", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_the_error_for_too_little_memory_names_the_sizes(memories: Sequence[int], message: str) -> None:
    with pytest.raises(PartitionError, match=message):
        partitioner(kinds(*memories)).partition("n", layers(*[WIDTH] * 5))


def test_the_memory_of_a_set_of_operations_is_computed_exactly() -> None:
    package = layers(WIDTH, 8, 4)
    graph = compiled(package).main.subgraph
    names = [str(o) for o in graph.operations]
    assert len(names) == 4
    floats = 4
    assert graph_memory(graph, range(4)) == GraphMemInfo(
        inputs=16 * floats,
        outputs=4 * floats,
        constants=(16 * 8 + 8 + 8 * 4 + 4) * floats,
        activations=64 + 64,  # two are alive at a time, each aligned to a cache line
    )
    assert graph_memory(graph, [0, 1]) == GraphMemInfo(16 * 4, 8 * 4, (16 * 8 + 8) * 4, 64)
    assert graph_memory(graph, [2, 3]) == GraphMemInfo(8 * 4, 4 * 4, (8 * 4 + 4) * 4, 64)
    assert graph_memory(graph, [1, 2]) == GraphMemInfo(8 * 4, 4 * 4, (8 * 4 + 4) * 4, 64)
    assert graph_memory(graph, [0, 3]).inputs == 16 * 4 + 4 * 4
    once, twice = graph_memory(graph, [1]), graph_memory(graph, [1], contexts=2)
    assert (once.total, twice.total) == (64, 128)


# ---- balance


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("branches", [1, 3])
def test_a_network_is_split_into_partitions_of_similar_duration(count: int, branches: int) -> None:
    package = layers(*[64] * (16 // branches), branches=branches)
    found = partitioner(kinds(*[GREAT] * 5)).partition("n", package, Wanted(parts=count))
    assert len(found.dag.nodes) == count
    if count > 1:
        times = [node.estimate.seconds for node in found.dag.nodes if node.estimate is not None]
        assert max(times) <= 1.5 * sum(times) / count
    assert_same(package, found.dag)


def test_partitions_are_cut_where_tensors_are_small() -> None:
    """Six layers, with a narrow tensor between the third and the fourth."""
    package = layers(64, 64, 64, 8, 64, 64, 64)
    found = partitioner(kinds(GREAT, GREAT, peak_link_bw=1e6)).partition("n", package, Wanted(parts=2))
    assert received_bytes(found.dag, 1) == {0: 8 * 4}


def test_partitioning_by_profile_uses_measured_times() -> None:
    package = layers(*[64] * 9)
    found = partitioner(kinds(GREAT, GREAT)).partition("n", package, Wanted(parts=2, profile=True))
    times = [node.estimate.seconds for node in found.dag.nodes if node.estimate is not None]
    assert all(time > 0 for time in times)
    assert_same(package, found.dag)


@pytest.mark.parametrize(
    ("speeds", "bound"),
    [
        ({"peak_compute": 1e3}, 2 * WIDTH * WIDTH / 1e3),
        ({"peak_dram_bw": 1e3, "sram_capacity": 1000}, WIDTH * WIDTH * 4 / 1e3),  # the weights alone exceed the SRAM
        ({"peak_sram_bw": 1e3, "sram_capacity": 1000}, 3 * WIDTH * 4 / 1e3),
        ({"peak_sram_bw": 1e3, "sram_capacity": 2000}, (WIDTH + 3) * WIDTH * 4 / 1e3),
    ],
)
def test_an_operation_s_time_is_bound_by_its_arithmetic_or_memory_traffic(
    speeds: dict[str, float], bound: float
) -> None:
    graph = unit_graph(compiled(layers(WIDTH, WIDTH)))
    first, _ = roofline(graph, DeviceInfo(GREAT, **speeds))  # type: ignore[arg-type]
    assert first == pytest.approx(bound, rel=0.05)


def test_more_partitions_than_groups_of_operations_is_an_error() -> None:
    with pytest.raises(PartitionError, match=r"9 partitions are requested, but .* only 4 indivisible groups"):
        partitioner(kinds(*[GREAT] * 9)).partition("n", layers(8, 8, 8), Wanted(parts=9))


def test_more_partitions_than_devices_is_an_error() -> None:
    message = r"the number of given 'reference' devices \(1\) is fewer than the required minimal partitions \(2\)"
    with pytest.raises(PartitionError, match=message):
        partitioner(kinds(GREAT)).partition("n", layers(8, 8, 8), Wanted(parts=2))


def test_fusion_groups_are_not_split() -> None:
    package = layers(*[64] * 5)
    graph = unit_graph(compiled(package, "llvm"))
    assert len(graph.units) < len(graph.subgraph.operations)
    for count in (2, 3, 4):
        parts = Partitioner([kinds(*[GREAT] * 4, backend="llvm")], compiled)
        found = parts.partition("n", package, Wanted(parts=count))
        assert_same(package, found.dag, "llvm")


# ---- several backends


def test_operations_go_to_the_first_backend_that_accepts_them() -> None:
    package = layers(8, 8, 8, 8)
    first = kinds(GREAT, GREAT, non_supported_nodes=frozenset({"TANH"}))
    second = kinds(GREAT, backend="llvm", non_supported_nodes=frozenset({"FullyConnected"}))
    found = partitioner(first, second).partition("n", package)
    assert [node.backend_name for node in found.dag.nodes] == ["reference", "llvm"] * 3
    assert {node.logical_devices for node in found.dag.nodes[1::2]} == {(2,)}
    assert {device for node in found.dag.nodes[::2] for device in node.logical_devices} == {0, 1}
    inputs = [np.float32([[1, 2, 3, 4, 5, 6, 7, 8]]) / 8]
    (want,) = onert.Execution(compiled(package)).run(inputs).values()
    np.testing.assert_allclose(run(found.dag, inputs)[0], want, rtol=1e-5)


def test_supported_nodes_limits_the_operations_given_to_a_device() -> None:
    package = layers(8, 8, 8)
    first = kinds(GREAT, GREAT, supported_nodes=frozenset({"FullyConnected"}))
    found = partitioner(first, kinds(GREAT, GREAT, backend="llvm")).partition("n", package)
    assert [node.backend_name for node in found.dag.nodes] == ["reference", "llvm"] * 2
    graphs = [node.package.model.primary for node in found.dag.nodes]
    assert [{o.op.label for o in g.operations} for g in graphs] == [{"FullyConnected"}, {"Unary.TANH"}] * 2


def test_a_network_that_one_backend_can_run_alone_is_not_split_between_backends() -> None:
    package = layers(8, 8, 8)
    refusing = kinds(GREAT, non_supported_nodes=frozenset({"FullyConnected", "Unary"}))
    found = partitioner(refusing, kinds(GREAT, backend="llvm")).partition("n", package)
    assert [(node.name, node.backend_name) for node in found.dag.nodes] == [("n", "llvm")]


def test_one_error_lists_all_unsupported_operations() -> None:
    refusing = [
        kinds(GREAT, non_supported_nodes=frozenset({"TANH"})),
        kinds(GREAT, backend="llvm", supported_nodes=frozenset({"Conv2D"})),
    ]
    with pytest.raises(PartitionError) as caught:
        partitioner(*refusing).partition("n", layers(8, 8, 8))
    text = str(caught.value)
    assert "network 'n': 2 operations are not supported by any of the provided backends" in text
    assert text.count("reference: the configuration of its devices excludes Unary.TANH") == 2
    assert text.count("llvm: the configuration of its devices excludes Unary.TANH") == 2


def test_a_backend_s_region_that_does_not_fit_is_split() -> None:
    package = layers(*[WIDTH] * 5)
    first = kinds(2600, 2600, non_supported_nodes=frozenset({"ADD"}))
    b = Builder("more")
    x = b.input(TensorType(DType.FLOAT32, (1, WIDTH)), "x")
    rng = np.random.default_rng(0)
    end = x
    for _ in range(4):
        weights = b.constant(rng.normal(size=(WIDTH, WIDTH)).astype(np.float32))
        end = b.add(FullyConnected(), end, weights, b.constant(np.zeros(WIDTH, np.float32)))
    package = Package((b.model([b.add(Binary(BinaryKind.ADD), end, end)]),), "more")
    found = partitioner(first, kinds(GREAT, backend="llvm")).partition("n", package)
    assert [node.backend_name for node in found.dag.nodes] == ["reference", "reference", "llvm"]
    assert [node.logical_devices for node in found.dag.nodes] == [(0,), (1,), (2,)]


# ---- units


def test_strongly_connected_components_come_in_dependency_order() -> None:
    found = components([[1], [2], [0, 3], [], [3, 5], [4]])
    assert sorted(map(sorted, found)) == [[0, 1, 2], [3], [4, 5]]
    assert [sorted(c) for c in found].index([3]) < [sorted(c) for c in found].index([0, 1, 2])


def test_operations_on_shared_state_and_those_between_them_stay_together() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (4,)), "x")
    total = b.variable(TensorType(DType.FLOAT32, (4,)), "total")
    first = b.add(Binary(BinaryKind.ADD), x, total)  # reads the variable
    between = b.add(Unary(UnaryKind.TANH), first)
    last = b.add(Binary(BinaryKind.MUL), between, total)  # reads it too
    b.update(total, first)
    end = b.add(Unary(UnaryKind.EXP), last)
    package = Package((b.model([end]),))
    graph = unit_graph(compiled(package))
    assert [len(unit) for unit in graph.units] == [3, 1]
    dag = partitioner(kinds(GREAT, GREAT)).partition("n", package, Wanted(parts=2)).dag
    assert [len(node.package.model.primary.state) for node in dag.nodes] == [1, 0]


def test_a_network_with_dynamic_inputs_is_not_split() -> None:
    """Even the shape operations, which another partition could compute, stay."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (None, 4)), "x")
    shape = b.add(ShapeOf(), x)
    end = b.add(Unary(UnaryKind.EXP), x)
    package = Package((b.model([b.add(Reshape(), end, shape)]),))
    graph = unit_graph(compiled(package))
    assert len(graph.subgraph.operations) > 1
    assert [sorted(unit) for unit in graph.units] == [list(range(len(graph.subgraph.operations)))]
    with pytest.raises(PartitionError, match="indivisible groups of operations"):
        partitioner(kinds(GREAT, GREAT)).partition("n", package, Wanted(parts=2))
