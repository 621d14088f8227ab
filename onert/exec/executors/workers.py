"""The process's worker threads, which runs at the same time share."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

MOST = 64
"""How many threads there are at most. A run never waits for one: its own thread does what no other takes."""


class Workers:
    """Threads that are started when there is work for them and stay for more."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None

    def forget(self) -> None:
        """After a fork: the threads stayed with the parent."""
        self._lock = Lock()
        self._pool = None

    def submit(self, work: Callable[[], None]) -> None:
        """Let a thread do `work` soon; it must raise nothing."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(MOST, thread_name_prefix="onert-worker")
            self._pool.submit(work)


WORKERS = Workers()
"""The process's workers: threads are its to share, like processors."""
os.register_at_fork(after_in_child=WORKERS.forget)
