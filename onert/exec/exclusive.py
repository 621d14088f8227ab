"""One call at a time, whatever interrupts a call.

A lock that is taken and given back stays locked where a signal handler raises in between. Here the interpreter itself
keeps who is running: the body is a generator, one that runs cannot be entered again, and one that an exception has left
is finished. Both are known without anyone having to say so. Whoever finds the generator finished makes the next one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator
from types import GeneratorType
from typing import Any
from weakref import WeakSet

Body = Generator[None, Any, None]

REFUSED = (StopIteration, ValueError)
"""What `send` raises where the call was not made: see `is_refusal`."""


class BusyError(Exception):
    """Another call is under way."""


def is_refusal(error: BaseException) -> bool:
    """Whether an error that was caught from `send` comes from there, and not from the body."""
    trace = error.__traceback__
    return trace is not None and trace.tb_next is None


class _Round:
    """A generator that has come to its first `yield`, and the one after it."""

    __slots__ = ("after", "generator", "lost", "send")

    def __init__(self, make: Callable[[], Body]) -> None:
        made = make()
        assert isinstance(made, GeneratorType)  # which knows whether it is running
        self.generator = made
        self.send: Callable[[Any], None] = made.send
        self.lost = False
        self.after: dict[None, _Round] = {}
        next(self.generator)

    @property
    def is_over(self) -> bool:
        return self.lost or self.generator.gi_frame is None


class Exclusive:
    """Calls of the body that `make` gives, one at a time.

    A body repairs what the one before it left undone, then yields for what it is called with, again and again. It must
    not refer to this object, which would then be freed by the search for cycles only.
    """

    __slots__ = ("__weakref__", "_make", "_round", "send")

    def __init__(self, make: Callable[[], Body]) -> None:
        self._make = make
        self._round = _Round(make)
        self.send: Callable[[Any], None] = self._round.send
        """Calls the body; raises one of `REFUSED` where it is running or over. `call` tells these apart."""
        _ALL.add(self)

    def _current(self) -> _Round:
        """The body that is not over."""
        found = first = self._round
        while found.is_over:
            found = found.after.get(None) or found.after.setdefault(None, _Round(self._make))
        if found is not first:
            self._round = found
        if self.send != found.send:  # an interrupt came between the two
            self.send = found.send
        return found

    def call(self, given: object) -> None:
        """Call the body; BusyError if a call is under way."""
        while True:
            send = self._current().send
            try:
                send(given)
            except StopIteration as error:  # the call of another thread has failed just now
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
        """Call the body after the call that is under way."""
        while True:
            try:
                return self.call(given)
            except BusyError:
                pass
            self.wait()

    def wait(self) -> None:
        """Until no call is under way. It looks again and again: an interrupted call tells nobody that it has ended."""
        pause = 2e-5
        while self.running:
            time.sleep(pause)
            pause = min(2 * pause, 5e-3)

    @property
    def running(self) -> bool:
        """Whether a call is under way."""
        if self._round.generator.gi_suspended:
            return False
        return self._current().generator.gi_running

    @property
    def is_own(self) -> bool:
        """Whether the calling thread is inside of a call."""
        body = self._round.generator.gi_frame
        frame = sys._getframe() if body is not None else None
        while frame is not None:
            if frame is body:
                return True
            frame = frame.f_back
        return False

    def forget_others(self) -> None:
        """After a fork: a call that another thread was making is not going on."""
        if self._round.generator.gi_running and not self.is_own:
            self._round.lost = True


_ALL: WeakSet[Exclusive] = WeakSet()


def _forget_others() -> None:
    for each in tuple(_ALL):
        each.forget_others()


os.register_at_fork(after_in_child=_forget_others)


def _one_by_one() -> Body:
    while True:
        call = yield
        call()
        del call  # or what it refers to would live until the next one


class Turns:
    """Short pieces of work that threads do one at a time."""

    __slots__ = ("_exclusive",)

    def __init__(self) -> None:
        self._exclusive = Exclusive(_one_by_one)

    def __call__(self, work: Callable[[], object]) -> None:
        """Do the work when no other thread does any."""
        self._exclusive.call_next(work)

    def attempt(self, work: Callable[[], object]) -> None:
        """Do the work now; BusyError if other work is being done."""
        self._exclusive.call(work)

    @property
    def busy(self) -> bool:
        """Whether some is being done."""
        return self._exclusive.running
