"""Ending a run early: between its steps, and between the rounds of loops that native code runs as a whole."""

from __future__ import annotations

import os
import time
from _thread import start_new_thread

import numpy as np

from onert.backend.tasks import Gate
from onert.ir import Array, ExecutionError

_LOOK = 1.0
"""Seconds after which one who waits for another thread checks whether it exists in this process."""


class RunCancelledError(ExecutionError):
    """The run was cancelled between two steps or rounds. Outputs are undefined; state is unchanged by the run."""


class RunTimeoutError(ExecutionError, TimeoutError):
    """The run exceeded its timeout and was ended between two steps or rounds."""


class Stop:
    """The conditions that end a run of one execution early.

    Executors read `armed` before each step, which costs next to nothing, and call `check` if it is set. Kernels that
    may run for long read `word`, and end when it is not 0; then `check` raises.
    """

    __slots__ = ("_alarm", "_cancelled", "_deadline", "_seconds", "_word", "armed")

    def __init__(self) -> None:
        self.armed = False
        self._cancelled = False
        self._deadline = 0.0
        self._seconds: float | None = None
        self._word: Array | None = None
        self._alarm: _Alarm | None = None

    @property
    def word(self) -> Array:
        """One int64, not 0 once the run is to end. From the first use on, another thread sets it at the deadline."""
        if self._word is None:
            self._word = np.zeros(1, np.int64)
            if self._cancelled:  # the thread that cancelled saw no word
                self._word[0] = 1
            self._set_alarm(self._word)
        return self._word

    def start(self, seconds: float | None) -> None:
        """Prepare for a new run: not cancelled, and limited to `seconds` unless that is None.

        Raises ExecutionError if `seconds` is not a number, or if no thread can be started that ends a loop then.
        """
        self.disarm()
        self._cancelled = False
        self._seconds = seconds
        if self._word is not None:
            self._word[0] = 0
        if seconds is not None:
            if not isinstance(seconds, int | float):
                raise ExecutionError(f"timeout is {seconds!r}, expected seconds")
            self._deadline = time.monotonic() + seconds
            if self._word is not None:
                self._set_alarm(self._word)
        self.armed = seconds is not None

    def disarm(self) -> None:
        """End nothing at the deadline any more: the run is over."""
        if self._alarm is not None:
            self._alarm.end()
            self._alarm = None

    def _set_alarm(self, word: Array) -> None:
        left = self.left()
        if left is None:
            return
        self._alarm = _Alarm()
        try:
            start_new_thread(self._alarm.ring, (word, left))
        except RuntimeError as error:
            raise ExecutionError(f"no thread can be started to end the run in time ({error})") from error

    def cancel(self) -> None:
        """End the run before its next step or round. Any thread may call this."""
        self._cancelled = True
        self.armed = True
        if self._word is not None:
            self._word[0] = 1

    def left(self) -> float | None:
        """The seconds left for the run; None if they are not limited."""
        return None if self._seconds is None else self._deadline - time.monotonic()

    def check(self) -> None:
        """Raise RunCancelledError or RunTimeoutError if the run is to end now."""
        if self._cancelled:
            raise RunCancelledError("the run was cancelled")
        if self._seconds is not None and time.monotonic() >= self._deadline:
            raise RunTimeoutError(f"the run did not end within {self._seconds:g} seconds")
        if self._word is not None and self._word[0]:  # cancelled while `start` prepared this run
            raise RunCancelledError("the run was cancelled")


class _Alarm:
    """A thread's wait until a time, after which it sets a word, unless it is told to end before that.

    It takes no lock that an interrupted caller could leave locked (see `onert.backend.tasks`).
    """

    __slots__ = ("_begun", "_ended", "_left", "_process")

    def __init__(self) -> None:
        self._begun = False
        self._ended = Gate()
        self._left = Gate()
        self._process = os.getpid()

    def ring(self, word: Array, seconds: float) -> None:
        """Wait, then set the word. Called by the thread."""
        self._begun = True
        if not self._ended.wait(seconds):
            word[0] = 1
        self._left.open()

    def end(self) -> None:
        """After this the word is not set any more."""
        self._ended.open()
        # A thread that has not begun yet finds the gate open.
        while self._begun and self._process == os.getpid() and not self._left.wait(_LOOK):
            pass
