"""Mutual exclusion that survives interrupts.

A lock stays locked if a signal handler raises between its acquisition and its release. Here the interpreter itself
tracks who is running: the body is a generator, which cannot be entered while it runs, and which is finished once an
exception has left it. Neither needs any bookkeeping. A caller that finds the generator finished creates the next one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from types import GeneratorType
from typing import Any

from onert.ir.process.forks import forgotten_by

Body = Generator[None, Any, None]

REFUSED = (StopIteration, ValueError)
"""The exceptions that `send` raises if it did not make the call: see `is_refusal`."""


class BusyError(Exception):
    """Another call is active."""


def is_refusal(error: BaseException) -> bool:
    """Whether an error caught from `send` was raised by `send` itself, not by the body."""
    trace = error.__traceback__
    return trace is not None and trace.tb_next is None


class _Round:
    """A generator advanced to its first `yield`, and its successor."""

    __slots__ = ("after", "generator", "lost", "send")

    def __init__(self, make: Callable[[], Body]) -> None:
        made = make()
        assert isinstance(made, GeneratorType)  # has `gi_running`
        self.generator = made
        self.send: Callable[[Any], None] = made.send
        self.lost = False
        self.after: dict[None, _Round] = {}
        next(self.generator)

    @property
    def is_over(self) -> bool:
        return self.lost or self.generator.gi_frame is None


class Exclusive:
    """Calls of the body that `make` creates, one at a time.

    A body repairs what its predecessor left undone, then repeatedly yields for its next argument. It must not refer to
    this object, which could then only be freed by the cyclic garbage collector.
    """

    __slots__ = ("__weakref__", "_make", "_round", "send")

    def __init__(self, make: Callable[[], Body]) -> None:
        self._make = make
        self._round = _Round(make)
        self.send: Callable[[Any], None] = self._round.send
        """Calls the body; raises one of `REFUSED` if it is running or finished. `call` distinguishes the two."""
        _ALL.add(self)

    def _current(self) -> _Round:
        """The body that is not finished."""
        found = first = self._round
        while found.is_over:
            found = found.after.get(None) or found.after.setdefault(None, _Round(self._make))
        if found is not first:
            self._round = found
        if self.send != found.send:  # an interrupt came between the two
            self.send = found.send
        return found

    def call(self, given: object) -> None:
        """Call the body. Raises BusyError if a call is active."""
        while True:
            send = self._current().send
            try:
                send(given)
            except StopIteration as error:  # another thread's call has just failed
                if not is_refusal(error):
                    raise
            except ValueError as error:
                if not is_refusal(error):
                    raise
                break
            else:
                return
        raise BusyError

    def call_next(self, given: object) -> None:
        """Call the body after the active call has ended."""
        while True:
            try:
                return self.call(given)
            except BusyError:
                pass
            self.wait()

    def wait(self) -> None:
        """Wait until no call is active. This polls, because an interrupted call cannot notify anyone of its end."""
        pause = 2e-5
        while self.running:
            time.sleep(pause)
            pause = min(2 * pause, 5e-3)

    @property
    def running(self) -> bool:
        """Whether a call is active."""
        if self._round.generator.gi_suspended:
            return False
        return self._current().generator.gi_running

    @property
    def is_own(self) -> bool:
        """Whether the calling thread is inside a call."""
        body = self._round.generator.gi_frame
        frame = sys._getframe() if body is not None else None
        while frame is not None:
            if frame is body:
                return True
            frame = frame.f_back
        return False

    def forget_others(self) -> None:
        """After a fork: another thread's call does not exist in the child."""
        if self._round.generator.gi_running and not self.is_own:
            self._round.lost = True


_ALL = forgotten_by(Exclusive.forget_others)


def _one_by_one() -> Body:
    while True:
        call = yield
        call()
        del call  # releases what it refers to before the next call


class Serial:
    """Short pieces of work that threads do one at a time."""

    __slots__ = ("_exclusive",)

    def __init__(self) -> None:
        self._exclusive = Exclusive(_one_by_one)

    def __call__(self, work: Callable[[], object]) -> None:
        """Do the work once no other thread is doing any."""
        self._exclusive.call_next(work)

    def try_run(self, work: Callable[[], object]) -> None:
        """Do the work now. Raises BusyError if other work is being done."""
        self._exclusive.call(work)

    @property
    def busy(self) -> bool:
        """Whether any work is being done."""
        return self._exclusive.running
