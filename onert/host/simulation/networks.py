"""Networks on described devices: partitioned, placed and batched by the host's own code, but not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

import numpy as np
from attrs import frozen

from onert.backend import Program
from onert.compiler import Options
from onert.exec import Execution
from onert.host.device_config import DeviceConfig, named
from onert.host.device_manager import CompiledFunction, DeviceManager
from onert.host.errors import ConfigurationError
from onert.host.host_config import BatchConfig
from onert.host.memory import type_bytes
from onert.host.network import Network
from onert.host.partitioner import Wanted
from onert.host.partitioner.costs import numbers, roofline
from onert.host.partitioner.units import unit_graph
from onert.host.placement import batched, instances, placed
from onert.ir import Array, Package
from onert.ir.value import Value

from .calibration import Measurements
from .model import Station, Workload

_RUNS = 200
_LONGEST = 2.0
"""The longest time for measuring a sub-network, in seconds."""


class DescribedDevice(DeviceManager):
    """A device that only holds programs and does not run them."""

    kind = "described"

    def __init__(self, config: DeviceConfig) -> None:
        super().__init__(config, config.threads or 1)
        self.programs: dict[str, Program] = {}

    def _load(self, function: CompiledFunction) -> None:
        self.programs[function.name] = function.program

    def _unload(self, name: str) -> None:
        self.programs.pop(name, None)

    @property
    def load(self) -> int:
        return 0

    def stop(self) -> None:
        self.programs.clear()


@frozen
class Link(Value):
    """The link between devices: latency in seconds, and bandwidth in bytes per second."""

    latency: float = 0.0
    bandwidth: float = float("inf")

    def seconds(self, nbytes: int) -> float:
        """The time to transfer `nbytes` bytes."""
        return self.latency + nbytes / self.bandwidth


@frozen
class Timing(Value):
    """The source of run times.

    By default, the roofline's estimate for the device. With `measured`, times of runs on this machine, scaled by the
    ratio of this machine's `peak_compute` to the device's. `overhead` seconds are added for the time between a request
    and its run, and between the run and the answer. With `kept`, times and overhead as measured on a host's devices.
    """

    measured: bool = False
    overhead: float = 30e-6
    kept: Measurements | None = None
    seconds: float | None = None
    """The time of a run of an undivided network, if known."""

    @property
    def around(self) -> float:
        """The overhead of a run in seconds."""
        return self.overhead if self.kept is None else self.kept.around


def described(configs: Sequence[DeviceConfig]) -> list[DescribedDevice]:
    """Described devices for a configuration; the real ones need not exist."""
    return [DescribedDevice(config) for config in named(configs)]


def workload(
    name: str,
    package: Package,
    devices: Sequence[DescribedDevice],
    arrivals: Array,
    *,
    wanted: Wanted,
    priorities: Array | int = 0,
    timeout: float = float("inf"),
    sequences: Array | None = None,
    batch: BatchConfig | None = None,
    timing: Timing | None = None,
    link: Link | None = None,
    options: Options | None = None,
) -> Workload:
    """A network on described devices: partitioned, compiled, placed and batched like in `HostManager.add_network`.
    Raises the same errors as `HostManager.add_network`."""
    options = (Options.from_environment() if options is None else options).with_config(package.config)
    network = placed(name, package, options, devices, wanted, 1 << 62)
    networks: Mapping[int, Network] = {1: network}
    sizes: tuple[int, ...] = (1,)
    if batch is not None:
        networks, _ = batched(network, package, options, wanted, batch)
        sizes = batch.sizes
    timing = Timing() if timing is None else timing
    link = Link() if link is None else link
    numbers = {device.name: at for at, device in enumerate(devices)}
    by_name = {device.name: device for device in devices}
    stations = []
    for at, node in enumerate(network.nodes):
        own = [by_name[device.name] for device in node.devices]
        seconds = {size: _of_size(networks, at, size, own[0], timing, by_name) for size in sizes}
        stations.append(
            Station(
                name=node.node.name,
                devices=tuple(numbers[device.name] for device in own),
                seconds=seconds,
                parents=network.dag.parents[at],
                factors=tuple(own[0].info.peak_compute / device.info.peak_compute for device in own),
                transfers=_transfers(network, at, link, by_name, 0.0 if timing.kept is None else timing.kept.after),
                stateful=node.stateful,
                idle=() if timing.kept is None else timing.kept.idle[node.node.name],
            )
        )
    assert instances(network) == sum(len(station.devices) for station in stations)
    return Workload(name, tuple(stations), arrivals, batch, priorities, timeout, sequences)


def _of_size(
    networks: Mapping[int, Network],
    at: int,
    size: int,
    device: DescribedDevice,
    timing: Timing,
    by_name: Mapping[str, DescribedDevice],
) -> tuple[float, ...]:
    """The times of a run for a batch of `size` requests. Without stacking, they run one after another."""
    network = networks.get(size)
    if network is None:
        single = _of_size(networks, at, 1, device, timing, by_name)
        return tuple(size * (each - timing.around) + timing.around for each in single)
    if timing.seconds is not None and len(network.nodes) == 1:
        return (size * timing.seconds + timing.overhead,)
    node = network.nodes[at]
    program = by_name[node.devices[0].name].programs[node.functions[0]]
    if timing.measured or timing.kept is not None:
        stretch = DescribedDevice(DeviceConfig(threads=device.threads)).info.peak_compute / device.info.peak_compute
        if timing.kept is not None and size == 1:
            return tuple(each * stretch for each in _as_kept(node.node.name, timing.kept))
        return tuple(float(each * stretch) + timing.around for each in measured(program))
    return (sum(roofline(unit_graph(program), device.info)) + timing.overhead,)


def _as_kept(name: str, kept: Measurements) -> tuple[float, ...]:
    """How long runs of a sub-network occupied devices."""
    found = kept.seconds.get(name)
    if found is None:
        raise ConfigurationError(
            f"the measured times are those of {', '.join(map(repr, kept.seconds))}, expected also {name!r}; run "
            "`onert_host measure` with this plan"
        )
    return found


def measured(program: Program, runs: int = _RUNS) -> list[float]:
    """Seconds of runs of a program on this thread, after warm-up runs."""
    rng = np.random.default_rng(0)
    inputs = [numbers(info, rng) for info in program.inputs]
    found: list[float] = []
    with Execution(program) as execution:
        for _ in range(3):
            execution.run(inputs)
        begun = perf_counter()
        while len(found) < runs and (len(found) < 3 or perf_counter() - begun < _LONGEST):
            start = perf_counter()
            execution.run(inputs)
            found.append(perf_counter() - start)
    return found


def _transfers(
    network: Network, at: int, link: Link, by_name: Mapping[str, DescribedDevice], after: float
) -> tuple[float, ...]:
    """The transfer times to a node: from each parent, or, without parents, of the request's inputs plus `after`."""
    read = network.nodes[at].inputs
    parents = network.dag.parents[at]
    if not parents:
        given = {value: info.type for info, value in network.dag.inputs}
        return (link.seconds(sum(type_bytes(given[value]) for value in read)) + after,)
    found = []
    for parent in parents:
        node = network.nodes[parent]
        program = by_name[node.devices[0].name].programs[node.functions[0]]
        made = dict(zip(node.outputs, program.outputs, strict=True))
        found.append(link.seconds(sum(type_bytes(made[value].type) for value in read if value in made)))
    return tuple(found)
