"""`Provisioner`: compiles sub-networks and loads them onto devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from attrs import frozen

from onert.backend import Program
from onert.compiler import Options
from onert.ir import Package
from onert.ir.value import Value

from .dag import DAG, DAGNode
from .device_manager import CompiledFunction, DeviceManager, is_stateful
from .errors import DeviceNotFoundError, OutOfDeviceMemoryError
from .network import PlacedNode

Compile = Callable[[Package, Options], Program]


def function_names(dag: DAG, node: DAGNode) -> tuple[str, ...]:
    """The function names of a node's copies on a device."""
    name = node.name if node.name == dag.name else f"{dag.name}/{node.name}"
    return (name, *(f"{name}_replicated{copy}" for copy in range(1, node.replication_count)))


@frozen
class _Kind(Value):
    """The settings that a sub-network's program depends on besides its package. Devices with equal ones share it."""

    node: str
    backend: str
    threads: int
    parameters: tuple[tuple[str, str], ...]


class Provisioner:
    """Assigns logical devices to physical ones, compiles each sub-network once, and loads it onto its devices."""

    def __init__(self, compile_: Compile) -> None:
        self._compile = compile_

    def provision(
        self,
        dag: DAG,
        devices: Sequence[DeviceManager],
        options: Options,
        known: Mapping[int, Program] | None = None,
    ) -> list[PlacedNode]:
        """Compile the nodes of a network and load them onto devices. If that fails, no device keeps any of them.

        `known` are programs of nodes, by position, that were already compiled for the first device with their backend.
        Raises DeviceNotFoundError if no device has a node's backend, and OutOfDeviceMemoryError if a node does not fit.
        """
        places = assign(dag, devices)
        programs: dict[_Kind, Program] = {}
        for at, program in ({} if known is None else known).items():
            first = next(d for d in devices if d.config.backend == dag.nodes[at].backend_name)
            programs[self._kind(dag.nodes[at], first)] = program
        placed = []
        with ExitStack() as undo:
            for node in dag.nodes:
                homes = list(dict.fromkeys(places[logical] for logical in node.logical_devices))
                names = function_names(dag, node)
                for device in homes:
                    chosen = self._options(node, device, options)
                    kind = self._kind(node, device)
                    if kind not in programs:
                        programs[kind] = self._compile(node.package, chosen)
                    device.add_network([CompiledFunction(name, node.package, chosen, programs[kind]) for name in names])
                    for name in names:
                        undo.callback(device.evict_network, name)
                placed.append(PlacedNode(node, homes, names, stateful=is_stateful(programs[kind])))
            undo.pop_all()
        return placed

    def _options(self, node: DAGNode, device: DeviceManager, options: Options) -> Options:
        found = device.options(options)
        units = node.hints.execution_units
        if units:
            found = found.choose(num_threads=min(units, device.threads))
        return prepared_options(found) if node.prepared else found

    def _kind(self, node: DAGNode, device: DeviceManager) -> _Kind:
        parameters = tuple(sorted(device.config.parameters.items()))
        return _Kind(node.name, device.config.backend, device.threads, parameters)


def prepared_options(options: Options) -> Options:
    """The options for compiling a package that has already been through the passes and has a single entry."""
    return options.choose(optimize=False, signature=None, input_shapes={}, op_backend_map={})


def evict(dag: DAG, placed: Sequence[PlacedNode]) -> None:
    """Remove a network from its devices."""
    for node in placed:
        for device in node.devices:
            for name in function_names(dag, node.node):
                device.evict_network(name)


def assign(dag: DAG, devices: Sequence[DeviceManager]) -> dict[int, DeviceManager]:
    """Assign each logical device to a device with the backend of its nodes.

    Logical devices are assigned in rounds, the largest first and to the devices with the most free memory first; in
    each round every device gets at most one, so that they are spread evenly (as in Glow's Provisioner). Logical devices
    that share a node are replicas of one another and go to different devices if possible.
    """
    sizes: dict[int, int] = {}
    backends: dict[int, str] = {}
    for node in dag.nodes:
        for logical in node.logical_devices:
            sizes[logical] = sizes.get(logical, 0) + node.size * node.replication_count
            backends[logical] = node.backend_name
    replicas: dict[int, list[frozenset[int]]] = {logical: [] for logical in sizes}
    for group in {frozenset(node.logical_devices) for node in dag.nodes}:
        for logical in group:
            replicas[logical].append(group)
    free = {device.name: device.available_memory for device in devices}
    there: dict[str, set[int]] = {device.name: set() for device in devices}
    """The logical devices assigned to each device."""
    found: dict[int, DeviceManager] = {}
    for backend in dict.fromkeys(backends[logical] for logical in sorted(backends)):
        own = [device for device in devices if device.config.backend == backend]
        if not own:
            raise DeviceNotFoundError(f"network {dag.name!r}: no device has the backend {backend!r}")
        turn: list[DeviceManager] = []
        for logical in sorted((i for i in sizes if backends[i] == backend), key=lambda i: (-sizes[i], i)):
            if not turn:
                turn = _by_room(own, free)
            apart = [d for d in turn if all(there[d.name].isdisjoint(group) for group in replicas[logical])] or turn
            chosen = next((d for d in apart if free[d.name] >= sizes[logical]), None)
            if chosen is None:
                chosen = next((d for d in _by_room(own, free) if free[d.name] >= sizes[logical]), None)
            if chosen is None:
                rooms = ", ".join(f"{d.name} {free[d.name]}" for d in own)
                raise OutOfDeviceMemoryError(
                    f"network {dag.name!r}: logical device {logical} needs {sizes[logical]} bytes, more than is free "
                    f"on any device of backend {backend!r}: {rooms}"
                )
            if chosen in turn:
                turn.remove(chosen)
            free[chosen.name] -= sizes[logical]
            there[chosen.name].add(logical)
            found[logical] = chosen
    return found


def _by_room(devices: Sequence[DeviceManager], free: Mapping[str, int]) -> list[DeviceManager]:
    return sorted(devices, key=lambda device: -free[device.name])
