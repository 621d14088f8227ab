"""The thread of a device, and what lies before it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import Any
from weakref import WeakSet, ref

from onert.host.errors import DeviceLostError, HostError, RequestRefusedError
from onert.host.line import Call, Done, Line, Made, Offer

_LOGGER = logging.getLogger("onert.host")


class Turn:
    """The right to make a call on a device. There is one; dropped without being given back, which happens where a
    signal handler raises in its holder, it is replaced."""

    __slots__ = ("_worker",)

    def __init__(self, worker: ref[Worker]) -> None:
        self._worker = worker

    def __del__(self) -> None:
        worker = self._worker()
        if worker is not None:
            worker.turns.put(Turn(self._worker))


class Worker:
    """Makes calls one at a time: those of lower priority first, then in the order in which they came.

    One that has nothing to do takes calls that wait before others, of the lines that it serves. Another thread may
    borrow its turn while nothing waits. What waits is in a heap and a queue of tokens, each changed
    by single calls of functions written in C: no lock is involved that an interrupted caller could keep.
    """

    def __init__(self, name: str, begin: Callable[[], None]) -> None:
        self.name = name
        self.turns: SimpleQueue[Turn] = SimpleQueue()
        self._begin = begin
        self._numbers = count(1)
        self._heap: list[tuple[int, int, Call, Done] | tuple[int, int, Offer, int]] = []
        self._taken: list[None] = []
        """As many as calls in the heap that others took."""
        self._lines: dict[ref[Line], int] = {}
        """Lines that it serves, and its number in each."""
        self._tokens: SimpleQueue[None] = SimpleQueue()
        self._end: list[HostError] = []
        """Why no calls are taken any more, once that is so."""
        self._own_turn = ref(self)
        self.turns.put(Turn(self._own_turn))
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        _ALL.add(self)

    def _work(self) -> None:
        self._begin()
        while not self._end:
            self._tokens.get()  # `end` gives one for no call
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
        """Make a call that waits before another worker; False where there is none, or this one's turn is lent."""
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
        """Make the first call, if there is one, and say who is to be told what."""
        if self._end:
            return None, None
        first = self._first()
        if first is None:
            return None, None
        call, done = first
        return done, _result(call)

    def _first(self) -> tuple[Call, Done] | None:
        """The first call, and who is told; None where there is none, or another worker took it.

        Where the first is one of a line, it is the line's first, which may lie before another worker; this one's own
        waits on.
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

    def serve(self, line: Line, at: int) -> None:
        """Take calls of a line as its worker number `at` whenever there is nothing else to do."""
        lines = self._lines
        lines[ref(line, lambda gone: lines.pop(gone, None))] = at

    def offer(self, line: Line, at: int, priority: int, made: Made) -> int:
        """`submit` a call, as worker number `at` of a line, that the line's other workers may make."""
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
        """Have the thread make a call; the call's number. `done` is told the result, or the error, when other calls may
        be made again; where the worker is stopped first, a RequestRefusedError. One is raised where it was stopped
        before."""
        if self._end:
            raise self._end[0]
        number = next(self._numbers)
        heappush(self._heap, (priority, number, call, done))
        self._tokens.put(None)
        if self._end:  # since it was looked at: nobody may come to what was pushed
            self._refuse_all()
        return number

    @property
    def load(self) -> int:
        """How many calls are under way or waiting."""
        return len(self._heap) - len(self._taken) + self.turns.empty()

    def borrow(self) -> Turn | None:
        """The thread's turn, where it is idle: to be given back, or dropped."""
        if self._heap or self._end:
            return None
        try:
            return self.turns.get_nowait()
        except Empty:
            return None

    def give_back(self, turn: Turn) -> None:
        """Let others make calls."""
        self.turns.put(turn)

    def alone(self, call: Callable[[], object]) -> None:
        """Make a call in this thread while no other is under way."""
        turn = self.turns.get()
        try:
            call()
        finally:
            self.turns.put(turn)

    def stop(self) -> None:
        """End after the call that is under way; those that wait are refused. Waits for that, unless called by it."""
        self.end(RequestRefusedError(f"device {self.name!r} was stopped"))
        if current_thread() is not self._thread:
            self._thread.join()
            self._refuse_all()

    def end(self, error: HostError) -> None:
        """Take no more calls; others are told the error."""
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
        """Say what came of a call. The device outlives whoever cannot be told."""
        try:
            done(result)
        except Exception:
            _LOGGER.exception("device %s ran something whose receiver failed", self.name)

    def forget(self) -> None:
        """After a fork: the thread stayed with the parent, and what waits is answered there."""
        self._heap.clear()
        self._end.append(DeviceLostError(f"device {self.name!r} stayed with the process that this one was forked from"))
        self.turns = SimpleQueue()
        self.turns.put(Turn(self._own_turn))


def _result(call: Call) -> Sequence[Any] | BaseException:
    """What a call gives, or its error: told to those who wait for it."""
    try:
        return call()
    except BaseException as error:
        return error


_ALL: WeakSet[Worker] = WeakSet()


def _forget() -> None:
    for each in tuple(_ALL):
        each.forget()


os.register_at_fork(after_in_child=_forget)
