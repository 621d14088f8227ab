"""Asynchronous runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures._base import CANCELLED_AND_NOTIFIED, FINISHED, LOGGER, RUNNING
from contextlib import suppress
from typing import Any, TypeVar
from weakref import ref

from onert.backend.tasks import Gate, Pool, Task
from onert.ir import ExecutionError

from .stop import Stop

T = TypeVar("T")
ENDED = (FINISHED, CANCELLED_AND_NOTIFIED)
_LOOK = 1.0
"""Seconds after which a waiting thread checks whether the run can still end."""


class LocklessFuture(Future[T]):
    """The standard library's future without its lock, which a signal handler could leave locked."""

    def cancelled(self) -> bool:
        return self._state == CANCELLED_AND_NOTIFIED

    def running(self) -> bool:
        return self._state == RUNNING

    def done(self) -> bool:
        return self._state in ENDED


class RunFuture(LocklessFuture[None]):
    """The future of a run. Each callback is called once, when the run has ended, has failed or was cancelled.

    `cancel` also ends a run that has begun, before its next step: the future then raises `RunCancelledError`, unless
    the run was past its last step.

    It works with the standard library's functions, `wait` and `as_completed` among them.
    """

    _done_callbacks: list[Callable[[Future[None]], object]]

    def __init__(self, stop: Stop, pool: Pool) -> None:
        super().__init__()
        self._waiters: list[Any] = Waiters(self)
        self._stop = stop
        self._pool: Pool | None = pool
        self._process = os.getpid()
        self._fate: dict[None, str] = {}
        self._gate = Gate()
        self._task: Task[None] | None = None

    # ---- for the execution

    def task(self, run: Callable[[], None]) -> Task[None]:
        """The task that a thread runs for this future."""
        self._task = Task(lambda: self._fulfil(run))
        return self._task

    @property
    def goes_on(self) -> bool:
        """Whether the run has not ended yet. False in a fork of the process that started it."""
        return not self.done() and self._process == os.getpid()

    def settle(self) -> None:
        """Wait for the end of the run. If it is queued for the calling thread, it runs now."""
        self._help()
        while self.goes_on:
            self._gate.wait(_LOOK)

    def _help(self) -> None:
        pool, task = self._pool, self._task
        if pool is not None and task is not None and pool.is_member():
            task.run()

    def _fulfil(self, run: Callable[[], None]) -> None:
        if self._fate.setdefault(None, RUNNING) is not RUNNING:
            self._end(CANCELLED_AND_NOTIFIED)
            return
        self._state = RUNNING
        try:
            run()
        except BaseException as error:  # raised by the future
            self._exception = error
        del run
        self._end(FINISHED)

    def _end(self, state: str) -> None:
        """Notify everyone. If several threads do this, each waiter and callback is still notified once."""
        self._pool = self._task = None
        self._state = state
        self._gate.open()
        tell(self, self._waiters)
        call_back(self, self._done_callbacks)

    # ---- for its user

    def cancel(self) -> bool:
        """Cancel the run, before its next step if it has begun. False if it had ended already."""
        if self._fate.setdefault(None, CANCELLED_AND_NOTIFIED) is CANCELLED_AND_NOTIFIED:
            self._end(CANCELLED_AND_NOTIFIED)
            return True
        if self.done():
            return False
        self._stop.cancel()
        return True

    def add_done_callback(self, fn: Callable[[Future[None]], object]) -> None:
        self._done_callbacks.append(fn)
        if self.done():
            call_back(self, self._done_callbacks)

    def result(self, timeout: float | None = None) -> None:
        try:
            error = self.exception(timeout)
            if error is not None:
                raise error
        finally:
            del self  # the error's traceback would keep it alive

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error of the run, or None. Raises TimeoutError if it does not end within `timeout` seconds."""
        self._help()
        left = timeout
        while not self.done():
            self._gate.wait(_LOOK if left is None else min(left, _LOOK))
            if self.done():
                break
            if self._process != os.getpid():
                raise ExecutionError("the run stayed with the process that this one was forked from; run again here")
            if left is not None:
                left -= _LOOK
                if left <= 0:
                    raise TimeoutError
        if self.cancelled():
            raise CancelledError
        return self._exception

    def __repr__(self) -> str:
        return f"<RunFuture at {id(self):#x} state={self._state.lower()}>"


class Waiters(list[Any]):
    """The waiters that `wait` and `as_completed` add to a future, notified even if it ends at that moment."""

    def __init__(self, future: Future[Any]) -> None:
        super().__init__()
        self._future = ref(future)  # the future holds this list

    def append(self, waiter: Any) -> None:
        super().append(waiter)
        future = self._future()
        if future is not None and future.done():
            tell(future, self)

    def remove(self, waiter: Any) -> None:
        with suppress(ValueError):  # it has been notified and removed
            super().remove(waiter)


def tell(future: Future[Any], waiters: list[Any]) -> None:
    """Notify those who wait for several futures that this one has ended, each once even if other threads do it too."""
    while waiters:
        try:
            waiter = waiters.pop()
        except IndexError:  # another thread notifies it
            return
        if future.cancelled():
            waiter.add_cancelled(future)
        elif future.exception() is not None:
            waiter.add_exception(future)
        else:
            waiter.add_result(future)


def call_back(future: Future[Any], callbacks: list[Callable[[Future[Any]], object]]) -> None:
    """Call the callbacks of a future that has ended, each once even if other threads do it too."""
    while callbacks:
        try:
            callback = callbacks.pop(0)
        except IndexError:  # another thread calls it
            return
        try:
            callback(future)
        except Exception:
            LOGGER.exception("exception calling callback for %r", future)
