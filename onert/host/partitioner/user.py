"""`PartitionConfig`: a user-defined division."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import field, frozen

from onert.host.dag import BackendHints
from onert.host.errors import PartitionError
from onert.ir.value import Value

from .build import Part
from .costs import Seconds
from .units import UnitGraph

_INDEX = re.compile(r"operation (\d+)\b")


@frozen
class PartitionConfig(Value):
    """A user-defined division.

    - `num_of_partitions`: the number of partitions
    - `node_to_partition`: the partition of each operation, by its index in the model file or by the name of a tensor
      that it produces. Unlisted operations go to the one partition for which none is listed. An operation that the
      compiler fused into another one follows it
    - `partition_names`, `backend_names`, `backend_hints`, `logical_ids`: one for each partition; empty:
      `<network>_part<n>`, the first device's backend, no hints, and a logical device each
    - `replication_count`: copies on one device, by partition
    """

    num_of_partitions: int
    node_to_partition: Mapping[int | str, int] = field(factory=dict)
    partition_names: tuple[str, ...] = ()
    backend_names: tuple[str, ...] = ()
    backend_hints: tuple[BackendHints, ...] = ()
    logical_ids: tuple[tuple[int, ...], ...] = ()
    replication_count: Mapping[int, int] = field(factory=dict)

    def check(self, name: str, backends: Sequence[str]) -> None:
        """Raises PartitionError if the fields are inconsistent. `backends` are those of the devices."""
        count = self.num_of_partitions
        if count < 1:
            raise PartitionError(f"network {name!r}: {count} partitions are requested, expected at least 1")
        for what in ("partition_names", "backend_names", "backend_hints", "logical_ids"):
            given = getattr(self, what)
            if given and len(given) != count:
                raise PartitionError(f"network {name!r}: {what} has {len(given)} entries for {count} partitions")
        outside = [n for n in (*self.node_to_partition.values(), *self.replication_count) if not 0 <= n < count]
        if outside:
            raise PartitionError(f"network {name!r}: partition {outside[0]} is named, expected 0 to {count - 1}")
        unknown = [backend for backend in self.backend_names if backend not in backends]
        if unknown:
            raise PartitionError(
                f"network {name!r}: no device has the backend {unknown[0]!r}, expected one of {', '.join(backends)}"
            )


def parts_of(name: str, graph: UnitGraph, seconds: Seconds, config: PartitionConfig, backend: str) -> list[Part]:
    """The parts that a configuration describes. Raises PartitionError for tensors that no operation produces,
    operations that cannot be separated, unlisted operations without a unique partition left, and empty partitions."""
    numbers = _numbers(name, graph, config)
    count = config.num_of_partitions
    members: list[list[int]] = [[] for _ in range(count)]
    taken = [0.0] * count
    for unit, number in enumerate(numbers):
        members[number] += graph.units[unit]
        taken[number] += seconds[unit]
    empty = [number for number, operations in enumerate(members) if not operations]
    if empty:
        raise PartitionError(f"network {name!r}: partition {empty[0]} has no operation")
    names = config.partition_names or tuple(f"{name}_part{number}" for number in range(count))
    backends = config.backend_names or (backend,) * count
    hints = config.backend_hints or (BackendHints(),) * count
    logical = config.logical_ids or tuple((number,) for number in range(count))
    return [
        Part(
            names[number],
            tuple(sorted(members[number])),
            backends[number],
            taken[number],
            logical[number],
            config.replication_count.get(number, 1),
            hints[number],
        )
        for number in range(count)
    ]


def _numbers(name: str, graph: UnitGraph, config: PartitionConfig) -> list[int]:
    """The partition of each unit."""
    wanted = _wanted(name, graph, config)
    used = set(wanted.values())
    free = [number for number in range(config.num_of_partitions) if number not in used]
    found = []
    for operations in graph.units:
        named = {wanted[at] for at in operations if at in wanted}
        if len(named) > 1:
            where = ", ".join(str(graph.subgraph.operations[at]) for at in operations)
            raise PartitionError(
                f"network {name!r}: {where} are in partitions {sorted(named)}, but cannot be separated"
            )
        if not named and len(free) != 1:
            raise PartitionError(
                f"network {name!r}: {graph.subgraph.operations[operations[0]]} is not listed, and {len(free)} "
                "partitions are left for such operations, expected 1"
            )
        found.append(named.pop() if named else free[0])
    return found


def _wanted(name: str, graph: UnitGraph, config: PartitionConfig) -> dict[int, int]:
    """The partitions of listed operations that still exist after fusion."""
    subgraph = graph.subgraph
    by_index: dict[int, list[int]] = {}
    by_tensor: dict[str, int] = {}
    for at, operation in enumerate(subgraph.operations):
        for index in _INDEX.findall(operation.location):
            by_index.setdefault(int(index), []).append(at)
        for o in operation.outputs:
            by_tensor[subgraph.operands[o].name] = at
    found: dict[int, int] = {}
    for node, number in config.node_to_partition.items():
        if isinstance(node, str):
            if node not in by_tensor:
                raise PartitionError(f"network {name!r}: after the passes, no operation produces a tensor {node!r}")
            found[by_tensor[node]] = number
        else:
            found.update(dict.fromkeys(by_index.get(node, ()), number))
    return found
