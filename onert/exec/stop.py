"""Stopping a run between its steps."""

from __future__ import annotations

import time

from onert.ir import ExecutionError


class RunCancelledError(ExecutionError):
    """The run was cancelled between two steps. Outputs are undefined; state is unchanged by the run."""


class RunTimeoutError(ExecutionError, TimeoutError):
    """The run exceeded its timeout and was ended between two steps."""


class Stop:
    """The conditions that end a run of one execution early.

    Executors read `armed` before each step, which costs next to nothing, and call `check` if it is set.
    """

    __slots__ = ("_cancelled", "_deadline", "_seconds", "armed")

    def __init__(self) -> None:
        self.armed = False
        self._cancelled = False
        self._deadline = 0.0
        self._seconds: float | None = None

    def start(self, seconds: float | None) -> None:
        """Prepare for a new run: not cancelled, and limited to `seconds` unless that is None.

        Raises ExecutionError if `seconds` is not a number.
        """
        self._cancelled = False
        self._seconds = seconds
        if seconds is not None:
            if not isinstance(seconds, int | float):
                raise ExecutionError(f"timeout is {seconds!r}, expected seconds")
            self._deadline = time.monotonic() + seconds
        self.armed = seconds is not None

    def cancel(self) -> None:
        """End the run before its next step. Any thread may call this."""
        self._cancelled = True
        self.armed = True

    def left(self) -> float | None:
        """The seconds left for the run; None if they are not limited."""
        return None if self._seconds is None else self._deadline - time.monotonic()

    def check(self) -> None:
        """Raise RunCancelledError or RunTimeoutError if the run is to end now."""
        if self._cancelled:
            raise RunCancelledError("the run was cancelled")
        if self._seconds is not None and time.monotonic() >= self._deadline:
            raise RunTimeoutError(f"the run did not end within {self._seconds:g} seconds")
