"""The future of a request."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures._base import CANCELLED_AND_NOTIFIED, FINISHED, PENDING, RUNNING
from typing import Any

from onert.backend.tasks import Gate
from onert.exec.asynchronous import ENDED, LocklessFuture, Waiters, call_back, tell
from onert.host.network import Outputs


class _NoLock:
    """A dummy for the lock that the standard library's `wait` and `as_completed` acquire to inspect futures."""

    def acquire(self) -> None:
        """Do nothing."""

    def release(self) -> None:
        """Do nothing."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *error: object) -> None:
        """Do nothing."""


_NO_LOCK = _NoLock()


class Promise(LocklessFuture[Outputs]):
    """A replacement for the standard library's future, whose overhead is as long as a small model's run.

    It has no lock, which a thread interrupted by a signal handler might never release. Parts that only some futures
    need (a ticket, waiters) are created on demand, always before the caller checks whether the future is done; and the
    thread that ends the future sets its state before it looks for these parts.
    """

    _state: str = PENDING
    _result: Outputs | None = None
    _exception: BaseException | None = None
    _condition: Any = _NO_LOCK
    _gate: Gate | None = None
    _asking: Waiters | None = None

    def __init__(self) -> None:
        self._callbacks: list[Callable[[Future[Outputs]], object]] = []

    @property
    def _ticket(self) -> list[None]:
        """Its one element is taken either to start the request or to cancel it."""
        made: list[None] = self.__dict__.setdefault("_own_ticket", [None] if self._state == PENDING else [])
        return made

    # ---- for the host

    def start_at_once(self) -> None:
        """Start a request that was never queued, while no other thread has the future yet."""
        self._state = RUNNING

    def start(self) -> bool:
        """Start a request from the queue. Returns False if it was cancelled."""
        try:
            self._ticket.pop()
        except IndexError:
            return False
        self._state = RUNNING
        return True

    def set_running_or_notify_cancel(self) -> bool:
        return self.start()

    def set_result(self, result: Outputs) -> None:
        self._result = result
        self._end(FINISHED)

    def set_exception(self, exception: BaseException | None) -> None:
        self._exception = exception
        self._end(FINISHED)

    def _end(self, state: str) -> None:
        """Set the final state, and notify all waiters and callbacks once."""
        self._state = state
        if self._gate is not None:
            self._gate.open()
        if self._asking is not None:
            tell(self, self._asking)
        if self._callbacks:
            call_back(self, self._callbacks)

    @property
    def _waiters(self) -> list[Any]:  # type: ignore[override]  # the library's own are made by `__init__`
        """The list to which the standard library adds waiters for several futures."""
        made: Waiters = self.__dict__.setdefault("_asking", Waiters(self))
        return made

    # ---- for the caller

    def cancel(self) -> bool:
        """Cancel a queued request. Returns whether it is cancelled now."""
        try:
            self._ticket.pop()
        except IndexError:
            return self.cancelled()
        self._end(CANCELLED_AND_NOTIFIED)
        return True

    def add_done_callback(self, fn: Callable[[Future[Outputs]], object]) -> None:
        self._callbacks.append(fn)
        if self._state in ENDED:
            call_back(self, self._callbacks)

    def result(self, timeout: float | None = None) -> Outputs:
        try:
            error = self._exception if self._state is FINISHED else self.exception(timeout)
            if error is not None:
                raise error
            assert self._result is not None
            return self._result
        finally:
            del self  # otherwise the error's traceback would keep it alive

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the error, None if there is none. Raises TimeoutError if there is no answer in `timeout` seconds."""
        if self._state not in ENDED:
            gate: Gate = self.__dict__.setdefault("_gate", Gate())
            if self._state not in ENDED and not gate.wait(timeout):
                raise TimeoutError
        if self._state == CANCELLED_AND_NOTIFIED:
            raise CancelledError
        return self._exception

    def __repr__(self) -> str:
        return f"<Promise at {id(self):#x} state={self._state.lower()}>"
