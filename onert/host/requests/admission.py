"""Decide which requests may run now, wait, or are rejected."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from threading import Lock
from time import perf_counter
from weakref import ref

from onert.backend.tasks import Gate
from onert.host.device_manager import Result
from onert.host.errors import NetworkBusyError, NetworkNotFoundError, RequestRefusedError
from onert.host.host_config import HostConfig
from onert.host.network import Network

from .request import Request

_NONE: tuple[Request, ...] = ()
_NOW = True, _NONE
_Place = tuple[ref[Request], Network]
"""A running request and its network."""


class Admission:
    """The queue of a host, and its running requests.

    One lock, held for a few steps at a time, guards everything, so that the bound of the queue is exact and no request
    is missed. Running requests are referenced weakly: a request whose sender was interrupted by a signal handler is
    dropped, and its slot becomes free.
    """

    def __init__(self, config: HostConfig) -> None:
        self._config = config
        self._lock = Lock()
        self._most_active = config.max_active_requests
        self._active: dict[int, _Place] = {}
        self._lost: deque[ref[Request]] = deque()
        self._lose = self._lost.append
        self._lines: dict[Network, None] = {}
        """Networks with waiting requests."""
        self._waiting = 0
        self._closed = False
        self._drained = Gate()

    def enter(self, request: Request) -> tuple[bool, Sequence[Request]]:
        """Admit a request. Returns whether it may run at once (otherwise it is queued), and late requests that were
        removed from the queue and must be answered.

        Raises RequestRefusedError if the queue is full or the host is closed, and NetworkNotFoundError if the network
        was removed meanwhile.
        """
        with self._lock:
            network = request.network
            if self._closed:
                raise RequestRefusedError("the host is closed and accepts no requests")
            if network.removed:
                raise NetworkNotFoundError(f"there is no network {network.name!r}")
            if self._lost:
                self._sweep()
            # The following inlines `_has_room` and `_begin`, because their calls would cost time in every request.
            active, own = self._active, network.active
            if len(active) < self._most_active and len(own) < network.most_active:
                request.start_at_once()
                active[request.number] = (ref(request, self._lose), network)
                own[request.number] = None
                return _NOW
            late: list[Request] = []
            if self._waiting >= self._config.max_queue_size:
                late = self._expel()
            if self._waiting >= self._config.max_queue_size:
                raise RequestRefusedError(
                    f"network {network.name!r}: the queue is full: {self._waiting} requests are waiting (at most "
                    f"{self._config.max_queue_size}) and {len(self._active)} are running (at most "
                    f"{self._config.max_active_requests})"
                )
            heappush(network.waiting, (request.priority, request.number, request))
            self._lines[network] = None
            self._waiting += 1
            return False, late or _NONE

    def expired(self, request: Request) -> list[Request]:
        """Handle a request whose deadline has passed. Returns the requests that must be answered: late ones from the
        queue, and this one if it is running and unanswered."""
        with self._lock:
            late = self._expel()
            if request.number in self._active and request.claim():
                request.network.counters.failed += 1
                late.append(request)
            self._open_if_drained()
            return late

    def refused(self, network: Network) -> None:
        """Count a rejected request."""
        with self._lock:
            network.counters.refused += 1

    def leave(
        self, request: Request, result: Result, *, late: bool = False
    ) -> tuple[Request | None, Sequence[Request]]:
        """Remove a finished request. Returns the next one to run, if any, and late requests that must be answered.

        A `late` request was answered and counted at its deadline.
        """
        took = perf_counter() - request.begun
        with self._lock:
            network = request.network
            network.active.pop(request.number, None)
            self._active.pop(request.number, None)
            counters = network.counters
            if late:
                pass
            elif isinstance(result, BaseException):
                counters.failed += 1
            else:
                counters.succeeded += 1
                counters.latencies.add(took)
            if self._lost:
                self._sweep()
            if not self._lines:
                if self._closed:
                    self._open_if_drained()
                return None, _NONE
            return self._next()

    def leave_together(
        self, timely: Sequence[Request], results: Sequence[Result], late: Sequence[Request]
    ) -> tuple[list[Request], Sequence[Request]]:
        """The same as `leave` for several requests for one network, timely ones with results and late ones, at once.
        Returns the requests to run next, in order, and late requests that must be answered."""
        now = perf_counter()
        network = (timely or late)[0].network
        taken: list[float] = []
        with self._lock:
            counters, active, own = network.counters, self._active, network.active
            for request, result in zip(timely, results, strict=True):
                number = request.number
                own.pop(number, None)
                active.pop(number, None)
                if isinstance(result, BaseException):
                    counters.failed += 1
                else:
                    taken.append(now - request.begun)
            for request in late:
                own.pop(request.number, None)
                active.pop(request.number, None)
            counters.succeeded += len(taken)
            counters.latencies.add_all(taken)
            if self._lost:
                self._sweep()
            following: list[Request] = []
            others: list[Request] = []
            while self._lines:
                found, late_ones = self._next()
                others += late_ones
                if found is None:
                    break
                following.append(found)
            if self._closed:
                self._open_if_drained()
            return following, others

    def _next(self) -> tuple[Request | None, list[Request]]:
        late: list[Request] = []
        while True:
            ready = [network for network in self._lines if self._has_room(network)]
            if not ready:
                self._open_if_drained()
                return None, late
            network = min(ready, key=lambda n: n.waiting[0][:2])
            _, _, request = heappop(network.waiting)
            self._waiting -= 1
            if not network.waiting:
                del self._lines[network]
            is_late = request.is_late
            if not request.start():
                continue
            if is_late:
                if request.claim():
                    network.counters.failed += 1
                    late.append(request)
            else:
                self._begin(request)
                return request, late

    def _has_room(self, network: Network) -> bool:
        return len(self._active) < self._config.max_active_requests and len(network.active) < network.most_active

    def _begin(self, request: Request) -> None:
        """Mark a request as running. It is added to `_active` first and removed from it last, because `_sweep` finds
        requests dropped by an interrupt there."""
        self._active[request.number] = (ref(request, self._lose), request.network)
        request.network.active[request.number] = None

    def _sweep(self) -> None:
        """Free the slots of dropped requests."""
        seen = len(self._lost)
        for number, (request, network) in tuple(self._active.items()):
            if request() is None:
                network.active.pop(number, None)
                self._active.pop(number, None)
        for _ in range(seen):
            self._lost.popleft()

    def _expel(self) -> list[Request]:
        """Remove late and abandoned requests from the queue. Returns the late ones, which must be answered."""
        late: list[Request] = []
        for network in tuple(self._lines):
            stays = []
            for entry in network.waiting:
                request = entry[2]
                if request.is_wanted and not request.is_late:
                    stays.append(entry)
                elif request.start() and request.claim():
                    network.counters.failed += 1
                    late.append(request)
            self._waiting -= len(network.waiting) - len(stays)
            network.waiting = stays
            heapify(stays)
            if not stays:
                del self._lines[network]
        return late

    def _open_if_drained(self) -> None:
        if self._closed and not self._active and not self._waiting:
            self._drained.open()

    # ---- networks and the end

    def remove(self, network: Network) -> None:
        """Admit no more requests for a network. Raises NetworkBusyError if it has active or waiting ones."""
        with self._lock:
            self._sweep()
            if network.active or network.waiting:
                raise NetworkBusyError(
                    f"network {network.name!r} cannot be removed: {len(network.active)} of its requests are running "
                    f"and {len(network.waiting)} are waiting"
                )
            network.removed = True

    def close(self) -> Gate:
        """Admit no more requests. The gate opens when all admitted ones are answered."""
        with self._lock:
            self._closed = True
            self._sweep()
            self._open_if_drained()
        return self._drained

    def counts(self) -> tuple[int, int]:
        """The numbers of running and of waiting requests."""
        with self._lock:
            self._sweep()
            return len(self._active), self._waiting
