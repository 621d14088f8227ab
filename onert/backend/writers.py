"""Threads that write to the disk what nobody waits for; the process ends when they have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread


class Writers:
    """What is being written, one thing after the other. A child that is forked has nothing to write."""

    def __init__(self) -> None:
        self._threads: list[Thread] = []

    def begin(self, write: Callable[[], object]) -> None:
        """Call `write` after what was begun before, while the caller goes on; now where the system has no thread."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        before = self._threads[-1] if self._threads else None
        thread = Thread(target=_after, args=(before, write), name="onert-write")
        try:
            thread.start()
        except RuntimeError:
            write()
        else:
            self._threads.append(thread)

    def finish(self) -> None:
        """Wait until all that was begun before is written."""
        for thread in tuple(self._threads):
            thread.join()
            with suppress(ValueError):  # another thread waited for it too
                self._threads.remove(thread)


def _after(before: Thread | None, write: Callable[[], object]) -> None:
    if before is not None:
        before.join()
    write()


WRITERS = Writers()
"""Those of this process."""
