"""Background writes to disk. The process waits for them before it ends."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from .tasks import Pool, Task


class Writers:
    """Pending writes, done one after the other. A forked child starts with none."""

    def __init__(self) -> None:
        self._pool = Pool(1, "onert-write")
        self._tasks: list[Task[None]] = []

    def begin(self, write: Callable[[], object]) -> None:
        """Call `write` in the background after all earlier writes; at once if no thread can be started."""
        self._tasks = [task for task in self._tasks if not task.done]
        task = Task(partial(_written, write))
        self._tasks.append(task)
        try:
            self._pool.give(task)
        except RuntimeError:
            task.run()

    def finish(self) -> None:
        """Wait until all pending writes are done."""
        for task in tuple(self._tasks):
            with suppress(RuntimeError):  # the process is ending, and `tasks.finish` runs what is left
                self._pool.give(task)  # again, in case an interrupt came before it was given
            task.wait()
            with suppress(ValueError):  # another thread removed it
                self._tasks.remove(task)

    def forget(self) -> None:
        """After a fork: the parent does these writes."""
        self._tasks = []


def _written(write: Callable[[], object]) -> None:
    """Write; nobody waits for the result, so an error is reported like a thread's uncaught exception."""
    try:
        write()
    except Exception:
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))


WRITERS = Writers()
"""The writers of this process."""
os.register_at_fork(after_in_child=WRITERS.forget)
