"""`Executor`: runs a network's DAG for each request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

from onert.host.device_manager import Result
from onert.host.errors import HostError
from onert.host.network import Network, PlacedNode
from onert.ir import Array

from .attempt import start_run
from .batch import BatchRequest
from .request import Request

Finished = Callable[[Request, Result], None]


class NetworkExecutionState:
    """The progress of a request for a network of several sub-networks.

    `waiting` is the number of unfinished parents of each node. `inflight` is the number of nodes that have started and
    not ended; when it reaches 0, the request is over. Only the first error counts, and no node is started after it.
    """

    __slots__ = ("error", "inflight", "lock", "network", "request", "retries", "values", "waiting")

    def __init__(self, network: Network) -> None:
        self.network = network
        self.lock = Lock()
        self.waiting: list[int] = []
        self.values: dict[int, Array] = {}
        self.inflight = 0
        self.retries = 0
        self.error: BaseException | None = None
        self.request: Request | None = None

    def begin(self, request: Request, retries: int) -> None:
        """Start a request when no other is in progress. Each of its runs may be retried `retries` times."""
        network = self.network
        self.request = request
        self.retries = retries
        self.waiting[:] = network.parents
        self.values.update(zip(network.inputs, request.inputs, strict=True))
        self.inflight = len(network.roots)

    def settle(self, at: int, result: Result) -> tuple[tuple[int, ...], bool]:
        """Record the result of a node. Returns the nodes that may run now, and (once) that the request is over."""
        network, request = self.network, self.request
        assert request is not None
        result = checked(network.nodes[at], result)
        with self.lock:
            ready: list[int] = []
            if isinstance(result, BaseException):
                self.error = self.error or result
            else:
                self.values.update(zip(network.nodes[at].outputs, result, strict=True))
            if self.error is None:
                for child in network.children[at]:
                    self.waiting[child] -= 1
                    if self.waiting[child] == 0:
                        ready.append(child)
                if ready and request.is_late:
                    self.error = request.late()
                    ready.clear()
            self.inflight += len(ready) - 1
            return tuple(ready), self.inflight == 0

    def end(self) -> Result:
        """The result of the finished request: its outputs, or the first error. Resets the state for reuse."""
        error = self.error
        result: Result = [self.values[value] for value in self.network.outputs] if error is None else error
        self.values.clear()
        self.error = self.request = None
        return result


class Executor:
    """Runs requests: each sub-network after its parents, on the least busy device.

    `finished` is called once for every started request that does not end at once, by a thread of the device that ran
    the last of its sub-networks. States are created on demand and reused. A run whose device was lost is retried up to
    `retries` times.
    """

    def __init__(self, finished: Finished, retries: int = 0) -> None:
        self._finished = finished
        self._retries = retries

    def run(self, request: Request, *, here: bool) -> Result | None:
        """Start a request. Returns its result if it ends at once; `finished` is not called then.

        With `here`, idle devices may use the calling thread. A lost batch is not retried as a whole; its requests are
        retried individually (`run_again`), so that one that kills its device every time does not affect the others.
        """
        return self._run(request, 0 if isinstance(request, BatchRequest) else self._retries, here=here)

    def _run(self, request: Request, retries: int, *, here: bool) -> Result | None:
        network = request.network
        if network.is_single:
            done = partial(self._single_done, request)
            ended = start_run(request, 0, request.inputs, done, retries, here=here)
            return None if ended is None else checked(network.nodes[0], ended)
        idle: list[NetworkExecutionState] = network.idle_states
        try:
            state = idle.pop()
        except IndexError:
            state = NetworkExecutionState(network)
        state.begin(request, retries)
        return self._advance(state, network.roots, here=here)

    def run_again(self, request: Request) -> bool:
        """Retry a request whose batch was lost with its device. Returns False if it may not be retried."""
        if not self._retries or request.is_late:
            return False
        request.network.counters.retry()
        ended = self._run(request, self._retries - 1, here=False)
        if ended is not None:
            self._finished(request, ended)
        return True

    def run_each(self, batch: BatchRequest) -> list[Result] | BaseException | None:
        """Start a batch for a network of one sub-network, which a device runs one after another. Returns the error if
        the device does not accept it."""
        node = batch.network.nodes[0]
        try:
            device, function = node.choose()
            inputs = [request.inputs for request in batch.requests]
            device.run_each(function, inputs, partial(self._each_done, batch), batch.priority)
        except Exception as error:  # becomes the requests' error
            return error
        return None

    def _each_done(self, batch: BatchRequest, results: Any) -> None:
        if not isinstance(results, BaseException):
            results = [checked(batch.network.nodes[0], result) for result in results]
        self._finished(batch, results)

    def _single_done(self, request: Request, result: Result) -> None:
        self._finished(request, checked(request.network.nodes[0], result))

    def _advance(self, state: NetworkExecutionState, ready: Sequence[int], *, here: bool) -> Result | None:
        """Start nodes on their devices. Returns the request's result if this ends it."""
        network, request = state.network, state.request
        assert request is not None
        todo = list(ready)
        while todo:
            at = todo.pop()
            node = network.nodes[at]
            inputs = [state.values[value] for value in node.inputs]
            # The last ready node runs on this thread, in parallel with the others.
            lend = here and not todo
            done = partial(self._done, state, at)
            result = start_run(request, at, inputs, done, state.retries, here=lend)
            if result is not None:
                more, over = state.settle(at, result)
                if over:
                    return self._end(state)
                todo += more
        return None

    def _done(self, state: NetworkExecutionState, at: int, result: Result) -> None:
        """Called when a device has run a node."""
        request = state.request
        assert request is not None
        ready, over = state.settle(at, result)
        ended = self._end(state) if over else self._advance(state, ready, here=False)
        if ended is not None:
            self._finished(request, ended)

    def _end(self, state: NetworkExecutionState) -> Result:
        ended = state.end()
        state.network.idle_states.append(state)
        return ended


def checked(node: PlacedNode, result: Result) -> Result:
    """A device's result for a node, replaced by an error unless it has one array for each output."""
    if isinstance(result, BaseException) or len(result) == len(node.outputs):
        return result
    return HostError(f"a device returned {len(result)} outputs of {node.node.name!r}, expected {len(node.outputs)}")
