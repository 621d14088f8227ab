"""Partitions configured by the user, copies of networks, and how partitions are printed."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from attrs import evolve

from host.dividing import GREAT, assert_same, kinds, layers, partitioner
from onert.host import (
    DAG,
    BackendHints,
    PartitionConfig,
    PartitionError,
    partition_svg,
    partition_table,
)
from onert.host.partitioner import Kind, Wanted
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

# ---- by hand


def by_hand(package: Package, config: PartitionConfig, *of: Kind) -> DAG:
    return partitioner(*of).partition("n", package, Wanted(config=config)).dag


def test_a_user_assigns_operations_to_partitions_and_devices() -> None:
    package = layers(8, 8, 8)
    config = PartitionConfig(
        2,
        {0: 0, 1: 0},
        partition_names=("front", "back"),
        backend_hints=(BackendHints(1), BackendHints(0)),
        logical_ids=((0, 1), (2,)),
        replication_count={1: 3},
    )
    dag = by_hand(package, config, kinds(GREAT, GREAT, GREAT))
    assert [node.name for node in dag.nodes] == ["front", "back"]
    assert [node.logical_devices for node in dag.nodes] == [(0, 1), (2,)]
    assert [node.replication_count for node in dag.nodes] == [1, 3]
    assert [node.hints.execution_units for node in dag.nodes] == [1, 0]
    assert [len(node.package.model.primary.operations) for node in dag.nodes] == [2, 2]
    assert_same(package, dag)


def test_operations_can_be_named_by_their_output_tensor() -> None:
    b = Builder("two")
    x = b.input(TensorType(DType.FLOAT32, (4,)), "x")
    y = b.add(Unary(UnaryKind.TANH), x)
    z = b.add(Unary(UnaryKind.EXP), y)
    model = b.model([z])
    operands = list(model.primary.operands)
    operands[y] = evolve(operands[y], name="middle")
    package = Package((evolve(model, subgraphs=(evolve(model.primary, operands=tuple(operands)),)),))
    dag = by_hand(package, PartitionConfig(2, {"middle": 1}), kinds(GREAT, GREAT))
    labels = [[o.op.label for o in node.package.model.primary.operations] for node in dag.nodes]
    assert labels == [["Unary.EXP"], ["Unary.TANH"]]
    assert dag.parents == ((1,), ())


def test_each_partition_can_have_its_own_backend() -> None:
    config = PartitionConfig(2, {0: 0, 1: 0}, backend_names=("llvm", "reference"))
    dag = by_hand(layers(8, 8, 8), config, kinds(GREAT), kinds(GREAT, backend="llvm"))
    assert [node.backend_name for node in dag.nodes] == ["llvm", "reference"]


HANDS: dict[str, tuple[PartitionConfig, str]] = {
    "a circle": (PartitionConfig(2, {0: 0, 1: 1, 2: 0, 3: 1}), "a cycle is detected among partitions"),
    "no partitions": (PartitionConfig(0), "0 partitions are requested, expected at least 1"),
    "a partition that is not there": (PartitionConfig(2, {0: 2}), "partition 2 is named, expected 0 to 1"),
    "too few names": (PartitionConfig(2, partition_names=("a",)), "partition_names has 1 entries for 2 partitions"),
    "a backend that is not there": (
        PartitionConfig(1, backend_names=("npu",)),
        "no device has the backend 'npu', expected one of reference",
    ),
    "two left over": (PartitionConfig(3, {0: 0}), "is not listed, and 2 partitions are left"),
    "none left over": (PartitionConfig(2, {0: 0, 1: 1}), "is not listed, and 0 partitions are left"),
    "an empty one": (PartitionConfig(3, {0: 0, 1: 0, 2: 1, 3: 1}), "partition 2 has no operation"),
    "a tensor that is not there": (PartitionConfig(2, {"nothing": 0}), "no operation produces a tensor 'nothing'"),
    "too many devices": (PartitionConfig(3, {0: 0, 1: 1}), r"devices \(2\) is fewer than the required minimal part"),
    "too large": (
        PartitionConfig(2, {0: 0}, replication_count={1: 1 << 30}),
        r"the memory usage \(\d+ bytes\) of partition 'n_part1' exceeds the available memory \(1073741824 bytes\)",
    ),
    "too large together": (
        PartitionConfig(2, {0: 0}, logical_ids=((0,), (0,)), replication_count={0: 1 << 21, 1: 1 << 20}),
        r"the memory usage \(\d+ bytes\) of logical device 0 exceeds",
    ),
}


@pytest.mark.parametrize(("config", "message"), HANDS.values(), ids=HANDS.keys())
def test_impossible_configured_partitions_are_rejected(config: PartitionConfig, message: str) -> None:
    with pytest.raises(PartitionError, match=message):
        by_hand(layers(8, 8, 8), config, kinds(GREAT, GREAT))


def test_partitions_of_two_backends_on_one_logical_device_are_rejected() -> None:
    config = PartitionConfig(2, {0: 0}, backend_names=("reference", "llvm"), logical_ids=((0,), (0,)))
    with pytest.raises(PartitionError, match="logical device 0 has partitions of backends 'reference' and 'llvm'"):
        by_hand(layers(8, 8, 8), config, kinds(GREAT), kinds(GREAT, backend="llvm"))


def test_the_number_of_inputs_of_a_partition_is_limited() -> None:
    package = layers(8, 8, branches=3)
    config = PartitionConfig(2, {6: 1, 7: 1})  # the sums of three branches
    assert len(by_hand(package, config, kinds(GREAT, GREAT, input_count_max=3)).nodes) == 2
    with pytest.raises(
        PartitionError, match=r"\(3 inputs\) of partition 'n_part1' exceeds the available resource coun"
    ):
        by_hand(package, config, kinds(GREAT, GREAT, input_count_max=2))


# ---- copies


@pytest.mark.parametrize(("devices", "parts", "copies"), [(4, 2, 2), (5, 2, 2), (6, 2, 3), (3, 1, 3), (3, 2, 1)])
def test_a_network_is_copied_to_saturate_the_devices(devices: int, parts: int, copies: int) -> None:
    package = layers(8, 8, 8)
    dag = partitioner(kinds(*[GREAT] * devices)).partition("n", package, Wanted(parts=parts, copies=None)).dag
    assert [node.instance_count for node in dag.nodes] == [copies] * parts
    places = [device for node in dag.nodes for device in node.logical_devices]
    assert sorted(places) == list(range(parts * copies))


def test_the_requested_number_of_copies_is_made_or_an_error_raised() -> None:
    whole = partitioner(kinds(*[GREAT] * 4))
    assert whole.partition("n", layers(8, 8), Wanted(copies=3)).dag.nodes[0].logical_devices == (0, 1, 2)
    for copies in (0, 3):
        with pytest.raises(PartitionError, match=f"{copies} copies on 2 devices each are requested, expected 1 to 2"):
            whole.partition("n", layers(8, 8), Wanted(parts=2, copies=copies))


# ---- pictures


def test_partitions_are_printed_as_a_table() -> None:
    dag = partitioner(kinds(GREAT, GREAT)).partition("n", layers(8, 8, 8), Wanted(parts=2)).dag
    lines = str(partition_table(dag)).splitlines()
    assert lines[0].split()[:6] == ["partition", "backend", "devices", "copies", "operations", "bytes"]
    assert lines[0].split()[6:] == ["constants", "activations", "ms", "received"]
    assert [line.split()[:5] for line in lines[1:]] == [
        ["n_part0", "reference", "0", "1", "2"],
        ["n_part1", "reference", "1", "1", "2"],
    ]
    assert [line.split()[-1] for line in lines[1:]] == ["0", "32"]
    assert [line.split()[5] for line in lines[1:]] == [str(node.size) for node in dag.nodes]


def test_partitions_are_drawn_as_svg() -> None:
    dag = partitioner(kinds(*[GREAT] * 3)).partition("a<b", layers(8, 8, 8, 8), Wanted(parts=3)).dag
    root = ElementTree.fromstring(partition_svg(dag))
    space = "{http://www.w3.org/2000/svg}"
    boxes = [e for e in root.iter(f"{space}rect") if e.get("class") == "partition"]
    texts = [e.text for e in root.iter(f"{space}text")]
    assert len(boxes) == 3
    assert len(list(root.iter(f"{space}line"))) == 2
    assert texts[0] == "a<b"
    assert texts.count("32 bytes") == 2
    assert {"a<b_part0", "a<b_part1", "a<b_part2"} <= set(texts)
