"""`HostManager`: the interface for applications."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future
from itertools import count
from threading import Lock
from time import perf_counter
from types import TracebackType
from typing import Any, Self
from weakref import finalize

from onert.compiler import Options
from onert.ir import ExecutionError, Package
from onert.ir.process.forks import forgotten_by

from .dag import DAG
from .device_config import DeviceConfig
from .device_manager import DeviceManager
from .devices.kinds import made
from .errors import (
    ConfigurationError,
    DeviceNotFoundError,
    HostError,
    NetworkBusyError,
    NetworkExistsError,
    NetworkNotFoundError,
)
from .host_config import BatchConfig, HostConfig
from .network import Network, Outputs
from .partitioner import PartitionConfig, Wanted
from .placement import batched, instances, noted, placed, removed
from .requests import Callback, Dispatcher, PromisedRequest, WaitingRequest
from .statistics import DeviceStatistics, HostStatistics
from .trace import HostTrace

Inputs = Mapping[str, Any] | Sequence[Any]

_MAX_NAME = 200


class HostManager:
    """Runs requests for networks on devices. Its methods may be called by any thread.

    `devices` are in order of preference; None: this process's processors as one device. `with` closes the host.
    """

    def __init__(
        self, devices: Sequence[DeviceConfig | DeviceManager] | None = None, config: HostConfig | None = None
    ) -> None:
        self.config = HostConfig() if config is None else config
        self._devices = made([DeviceConfig()] if devices is None else devices)
        self._available = tuple(self._devices)
        self._dispatcher = Dispatcher(self.config)
        self._lock = Lock()
        self._networks: dict[str, Network] = {}
        self._changing: set[str] = set()
        """Names of networks that are being added or removed."""
        self._numbers = count(1)
        self._is_forked = False
        _HOSTS.add(self)
        finalize(self, _stop, self._devices)

    # ---- networks

    def add_network(
        self,
        name: str,
        package: Package,
        *,
        options: Options | None = None,
        parts: int | None = None,
        partition: PartitionConfig | None = None,
        copies: int | None = 1,
        profile: bool = False,
        max_active: int | None = None,
        batch: BatchConfig | None = None,
    ) -> DAG:
        """Compile a package and load it onto devices, without disturbing running requests. Requests may then name it.

        `parts`, `partition`, `copies` and `profile` are those of `Wanted`. `max_active`: the most
        requests for it that run at the same time; None: the host's limit. With `batch`, requests are batched. The
        backend and the number of threads in `options` are replaced by the device's. Raises NetworkExistsError or
        NetworkBusyError if the name is taken, and errors of the compiler, the partitioner and the devices, after which
        nothing of the network remains.
        """
        _check_name(name)
        self._begin_change(name)
        try:
            options = (Options.from_environment() if options is None else options).with_config(package.config)
            most = self.config.max_active_requests if max_active is None else max_active
            wanted = Wanted(parts, partition, copies, profile)
            network = placed(
                name, package, options, self._available, wanted, min(most, self.config.max_active_requests)
            )
            if batch is not None:
                self._batch(network, package, options, wanted, batch)
            with self._lock:
                self._networks[name] = network
        finally:
            self._changing.discard(name)
        return network.dag

    def _batch(self, network: Network, package: Package, options: Options, wanted: Wanted, batch: BatchConfig) -> None:
        """Set up batching for a network. Removes the network if that fails."""
        try:
            networks, note = batched(network, package, options, wanted, batch)
        except BaseException:
            removed([network])
            raise
        stacked = len(networks) > 1
        if stacked or network.is_single:
            noted(network, note)
            network.batcher = self._dispatcher.batcher(networks, batch, instances(network), stacked=stacked)
        else:
            noted(network, f"requests are run one by one: {note}, which a divided network does not support")

    def _begin_change(self, name: str) -> None:
        self._require_own_process()
        with self._lock:
            if name in self._changing:
                raise NetworkBusyError(f"network {name!r} is being added or removed")
            if name in self._networks:
                raise NetworkExistsError(f"a network called {name!r} already exists")
            self._changing.add(name)

    def remove_network(self, name: str) -> None:
        """Remove a network and free its memory. Does nothing if there is none of this name. Raises NetworkBusyError
        while it has waiting or running requests, or is being added or removed."""
        self._require_own_process()
        with self._lock:
            if name in self._changing:
                raise NetworkBusyError(f"network {name!r} is being added or removed")
            network = self._networks.get(name)
            if network is None:
                return
            self._dispatcher.remove(network)
            self._changing.add(name)
            del self._networks[name]
        try:
            self._dispatcher.sessions.remove(network)
            removed([network] if network.batcher is None else network.batcher.networks)
        finally:
            self._changing.discard(name)

    def clear_host(self) -> None:
        """Remove all networks. Raises NetworkBusyError at the first one with requests in progress."""
        for name in self.networks:
            self.remove_network(name)

    def network_added(self, name: str) -> bool:
        """Whether there is a network of this name."""
        return name in self._networks

    @property
    def networks(self) -> tuple[str, ...]:
        """The names of all networks, in the order of their addition."""
        self._require_own_process()
        with self._lock:
            return tuple(self._networks)

    def get_network_dag(self, name: str) -> DAG:
        """A network's sub-networks. Raises NetworkNotFoundError if there is no network of this name."""
        return self._network(name).dag

    def get_device_partition_mapping(self, name: str) -> dict[str, tuple[str, ...]]:
        """The names of the devices that hold each sub-network of a network."""
        network = self._network(name)
        return {placed.node.name: tuple(device.name for device in placed.devices) for placed in network.nodes}

    def get_network_batching(self, name: str) -> BatchConfig | None:
        """How requests for a network are batched; None if they are run one by one."""
        batcher = self._network(name).batcher
        found: BatchConfig | None = None if batcher is None else batcher.config
        return found

    def is_stateful(self, name: str) -> bool:
        """Whether a network keeps state that the requests of a sequence share."""
        return any(placed.stateful for placed in self._network(name).nodes)

    # ---- devices

    @property
    def devices(self) -> tuple[DeviceManager, ...]:
        """All devices, in order."""
        return tuple(self._devices)

    @property
    def num_devices(self) -> int:
        """How many devices there are."""
        return len(self._devices)

    def set_available_devices(self, names: Sequence[str]) -> None:
        """Place networks that are added later only on these devices, in this order of preference."""
        by_name = {device.name: device for device in self._devices}
        unknown = [name for name in names if name not in by_name]
        if unknown or not names:
            what = f"there is no device {', '.join(map(repr, unknown))}" if unknown else "the list has no device"
            raise DeviceNotFoundError(f"{what}, expected some of {', '.join(by_name)}")
        self._available = tuple(by_name[name] for name in dict.fromkeys(names))

    # ---- requests

    def run_network(
        self,
        name: str,
        inputs: Inputs,
        *,
        priority: int = 0,
        timeout: float | None = None,
        callback: Callback | None = None,
        sequence: Hashable = None,
        lend: float = 0.0,
    ) -> Future[Outputs]:
        """Run a network. The future gets the outputs by name, or any error.

        Requests with a lower `priority` value run first. A request not answered within `timeout` seconds fails with a
        DeadlineError. Inputs are checked at once, and must not change until the future is done. Requests of the same
        `sequence` share state that other requests do not see, and run one after another. `callback` is called with the
        future on a thread of the host and may block; until it returns, the request counts as running. Callbacks added
        with the future's `add_done_callback` may run on a device's thread and then block that device. With `lend`, the
        calling thread runs the network itself if an idle device accepts foreign threads and the last run took at most
        `lend` seconds, because handing a short run to another thread takes longer than the run.
        """
        begun = perf_counter()
        try:
            network = self._network(name)
        except HostError as error:
            return _failed(error, callback)
        try:
            arrays = network.checked(inputs)
            request = PromisedRequest(network, arrays, priority, next(self._numbers), begun, timeout)
            request.callback = callback
            if sequence is not None:
                request.session = self._dispatcher.sessions.of(network, sequence)
            self._dispatcher.enter(request, here=lend > 0 and network.is_brief(lend, arrays))
        except (ExecutionError, HostError) as error:
            self._dispatcher.refused(network)
            return _failed(error, callback)
        return request.future

    def run_network_blocking(
        self,
        name: str,
        inputs: Inputs,
        *,
        priority: int = 0,
        timeout: float | None = None,
        sequence: Hashable = None,
    ) -> Outputs:
        """Run a network, wait, and return its outputs by name. Errors are raised.

        The calling thread runs the network itself if an idle device accepts foreign threads. Raises DeadlineError if
        there is no answer within `timeout` seconds.
        """
        begun = perf_counter()
        network = self._network(name)
        try:
            arrays = network.checked(inputs)
            request = WaitingRequest(network, arrays, priority, next(self._numbers), begun, timeout)
            if sequence is not None:
                request.session = self._dispatcher.sessions.of(network, sequence)
            self._dispatcher.enter(request, here=True)
        except (ExecutionError, HostError):
            self._dispatcher.refused(network)
            raise
        return request.wait()

    def end_sequence(self, name: str, sequence: Hashable) -> None:
        """Drop the state of a sequence, if there is any. Raises NetworkBusyError while a request is running."""
        self._dispatcher.sessions.end(self._network(name), sequence)

    def _require_own_process(self) -> None:
        """Raises HostError in a forked child, where the devices' threads do not exist and locks may be held."""
        if self._is_forked:
            raise HostError("the host belongs to the process that this one was forked from; create one here")

    def _network(self, name: str) -> Network:
        found = self._networks.get(name)
        if found is None:
            self._require_own_process()
            raise NetworkNotFoundError(f"there is no network {name!r}")
        return found

    def _forget(self) -> None:
        """Called after a fork in the child: devices, requests and networks belong to the parent."""
        self._is_forked = True
        self._networks = {}

    # ---- numbers, traces, the end

    def start_trace(self) -> None:
        """Start recording requests and runs. Raises ConfigurationError if a trace is already being recorded."""
        if self._dispatcher.traces:
            raise ConfigurationError("the host is already recording a trace; stop_trace ends it")
        trace = HostTrace()
        for traces in (self._dispatcher.traces, *(device.traces for device in self._devices)):
            traces.append(trace)

    def stop_trace(self) -> HostTrace:
        """Stop recording and return the trace. Raises ConfigurationError if none is being recorded."""
        if not self._dispatcher.traces:
            raise ConfigurationError("the host is not recording a trace; start_trace begins one")
        (trace,) = self._dispatcher.traces
        for traces in (self._dispatcher.traces, *(device.traces for device in self._devices)):
            traces.clear()
        return trace

    def statistics(self) -> HostStatistics:
        """A snapshot of the host's statistics."""
        self._require_own_process()
        with self._lock:
            networks = dict(self._networks)
        active, waiting = self._dispatcher.counts()
        return HostStatistics(
            networks={name: n.counters.snapshot(len(n.active), len(n.waiting)) for name, n in networks.items()},
            devices={
                d.name: DeviceStatistics(d.kind, d.maximum_memory, d.available_memory, d.load, d.functions)
                for d in self._devices
            },
            queue_size=waiting,
            max_queue_size=self.config.max_queue_size,
            active=active,
            max_active=self.config.max_active_requests,
        )

    def close(self) -> None:
        """Accept no more requests, finish those in progress, and stop the devices. May be called repeatedly. Raises
        HostError if called from a request's callback, which would wait for itself."""
        if self._is_forked:
            return
        self._dispatcher.close().wait()
        _stop(self._devices)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_name(name: str) -> None:
    if not name or len(name) > _MAX_NAME or not name.isprintable() or "/" in name:
        raise ConfigurationError(
            f"the network name is {name[:_MAX_NAME]!r}, expected 1 to {_MAX_NAME} printable characters without '/'"
        )


def _stop(devices: Sequence[DeviceManager]) -> None:
    for device in devices:
        device.stop()


def _failed(error: Exception, callback: Callback | None) -> Future[Outputs]:
    """The future of a request that was not accepted."""
    future: Future[Outputs] = Future()
    future.set_exception(error)
    if callback is not None:
        callback(future)
    return future


_HOSTS = forgotten_by(HostManager._forget)
