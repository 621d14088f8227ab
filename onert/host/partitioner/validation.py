"""Validate a division: the DAG's rules, and the devices' memory, number, and limits of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onert.host.dag import DAG
from onert.host.errors import PartitionError

from .assignment import Kind


def validate(dag: DAG, kinds: Sequence[Kind]) -> None:
    """Raises PartitionError if a network as divided cannot be placed on these devices."""
    dag.validate()
    by_name = {kind.name: kind for kind in kinds}
    for node in dag.nodes:
        if node.backend_name not in by_name:
            raise PartitionError(
                f"network {dag.name!r}: partition {node.name!r} is for backend {node.backend_name!r}, expected one of "
                f"{', '.join(by_name)}"
            )
    _memory(dag, by_name)
    _devices(dag, by_name)
    _inputs(dag, by_name)


def _memory(dag: DAG, kinds: Mapping[str, Kind]) -> None:
    for node in dag.nodes:
        room = kinds[node.backend_name].room(1)
        usage = node.size * node.replication_count
        if usage > room:
            raise PartitionError(
                f"network {dag.name!r}: the memory usage ({usage} bytes) of partition {node.name!r} exceeds the "
                f"available memory ({room} bytes) of the devices of backend {node.backend_name!r}"
            )
    for logical, (backend, usage) in _loads(dag).items():
        room = kinds[backend].room(1)
        if usage > room:
            raise PartitionError(
                f"network {dag.name!r}: the memory usage ({usage} bytes) of logical device {logical} exceeds the "
                f"available memory ({room} bytes) of the devices of backend {backend!r}"
            )


def _loads(dag: DAG) -> dict[int, tuple[str, int]]:
    """The backend and the used bytes of each logical device."""
    found: dict[int, tuple[str, int]] = {}
    for node in dag.nodes:
        for logical in node.logical_devices:
            backend, usage = found.get(logical, (node.backend_name, 0))
            if backend != node.backend_name:
                raise PartitionError(
                    f"network {dag.name!r}: logical device {logical} has partitions of backends {backend!r} and "
                    f"{node.backend_name!r}, expected one"
                )
            found[logical] = (backend, usage + node.size * node.replication_count)
    return found


def _devices(dag: DAG, kinds: Mapping[str, Kind]) -> None:
    for name, kind in kinds.items():
        needed = sum(backend == name for backend, _ in _loads(dag).values())
        if needed > len(kind.infos):
            raise PartitionError(
                f"network {dag.name!r}: the number of given {name!r} devices ({len(kind.infos)}) is fewer than the "
                f"required minimal partitions ({needed})"
            )


def _inputs(dag: DAG, kinds: Mapping[str, Kind]) -> None:
    for node in dag.nodes:
        most = kinds[node.backend_name].info.input_count_max
        if most and len(node.inputs) > most:
            raise PartitionError(
                f"network {dag.name!r}: the resource count usage ({len(node.inputs)} inputs) of partition "
                f"{node.name!r} exceeds the available resource count ({most})"
            )
