"""The connections between the models of a package, derived from its ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from onert.ir.errors import ModelError
from onert.ir.package import Package, Port
from onert.ir.subgraph import Subgraph
from onert.ir.value import Value

from .ordering import in_order

Node = tuple[int, int]
"""A subgraph that a package uses: the model, and the subgraph in it."""


@frozen
class Wiring(Value):
    """The source of each connected input, the package's inputs and outputs, and the nodes in an executable order."""

    sources: Mapping[Port, Port]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    order: tuple[Node, ...]


def wire(package: Package) -> Wiring:
    """The package's wiring. If the package names no inputs (or outputs), they are those that are not connected.

    Raises ModelError for a port that does not exist or occurs twice, an input with no source or with two, and a cycle.
    """
    sources: dict[Port, Port] = {}
    for connection in package.connections:
        _check_port(package, connection.source, output=True)
        for target in connection.targets:
            _check_port(package, target, output=False)
            if target in sources:
                raise ModelError(f"input {target} is connected to {sources[target]} and to {connection.source}")
            sources[target] = connection.source
    for port in package.inputs:
        _check_port(package, port, output=False)
        if port in sources:
            raise ModelError(f"input {port} is an input of the package and connected to {sources[port]}")
    for port in package.outputs:
        _check_port(package, port, output=True)
    nodes = _nodes((*package.inputs, *package.outputs, *sources, *sources.values()))
    unfed = [p for node in nodes for p in _ports(node, len(_graph(package, node).inputs)) if p not in sources]
    if len(set(package.inputs)) != len(package.inputs):
        raise ModelError("the package names one input twice")
    if package.inputs and set(unfed) != set(package.inputs):
        given = set(package.inputs)
        missing = next(p for p in unfed if p not in given)
        raise ModelError(f"input {missing} is neither an input of the package nor connected")
    read = set(sources.values())
    unread = [p for node in nodes for p in _ports(node, len(_graph(package, node).outputs)) if p not in read]
    return Wiring(sources, package.inputs or tuple(unfed), package.outputs or tuple(unread), _ordered(nodes, sources))


def _check_port(package: Package, port: Port, *, output: bool) -> None:
    if not 0 <= port.model < len(package.models):
        raise ModelError(f"port {port} names model {port.model}, expected one of {len(package.models)}")
    if not 0 <= port.subgraph < len(package.models[port.model]):
        raise ModelError(
            f"port {port} names subgraph {port.subgraph}, expected one of {len(package.models[port.model])}"
        )
    graph = _graph(package, (port.model, port.subgraph))
    ends = graph.outputs if output else graph.inputs
    if not 0 <= port.position < len(ends):
        kind = "output" if output else "input"
        raise ModelError(f"port {port} names {kind} {port.position}, expected one of {len(ends)}")


def _graph(package: Package, node: Node) -> Subgraph:
    return package.models[node[0]][node[1]]


def _nodes(ports: Iterable[Port]) -> tuple[Node, ...]:
    return tuple(sorted({(port.model, port.subgraph) for port in ports}))


def _ports(node: Node, count: int) -> tuple[Port, ...]:
    return tuple(Port(*node, position) for position in range(count))


def _ordered(nodes: tuple[Node, ...], sources: Mapping[Port, Port]) -> tuple[Node, ...]:
    """The nodes, each after those that feed it."""
    needs: dict[Node, set[Node]] = {node: set() for node in nodes}
    for target, source in sources.items():
        needs[target.model, target.subgraph].add((source.model, source.subgraph))
    number = {node: at for at, node in enumerate(nodes)}
    order = [nodes[at] for at in in_order([[number[earlier] for earlier in needs[node]] for node in nodes])]
    if len(order) < len(nodes):
        circle = " and ".join(f"{model}:{subgraph}" for model, subgraph in nodes if (model, subgraph) not in order)
        raise ModelError(f"connections join models {circle} in a cycle")
    return tuple(order)
