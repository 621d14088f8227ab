"""A run that goes on while its caller does something else."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from .stop import Stop


class Worker(ThreadPoolExecutor):
    """The thread that does the runs of one execution. It does not outlive a fork: see `here`."""

    def __init__(self) -> None:
        super().__init__(1, thread_name_prefix="onert-execution")
        self._process = os.getpid()

    @property
    def here(self) -> bool:
        """Whether the thread is one of this process."""
        return self._process == os.getpid()


def _release(future: Future[None]) -> None:
    """A callback that holds on to nothing, the future least of all."""
    assert isinstance(future, RunFuture)
    future.release()


class RunFuture(Future[None]):
    """The future of a run. Callbacks fire once each, when the run has ended, failed or was cancelled.

    `cancel` also ends a run that is under way, before its next step: the future then raises `RunCancelledError`, unless
    the run was past its last step.
    """

    def __init__(self, stop: Stop, release: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop
        self._release = release
        self._releasing = Lock()
        self.add_done_callback(_release)

    def release(self) -> None:
        """Let the execution go, once."""
        if self._releasing.acquire(blocking=False):
            self._release()

    def cancel(self) -> bool:
        """Whether the run was still to come or under way."""
        if super().cancel():
            return True
        if self.running():
            self._stop.cancel()
            return True
        return False

    def fulfil(self, run: Callable[[], None]) -> None:
        """Run, unless cancelled before; by the thread that does the work."""
        if not self.set_running_or_notify_cancel():
            return
        try:
            run()
        except BaseException as error:
            self.release()
            self.set_exception(error)
        else:
            self.release()
            self.set_result(None)
