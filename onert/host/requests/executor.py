"""`Executor`: walks a network's DAG for each request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

from onert.host.device_manager import Result
from onert.host.errors import HostError
from onert.host.network import Network, PlacedNode
from onert.ir import Array

from .attempt import begin
from .batch import BatchRequest
from .request import Request

Finished = Callable[[Request, Result], None]


class NetworkExecutionState:
    """What one request for a network of several sub-networks has come to.

    `waiting` says of each node how many of its parents have not run. `inflight` counts the nodes that were begun and
    are not over: when it comes to 0, the request is. Only the first error counts; no node is begun after it.
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
        """Take a request; no other is under way. Each of its runs may be begun again so often."""
        network = self.network
        self.request = request
        self.retries = retries
        self.waiting[:] = network.parents
        self.values.update(zip(network.inputs, request.inputs, strict=True))
        self.inflight = len(network.roots)

    def settle(self, at: int, result: Result) -> tuple[tuple[int, ...], bool]:
        """A node is over. The nodes that may run now, and whether the request is over: said once."""
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
        """What came of the request that is over: the outputs, or the first error. The state is as if new."""
        error = self.error
        result: Result = [self.values[value] for value in self.network.outputs] if error is None else error
        self.values.clear()
        self.error = self.request = None
        return result


class Executor:
    """Runs requests: each sub-network when those have run that it waits for, on the device that is least busy.

    `finished` is called once for every request that was begun and did not end at once, whatever comes of it, by a
    thread of the device that ran the last of its sub-networks. States are made when they are needed, and used again.
    A run whose device was lost is begun again up to `retries` times.
    """

    def __init__(self, finished: Finished, retries: int = 0) -> None:
        self._finished = finished
        self._retries = retries

    def run(self, request: Request, *, here: bool) -> Result | None:
        """Begin a request. Its result where it has ended: nobody is told then.

        With `here` the calling thread is lent to devices that are idle. A batch is not begun again but each of its
        requests is (`run_again`): so one that ends its device every time takes no other with it.
        """
        return self._run(request, 0 if isinstance(request, BatchRequest) else self._retries, here=here)

    def _run(self, request: Request, retries: int, *, here: bool) -> Result | None:
        network = request.network
        if network.is_single:
            done = partial(self._single_done, request)
            ended = begin(request, 0, request.inputs, done, retries, here=here)
            return None if ended is None else checked(network.nodes[0], ended)
        idle: list[NetworkExecutionState] = network.idle_states
        try:
            state = idle.pop()
        except IndexError:
            state = NetworkExecutionState(network)
        state.begin(request, retries)
        return self._advance(state, network.roots, here=here)

    def run_again(self, request: Request) -> bool:
        """Begin a request once more whose batch was lost with its device; False where that is not to be."""
        if not self._retries or request.is_late:
            return False
        request.network.counters.retry()
        ended = self._run(request, self._retries - 1, here=False)
        if ended is not None:
            self._finished(request, ended)
        return True

    def run_each(self, batch: BatchRequest) -> list[Result] | BaseException | None:
        """Begin several requests for a network of one sub-network, which a device runs one after the other; the error
        where it does not take them."""
        node = batch.network.nodes[0]
        try:
            device, function = node.choose()
            inputs = [request.inputs for request in batch.requests]
            device.run_each(function, inputs, partial(self._each_done, batch), batch.priority)
        except Exception as error:  # the requests'
            return error
        return None

    def _each_done(self, batch: BatchRequest, results: Any) -> None:
        if not isinstance(results, BaseException):
            results = [checked(batch.network.nodes[0], result) for result in results]
        self._finished(batch, results)

    def _single_done(self, request: Request, result: Result) -> None:
        self._finished(request, checked(request.network.nodes[0], result))

    def _advance(self, state: NetworkExecutionState, ready: Sequence[int], *, here: bool) -> Result | None:
        """Give nodes to their devices; the request's result where this ends it."""
        network, request = state.network, state.request
        assert request is not None
        todo = list(ready)
        while todo:
            at = todo.pop()
            node = network.nodes[at]
            inputs = [state.values[value] for value in node.inputs]
            # The last one that is ready runs here; the others run beside it.
            lend = here and not todo
            done = partial(self._done, state, at)
            result = begin(request, at, inputs, done, state.retries, here=lend)
            if result is not None:
                more, over = state.settle(at, result)
                if over:
                    return self._end(state)
                todo += more
        return None

    def _done(self, state: NetworkExecutionState, at: int, result: Result) -> None:
        """A device has run a node."""
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
    """What a device gave for a node; an error in its place where that is not one array for each output."""
    if isinstance(result, BaseException) or len(result) == len(node.outputs):
        return result
    return HostError(f"a device gave {len(result)} outputs of {node.node.name!r}, expected {len(node.outputs)}")
