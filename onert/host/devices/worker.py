"""The thread of a device, and its queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import Any
from weakref import ref

from onert.host.errors import DeviceLostError, HostError, RequestRefusedError
from onert.host.line import Call, Done, Made, Offer, SharedQueue
from onert.ir.process.forks import forgotten_by

_LOGGER = logging.getLogger("onert.host")


class Turn:
    """A token for the right to execute calls on a device. There is only one. If it is dropped instead of being given
    back, as when a signal handler raises in its holder, it is replaced."""

    __slots__ = ("_worker",)

    def __init__(self, worker: ref[Worker]) -> None:
        self._worker = worker

    def __del__(self) -> None:
        worker = self._worker()
        if worker is not None:
            worker.turns.put(Turn(self._worker))


class Worker:
    """Executes calls one at a time, ordered by priority (lowest first) and then by arrival.

    An idle worker takes calls that wait at other workers of the lines that it serves. Another thread may borrow its
    turn while no call waits. Waiting calls are in a heap and a queue of tokens that are only changed by single calls of
    functions written in C, so there is no lock that an interrupted caller could fail to release.
    """

    def __init__(self, name: str, begin: Callable[[], None]) -> None:
        self.name = name
        self.turns: SimpleQueue[Turn] = SimpleQueue()
        self._begin = begin
        self._numbers = count(1)
        self._heap: list[tuple[int, int, Call, Done] | tuple[int, int, Offer, int]] = []
        self._taken: list[None] = []
        """One element for each call in the heap that other workers took."""
        self._lines: dict[ref[SharedQueue], int] = {}
        """The lines that it serves, and its number in each."""
        self._tokens: SimpleQueue[None] = SimpleQueue()
        self._end: list[HostError] = []
        """After the end: the error with which calls are rejected."""
        self._own_turn = ref(self)
        self.turns.put(Turn(self._own_turn))
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        _ALL.add(self)

    def _work(self) -> None:
        self._begin()
        while not self._end:
            self._tokens.get()  # `end` adds a token without a call
            turn = self.turns.get()
            done, result = self._next()
            self.turns.put(turn)
            if done is not None and result is not None:
                self._tell(done, result)
            del turn, done, result
            while not self._heap and not self._end and self._help():
                pass
        self._refuse_all()

    def _help(self) -> bool:
        """Execute a call that waits at another worker. Returns False if there is none or this worker's turn is lent."""
        found = []
        for each, at in self._lines.copy().items():
            line = each()
            urgency = None if line is None else line.urgency()
            if urgency is not None:
                found.append((urgency, at, line))
        for _, at, line in sorted(found, key=lambda each: each[0]):
            try:
                turn = self.turns.get_nowait()
            except Empty:
                return False
            taken = None if line is None else line.take(at)[0]
            result = None if taken is None else _result(taken[0])
            self.turns.put(turn)
            if taken is not None and result is not None:
                self._tell(taken[1], result)
                return True
        return False

    def _next(self) -> tuple[Done | None, Sequence[Any] | BaseException | None]:
        """Execute the first call, if any. Returns the function that gets the result, and the result."""
        if self._end:
            return None, None
        first = self._first()
        if first is None:
            return None, None
        call, done = first
        return done, _result(call)

    def _first(self) -> tuple[Call, Done] | None:
        """The first call and the function that gets its result; None if there is none or another worker took it.

        If the first call is an offer of a line, the line's first call is taken instead, which may be queued at another
        worker; this worker's own call then continues to wait.
        """
        try:
            first = heappop(self._heap)
        except IndexError:
            return None
        _, _, call, done = first
        if isinstance(done, int):
            assert isinstance(call, Offer)
            found, is_own = call.line.take(done, call) if call.is_open else (None, True)
            if not is_own:
                heappush(self._heap, first)
                self._tokens.put(None)
            elif found is None:
                self._taken.pop()
            return found
        assert not isinstance(call, Offer)
        return call, done

    def serve(self, line: SharedQueue, at: int) -> None:
        """As worker `at` of a line, take its calls whenever this worker is idle."""
        lines = self._lines
        lines[ref(line, lambda gone: lines.pop(gone, None))] = at

    def offer(self, line: SharedQueue, at: int, priority: int, made: Made) -> int:
        """Like `submit`, as worker `at` of a line, for a call that the line's other workers may take."""
        if self._end:
            raise self._end[0]
        number = next(self._numbers)
        offer = Offer(line, made, self._taken)
        heappush(self._heap, (priority, number, offer, at))
        line.add(priority, offer)
        self._tokens.put(None)
        if self._end:
            self._refuse_all()
        return number

    def submit(self, priority: int, call: Call, done: Done) -> int:
        """Queue a call and return its number.

        `done` gets the result or error after the turn was released; it is a RequestRefusedError if the worker is
        stopped before the call. If it has already been stopped, the error is raised.
        """
        if self._end:
            raise self._end[0]
        number = next(self._numbers)
        heappush(self._heap, (priority, number, call, done))
        self._tokens.put(None)
        if self._end:  # stopped since the check above, so that the thread may never see the call
            self._refuse_all()
        return number

    @property
    def load(self) -> int:
        """The number of active and waiting calls."""
        return len(self._heap) - len(self._taken) + self.turns.empty()

    def borrow(self) -> Turn | None:
        """The thread's turn if it is idle, otherwise None. It must be given back, or dropped."""
        if self._heap or self._end:
            return None
        try:
            return self.turns.get_nowait()
        except Empty:
            return None

    def give_back(self, turn: Turn) -> None:
        """Return a borrowed turn."""
        self.turns.put(turn)

    def alone(self, call: Callable[[], object]) -> None:
        """Execute a call on this thread while no other call is active."""
        turn = self.turns.get()
        try:
            call()
        finally:
            self.turns.put(turn)

    def stop(self) -> None:
        """Stop after the current call and reject waiting ones. Waits for that, unless called by the worker."""
        self.end(RequestRefusedError(f"device {self.name!r} was stopped"))
        if current_thread() is not self._thread:
            self._thread.join()
            self._refuse_all()

    def end(self, error: HostError) -> None:
        """Accept no more calls; waiting ones get the error."""
        self._end.append(error)
        self._tokens.put(None)

    def _refuse_all(self) -> None:
        while self._heap:
            try:
                _, _, call, done = heappop(self._heap)
            except IndexError:  # another thread does the same
                return
            if isinstance(done, int):
                assert isinstance(call, Offer)
                found = call.take(done)
                if found is None:  # another worker makes it
                    self._taken.pop()
                    continue
                done = found[1]
            self._tell(done, self._end[0])

    def _tell(self, done: Done, result: Sequence[Any] | BaseException) -> None:
        """Deliver the result of a call. Errors of the receiver are logged and do not stop the device."""
        try:
            done(result)
        except Exception:
            _LOGGER.exception("device %s: the receiver of a result failed", self.name)

    def forget(self) -> None:
        """Called after a fork in the child: the thread belongs to the parent, which also answers waiting calls."""
        self._heap.clear()
        self._end.append(DeviceLostError(f"device {self.name!r} belongs to the process that this one was forked from"))
        self.turns = SimpleQueue()
        self.turns.put(Turn(self._own_turn))


def _result(call: Call) -> Sequence[Any] | BaseException:
    """The result of a call, or its error."""
    try:
        return call()
    except BaseException as error:
        return error


_ALL = forgotten_by(Worker.forget)
