"""Dynamic batching of requests for a network."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from time import perf_counter
from typing import Any

from onert.host.device_manager import Result
from onert.host.errors import DeviceLostError
from onert.host.host_config import BatchConfig
from onert.host.network import Network
from onert.host.rules import batch_size, compiled_size

from .alarm import Alarm
from .batch import BatchRequest
from .executor import Executor
from .request import Request

FinishedTogether = Callable[[Sequence[Request], Sequence[Result]], None]
"""Called with requests for one network and their results."""


class Batcher:
    """Collects requests for a network, and runs them together as soon as a device can take a batch.

    `networks` are the network compiled for several batch sizes, by size; if there is only the network itself (`stacked`
    is False), it is run for each request of a batch. At most `most_running` batches run at the same time, the number
    that devices can handle; further requests wait here, the most urgent first.
    """

    def __init__(
        self,
        networks: Mapping[int, Network],
        stacked: bool,
        config: BatchConfig,
        most_running: int,
        executor: Executor,
        finished: FinishedTogether,
        alarm: Alarm,
    ) -> None:
        self._sizes = sorted(networks)
        self._networks = dict(networks)
        self._stacked = stacked
        infos = [info for info, _ in networks[1].dag.inputs]
        self._shapes = [info.shape for info in infos]
        self.takes_all = not stacked or all(info.open_shape == info.shape for info in infos)
        """Whether any request can be batched with others."""
        self.config = config
        self._most_running = most_running
        self._executor = executor
        self._finished = finished
        self._alarm = alarm
        self._lock = Lock()
        self._pending: dict[int, deque[Request]] = {}
        """Waiting requests by priority, in order of arrival."""
        self._running = 0
        self._hurries = False

    @property
    def networks(self) -> tuple[Network, ...]:
        """The networks that run batches."""
        return tuple(self._networks.values())

    def takes(self, request: Request) -> bool:
        """Whether a request can be batched: its inputs have the shapes that the network is compiled for."""
        return self.takes_all or [array.shape for array in request.inputs] == self._shapes

    def add(self, request: Request, *, here: bool) -> None:
        """Add a request and run a batch if it is time. With `here`, an idle device may use the calling thread."""
        with self._lock:
            own = self._pending.get(request.priority)
            if own is None:
                self._pending[request.priority] = deque((request,))
            else:
                own.append(request)
            if self._running >= self._most_running:
                return
            requests = self._take()
        self._run(requests, here=here)

    def look(self) -> None:
        """Run requests that have waited long enough."""
        with self._lock:
            requests = self._take()
        self._run(requests, here=False)

    def hurry(self) -> None:
        """Stop waiting for more requests, because none will come."""
        self._hurries = True
        self.look()

    def done(self, batch: BatchRequest, result: Any) -> None:
        """Handle the result of a batch. The next one starts before its requests are answered."""
        with self._lock:
            self._running -= 1
            requests = self._take()
        self._run(requests, here=False)
        self._answer(batch, result)

    def _take(self) -> list[Request]:
        """The requests of the next batch; empty if it is not time for one."""
        if self._running >= self._most_running or not self._pending:
            return []
        oldest = 0.0
        if self.config.max_delay > 0:
            oldest = min(own[0].begun for own in self._pending.values())
        waiting = sum(map(len, self._pending.values()))
        count = batch_size(waiting, oldest, perf_counter(), self.config, hurries=self._hurries)
        if not count:
            self._alarm.at(oldest + self.config.max_delay, self.look)
            return []
        self._running += 1
        return self._first(count)

    def _first(self, count: int) -> list[Request]:
        """Remove and return `count` waiting requests, the most urgent first."""
        found: list[Request] = []
        for priority in sorted(self._pending):
            own = self._pending[priority]
            if len(own) > count - len(found):
                found += [own.popleft() for _ in range(count - len(found))]
                break
            found += own
            del self._pending[priority]
        return found

    def _run(self, requests: Sequence[Request], *, here: bool) -> None:
        while requests:
            late = [request for request in requests if request.deadline is not None and request.is_late]
            if late:
                self._finished(late, [request.late() for request in late])
            timely = [request for request in requests if request not in late] if late else requests
            if timely:
                ended, batch = self._begun(timely, here=here)
                if ended is None:
                    return
                self._answer(batch, ended)
            with self._lock:
                self._running -= 1
                requests = self._take()

    def _begun(self, requests: Sequence[Request], *, here: bool) -> tuple[Any, BatchRequest]:
        """Start a batch of requests. Returns its result if it is already known, and the batch."""
        if not self._stacked:
            batch = BatchRequest(self._networks[1], requests, None, self.done)
            return self._executor.run_each(batch), batch
        size = compiled_size(len(requests), self._sizes)
        batch = BatchRequest(self._networks[size], requests, size, self.done)
        return self._executor.run(batch, here=here), batch

    def _answer(self, batch: BatchRequest, result: Any) -> None:
        requests: Sequence[Request] = batch.requests
        parts = batch.parts(result)
        if not self._stacked or isinstance(result, BaseException):
            ended = [
                (request, part)
                for request, part in zip(requests, parts, strict=True)
                if not isinstance(part, DeviceLostError) or not self._executor.run_again(request)
            ]
            requests, parts = [request for request, _ in ended], [part for _, part in ended]
        self._finished(requests, parts)
