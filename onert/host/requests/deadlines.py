"""Answering requests when their time is over."""

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
    """Calls `expire` with each request that is not answered at its deadline, by the alarm's thread.

    Requests are held weakly. Those that are over are forgotten whenever they are half of all, so that a long timeout
    takes no memory after the answer.
    """

    def __init__(self, alarm: Alarm, expire: Callable[[Request], object]) -> None:
        self._alarm = alarm
        self._expire = expire
        self._lock = Lock()
        self._entries: list[tuple[float, int, ref[Request]]] = []
        self._next = float("inf")
        """When the alarm rings next."""
        self._limit = _FEW

    def add(self, request: Request) -> None:
        """Watch a request that has a deadline."""
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
