"""Answer requests at their deadlines."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from threading import Lock
from time import perf_counter
from weakref import ref

from .alarm import Alarm
from .request import Request

_FEW = 64


class Deadlines:
    """Calls `expire` on the alarm's thread for each request that is not answered by its deadline.

    Requests are referenced weakly. Finished ones are removed whenever the number of entries has doubled, so that a long
    timeout uses no memory after the answer.
    """

    def __init__(self, alarm: Alarm, expire: Callable[[Request], object]) -> None:
        self._alarm = alarm
        self._expire = expire
        self._lock = Lock()
        self._entries: list[tuple[float, int, ref[Request]]] = []
        self._next = float("inf")
        """The time of the next alarm."""
        self._limit = _FEW

    def add(self, request: Request) -> None:
        """Watch a request with a deadline."""
        assert request.deadline is not None
        with self._lock:
            heappush(self._entries, (request.deadline, request.number, ref(request)))
            if len(self._entries) > self._limit:
                self._entries = [entry for entry in self._entries if _is_open(entry[2]())]
                heapify(self._entries)
                self._limit = 2 * len(self._entries) + _FEW
            self._set()

    def _set(self) -> None:
        if self._entries and self._entries[0][0] < self._next:
            self._next = self._entries[0][0]
            self._alarm.at(self._next, self._ring)

    def _ring(self) -> None:
        due: list[Request] = []
        with self._lock:
            now = perf_counter()
            while self._entries and self._entries[0][0] <= now:
                request = heappop(self._entries)[2]()
                if request is not None:
                    due.append(request)
            if self._next <= now:
                self._next = float("inf")
            self._set()
        for request in due:
            self._expire(request)


def _is_open(request: Request | None) -> bool:
    return request is not None and not request.is_answered
