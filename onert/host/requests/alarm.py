"""Calls at a later time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import perf_counter

_LOGGER = logging.getLogger("onert.host")


class Alarm:
    """A thread, started when first needed, that makes calls at given times."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()
        self._tokens: SimpleQueue[None] = SimpleQueue()
        self._thread: Thread | None = None
        self._ended = False

    def at(self, when: float, call: Callable[[], object]) -> None:
        """Make a short call at `when` (seconds of `perf_counter`) or soon after."""
        with self._lock:
            heappush(self._calls, (when, next(self._numbers), call))
            if self._thread is None:
                self._thread = Thread(target=self._work, name="onert-alarm", daemon=True)
                self._thread.start()
        self._tokens.put(None)

    def _work(self) -> None:
        while not self._ended:
            left = self._ring()
            try:
                self._tokens.get(timeout=left)
            except Empty:
                continue

    def _ring(self) -> float | None:
        """Make all calls that are due. Returns the seconds until the next one, None if there is none."""
        while True:
            with self._lock:
                if not self._calls:
                    return None
                left = self._calls[0][0] - perf_counter()
                if left > 0:
                    return left
                _, _, call = heappop(self._calls)
            try:
                call()
            except Exception:
                _LOGGER.exception("a call of the alarm failed")
            del call

    def end(self) -> None:
        """Make no more calls."""
        self._ended = True
        self._tokens.put(None)
