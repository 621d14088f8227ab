"""`DAG` and `DAGNode`: a network as a graph of sub-networks."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from onert.backend import TensorInfo
from onert.ir import Package
from onert.ir.analysis.ordering import followers
from onert.ir.process.cached import cached
from onert.ir.value import Value

from .errors import PartitionError
from .memory import GraphMemInfo


@frozen
class BackendHints(Value):
    """Hints of a partition for its device: at most `execution_units` threads (0: the device's own number)."""

    execution_units: int = 0


@frozen
class Estimate(Value):
    """Estimates for a sub-network: number of operations, memory, and seconds of a run."""

    operations: int
    memory: GraphMemInfo
    seconds: float


@frozen(eq=False)
class DAGNode:
    """One sub-network.

    `inputs` and `outputs` are the values that it reads and produces, in the order of its package's inputs and outputs.
    A value is a number that is unique in the DAG. `size` is the bytes that it needs on a device. It runs on any of its
    `logical_devices`, each of which has `replication_count` copies of it. A `prepared` package has already been through
    the compiler's passes.
    """

    name: str
    package: Package
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    size: int
    backend_name: str
    logical_devices: tuple[int, ...] = (0,)
    replication_count: int = 1
    hints: BackendHints = field(factory=BackendHints)
    prepared: bool = False
    estimate: Estimate | None = None

    @property
    def instance_count(self) -> int:
        """The number of devices that hold it."""
        return len(self.logical_devices)


@frozen(slots=False, eq=False)  # slots would leave no room for the cached properties
class DAG:
    """A network: its sub-networks, and the values of its inputs and outputs.

    `nodes` may be in any order. `notes` are messages about how the network was partitioned.
    """

    name: str
    nodes: tuple[DAGNode, ...]
    inputs: tuple[tuple[TensorInfo, int], ...]
    outputs: tuple[tuple[TensorInfo, int], ...]
    notes: tuple[str, ...] = ()

    @cached
    def makers(self) -> Mapping[int, int]:
        """The node that produces each value."""
        return {value: at for at, node in enumerate(self.nodes) for value in node.outputs}

    @cached
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the distinct nodes whose results it reads."""
        makers = self.makers
        return tuple(tuple(dict.fromkeys(makers[v] for v in node.inputs if v in makers)) for node in self.nodes)

    @cached
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the distinct nodes that read its results."""
        return followers(self.parents)

    @cached
    def roots(self) -> tuple[int, ...]:
        """The nodes without parents."""
        return tuple(at for at, parents in enumerate(self.parents) if not parents)

    @cached
    def order(self) -> tuple[int, ...]:
        """All nodes in topological order. Raises PartitionError if there is a cycle."""
        waiting = [len(parents) for parents in self.parents]
        found = list(self.roots)
        for at in found:
            for child in self.children[at]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    found.append(child)
        if len(found) != len(self.nodes):
            stuck = ", ".join(repr(node.name) for at, node in enumerate(self.nodes) if at not in set(found))
            raise PartitionError(f"network {self.name!r}: a cycle is detected among partitions {stuck}")
        return tuple(found)

    @property
    def logical_devices(self) -> tuple[int, ...]:
        """The distinct logical devices of its nodes, sorted."""
        return tuple(sorted({device for node in self.nodes for device in node.logical_devices}))

    def validate(self) -> None:
        """Raises PartitionError for duplicate names or values, values without a producer, nodes without a device or
        whose results are unused, and cycles."""
        names: set[str] = set()
        made = {value for _, value in self.inputs}
        for node in self.nodes:
            if node.name in names:
                raise PartitionError(f"network {self.name!r}: two partitions are called {node.name!r}")
            names.add(node.name)
            for value in node.outputs:
                if value in made:
                    raise PartitionError(f"network {self.name!r}: {node.name!r} produces value {value} a second time")
                made.add(value)
        used = {value for _, value in self.outputs}
        for node in self.nodes:
            lacking = [value for value in node.inputs if value not in made]
            if lacking:
                raise PartitionError(f"network {self.name!r}: {node.name!r} reads {lacking[0]}, which nothing produces")
            if not node.logical_devices or node.replication_count < 1:
                raise PartitionError(f"network {self.name!r}: {node.name!r} is on no device")
            used.update(node.inputs)
        lacking = [value for _, value in self.outputs if value not in made]
        if lacking:
            raise PartitionError(f"network {self.name!r}: no partition produces output value {lacking[0]}")
        isolated = [node.name for node in self.nodes if used.isdisjoint(node.outputs)]
        if isolated:
            raise PartitionError(f"network {self.name!r}: an isolated node is detected: {isolated[0]!r}")
        _ = self.order
