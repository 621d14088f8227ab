"""What is written to the disk while nobody waits for it; the process ends when it is written."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from .tasks import Pool, Task


class Writers:
    """What is being written, one thing after the other. A child that is forked has nothing to write."""

    def __init__(self) -> None:
        self._pool = Pool(1, "onert-write")
        self._tasks: list[Task[None]] = []

    def begin(self, write: Callable[[], object]) -> None:
        """Call `write` after what was begun before, while the caller goes on; now where the system has no thread."""
        self._tasks = [task for task in self._tasks if not task.done]
        task = Task(partial(_written, write))
        self._tasks.append(task)
        try:
            self._pool.give(task)
        except RuntimeError:
            task.run()

    def finish(self) -> None:
        """Wait until all that was begun before is written."""
        for task in tuple(self._tasks):
            with suppress(RuntimeError):  # the process ends, and whoever ends it sees to what is left
                self._pool.give(task)  # again, where an interrupt came before it was given
            task.wait()
            with suppress(ValueError):  # another thread waited for it too
                self._tasks.remove(task)

    def forget(self) -> None:
        """After a fork: the parent writes."""
        self._tasks = []


def _written(write: Callable[[], object]) -> None:
    """Nobody waits for the result: an error is reported as a thread's."""
    try:
        write()
    except Exception:
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))


WRITERS = Writers()
"""Those of this process."""
os.register_at_fork(after_in_child=WRITERS.forget)
