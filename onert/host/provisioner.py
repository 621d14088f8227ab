"""`Provisioner`: puts sub-networks on devices."""

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
    """What a node's copies are called on a device."""
    name = node.name if node.name == dag.name else f"{dag.name}/{node.name}"
    return (name, *(f"{name}_replicated{copy}" for copy in range(1, node.replication_count)))


@frozen
class _Kind(Value):
    """What decides the program of a sub-network beside its package: devices of one kind share it."""

    node: str
    backend: str
    threads: int
    parameters: tuple[tuple[str, str], ...]


class Provisioner:
    """Assigns logical devices to physical ones, compiles each sub-network once, and loads it wherever it must be."""

    def __init__(self, compile_: Compile) -> None:
        self._compile = compile_

    def provision(
        self,
        dag: DAG,
        devices: Sequence[DeviceManager],
        options: Options,
        known: Mapping[int, Program] | None = None,
    ) -> list[PlacedNode]:
        """The nodes of a network on their devices; nothing is left on any device where that fails.

        `known` are programs of nodes, by position, that were compiled already: for the first device of their backend.
        DeviceNotFoundError where no device has a node's backend, OutOfDeviceMemoryError with the sizes where a logical
        device fits on none.
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
    """The options by which a package is compiled that has been through the passes, and has one way into it."""
    return options.choose(optimize=False, signature=None, input_shapes={}, op_backend_map={})


def evict(dag: DAG, placed: Sequence[PlacedNode]) -> None:
    """Take a network off its devices."""
    for node in placed:
        for device in node.devices:
            for name in function_names(dag, node.node):
                device.evict_network(name)


def assign(dag: DAG, devices: Sequence[DeviceManager]) -> dict[int, DeviceManager]:
    """A device for each logical device, of the backend that its nodes were divided for.

    The largest first, to the device with the most free memory; then to the others in turn, until each has one, and
    over again: so that they are spread evenly (Glow's Provisioner). Logical devices that share a node are replicas of
    one another and go to different devices.
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
    """The logical devices that are on each device."""
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
                    f"network {dag.name!r}: logical device {logical} takes {sizes[logical]} bytes, more than any "
                    f"device of backend {backend!r} has left: {rooms}"
                )
            if chosen in turn:
                turn.remove(chosen)
            free[chosen.name] -= sizes[logical]
            there[chosen.name].add(logical)
            found[logical] = chosen
    return found


def _by_room(devices: Sequence[DeviceManager], free: Mapping[str, int]) -> list[DeviceManager]:
    return sorted(devices, key=lambda device: -free[device.name])
