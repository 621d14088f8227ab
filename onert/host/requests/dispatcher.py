"""The life of requests from admission to answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from weakref import WeakSet, finalize, ref

from onert.backend.tasks import Gate, Pool
from onert.host.device_manager import Result
from onert.host.errors import HostError
from onert.host.host_config import BatchConfig, HostConfig
from onert.host.network import Network
from onert.host.trace import HostTrace

from .admission import Admission
from .alarm import Alarm
from .batch import BatchRequest
from .batcher import Batcher
from .deadlines import Deadlines
from .executor import Executor
from .request import PromisedRequest, Request
from .session import Sessions

_LOGGER = logging.getLogger("onert.host")


class Dispatcher:
    """Admits requests, runs them, and answers each of them once."""

    def __init__(self, config: HostConfig) -> None:
        self._admission = Admission(config)
        self._executor = Executor(self._finished, config.retries)
        self._alarm = Alarm()
        finalize(self, self._alarm.end)
        self._deadlines = Deadlines(self._alarm, _expire(ref(self)))
        self._callbacks = Pool(config.executor_threads, "onert-callback")
        self.sessions = Sessions(config)
        self.traces: list[HostTrace] = []
        """The traces that record requests."""
        self._batchers: WeakSet[Batcher] = WeakSet()
        self.refused = self._admission.refused
        self.remove = self._admission.remove
        self.counts = self._admission.counts

    def enter(self, request: Request, *, here: bool) -> None:
        """Run a request now, or queue it. With `here`, an idle device may use the calling thread.

        Raises RequestRefusedError if the queue is full or the host is closed, and NetworkNotFoundError if the network
        was removed meanwhile; the request then gets no other answer.
        """
        may_run, late = self._admission.enter(request)
        if late:
            self._answer_late(late)
        if may_run:
            ended = self._begun(request, here=here)
            if ended is not None:
                self._finished(request, ended)
                return
        if request.deadline is not None and isinstance(request, PromisedRequest):
            self._deadlines.add(request)  # other requests are timed out by their waiting sender

    def _begun(self, request: Request, *, here: bool) -> Result | None:
        """Start a request. Returns its result if it is already over."""
        if request.session is not None:
            return self._begun_in_turn(request, here=here)
        batcher = request.network.batcher
        if batcher is None or not (batcher.takes_all or batcher.takes(request)):
            return self._executor.run(request, here=here)
        batcher.add(request, here=here)
        return None

    def _begun_in_turn(self, request: Request, *, here: bool) -> Result | None:
        """The same for a request of a sequence, which waits for the previous ones."""
        try:
            if not request.session.enter(request):
                return None
        except HostError as error:
            request.session = None
            return error
        return self._executor.run(request, here=here)

    def batcher(
        self, networks: Mapping[int, Network], config: BatchConfig, most_running: int, *, stacked: bool
    ) -> Batcher:
        """A batcher for a network. `networks` are the network compiled for several batch sizes, by size."""
        made = Batcher(networks, stacked, config, most_running, self._executor, self._finished_together, self._alarm)
        self._batchers.add(made)
        return made

    def _finished(self, request: Request, result: Result) -> None:
        """Handle the result of a request."""
        if isinstance(request, BatchRequest):
            request.owner(request, result)
            return
        if request.session is not None:
            self._follow(request)
        if request.callback is None:
            self._leave(request, result, late=not request.claim())
            return
        if not request.claim():
            self._leave(request, result, late=True)
            return
        request.answer(result)
        self._on_callback_thread(partial(self._call_back, request, result))

    def _finished_together(self, requests: Sequence[Request], results: Sequence[Result]) -> None:
        """Handle the results of a batch of requests for one network."""
        timely: list[Request] = []
        found: list[Result] = []
        late: list[Request] = []
        for request, result in zip(requests, results, strict=True):
            if request.callback is not None:
                self._finished(request, result)
            elif request.claim():
                timely.append(request)
                found.append(result)
            else:
                late.append(request)
        if not timely and not late:
            return
        if self.traces:
            for request, result in zip(timely, found, strict=True):
                self._record(request, result)
            for request in late:
                self._record(request, request.late())
        following, others = self._admission.leave_together(timely, found, late)
        for request, result in zip(timely, found, strict=True):
            request.answer(result)
        if others:
            self._answer_late(others)
        for request in following:
            begun = self._begun(request, here=False)
            if begun is not None:
                self._finished(request, begun)

    def _follow(self, request: Request) -> None:
        """Start the next request of the same sequence."""
        following: Request | None = request.session.leave()
        if following is not None:
            late = following.late() if following.is_late else None
            ended = self._executor.run(following, here=False) if late is None else late
            if ended is not None:
                self._finished(following, ended)

    def _call_back(self, request: Request, result: Result) -> None:
        try:
            _called(request)
        finally:
            self._leave(request, result)

    def _leave(self, request: Request, result: Result, *, late: bool = False) -> None:
        """Answer a request, unless it has been answered, and start queued ones until one does not end at once.

        A `late` request was answered at its deadline while it was running.
        """
        while True:
            if self.traces:
                self._record(request, request.late() if late else result)
            following, others = self._admission.leave(request, result, late=late)
            if request.callback is None and not late:
                request.answer(result)
            if others:
                self._answer_late(others)
            if following is None:
                return
            ended = self._begun(following, here=False)
            if ended is None:
                return
            if following.callback is not None or following.session is not None:
                self._finished(following, ended)
                return
            request, result, late = following, ended, not following.claim()

    def _record(self, request: Request, result: Result) -> None:
        start, end = round(request.begun * 1e9), perf_counter_ns()
        error = str(result) if isinstance(result, BaseException) else ""
        for trace in self.traces:
            trace.answered(request.number, request.network.name, start, end, error)

    def _answer_late(self, late: Sequence[Request]) -> None:
        for request in late:
            request.answer(request.late())
            if request.callback is not None:
                self._on_callback_thread(partial(_called, request))

    def expire(self, request: Request) -> None:
        """Answer a request whose deadline has passed. If it is running, it counts as active until the run ends."""
        if not request.is_answered:
            self._answer_late(self._admission.expired(request))

    def _on_callback_thread(self, call: Callable[[], None]) -> None:
        try:
            self._callbacks.submit(call)
        except RuntimeError:  # the process is ending, or cannot start a thread
            call()

    def close(self) -> Gate:
        """Admit no more requests. The gate opens when all are answered. Raises HostError in a callback."""
        if self._callbacks.is_member():
            raise HostError("this host cannot be closed by a callback of one of its requests; close it afterwards")
        gate = self._admission.close()
        for batcher in tuple(self._batchers):
            batcher.hurry()
        return gate


def _expire(dispatcher: ref[Dispatcher]) -> Callable[[Request], None]:
    """The function that the alarm calls. It must not keep the dispatcher alive."""

    def expire(request: Request) -> None:
        found = dispatcher()
        if found is not None:
            found.expire(request)

    return expire


def _called(request: Request) -> None:
    """Call a request's callback. Its errors are only logged."""
    assert request.callback is not None
    assert isinstance(request, PromisedRequest)
    try:
        request.callback(request.future)
    except Exception:
        _LOGGER.exception("the callback of request %d failed", request.number)
