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
    """What `wait` and `as_completed` of the standard library hold while they look at futures: these need none."""

    def acquire(self) -> None:
        """At once."""

    def release(self) -> None:
        """Nothing."""

    def __enter__(self) -> None:
        """At once."""

    def __exit__(self, *error: object) -> None:
        """Nothing."""


_NO_LOCK = _NoLock()


class Promise(LocklessFuture[Outputs]):
    """The standard library's future, made and kept in a fraction of its time, which is that of a small model's run.

    It takes no lock, which a thread that a signal handler interrupts could keep. What only some futures need (a
    ticket, who waits) is made when somebody asks for it, before he looks whether the future is done; who ends it sets
    the state before he looks for them.
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
        """Taken by who starts the request, or by who cancels it."""
        made: list[None] = self.__dict__.setdefault("_own_ticket", [None] if self._state == PENDING else [])
        return made

    # ---- for the host

    def start_at_once(self) -> None:
        """The request is run without having been in the queue: nobody else knows of the future yet."""
        self._state = RUNNING

    def start(self) -> bool:
        """The request leaves the queue; False if it was cancelled."""
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
        """Tell everyone, each once."""
        self._state = state
        if self._gate is not None:
            self._gate.open()
        if self._asking is not None:
            tell(self, self._asking)
        if self._callbacks:
            call_back(self, self._callbacks)

    @property
    def _waiters(self) -> list[Any]:  # type: ignore[override]  # the library's own are made by `__init__`
        """Where the standard library leaves who waits for several futures."""
        made: Waiters = self.__dict__.setdefault("_asking", Waiters(self))
        return made

    # ---- for who asked

    def cancel(self) -> bool:
        """Whether the request was in the queue still, or was cancelled before."""
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
            del self  # the error's traceback would hold it

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error, None for none; TimeoutError where there is no answer in so many seconds."""
        if self._state not in ENDED:
            gate: Gate = self.__dict__.setdefault("_gate", Gate())
            if self._state not in ENDED and not gate.wait(timeout):
                raise TimeoutError
        if self._state == CANCELLED_AND_NOTIFIED:
            raise CancelledError
        return self._exception

    def __repr__(self) -> str:
        return f"<Promise at {id(self):#x} state={self._state.lower()}>"
