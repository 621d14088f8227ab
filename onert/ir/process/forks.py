"""Makes `os.fork` safe for children of a multi-threaded process.

A child has its parent's locks but only one thread. A lock held by another thread is never released there: the
interpreter's import locks, and locks inside native libraries. `os.fork` therefore waits until no other thread is in a
section that takes such locks, and no thread enters one until the child exists.
"""

from __future__ import annotations

import os
import time
from _thread import get_ident
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakSet

LIMIT = 10.0
"""The maximum wait of a fork in seconds. A thread that needs longer may itself be waiting for the forking thread."""

_POLL = 0.0005


class Forks:
    """The sections that threads of this process are in, and the threads that are forking."""

    def __init__(self) -> None:
        self._sections: dict[NoFork, int] = {}
        self._forking: dict[int, None] = {}

    def enter(self, section: NoFork) -> None:
        """Wait for forks of other threads. A thread that is already in a section enters another without waiting."""
        me = get_ident()
        within = me in tuple(self._sections.values())
        while True:
            self._sections[section] = me  # before the check, so that a fork that starts now sees it
            if within or not self._others(me):
                return
            del self._sections[section]
            while self._others(me):
                time.sleep(_POLL)

    def leave(self, section: NoFork) -> None:
        """Leave a section; does nothing if it was left already."""
        self._sections.pop(section, None)

    def _others(self, me: int) -> bool:
        return any(thread != me for thread in tuple(self._forking))

    def before(self) -> None:
        """Wait until no other thread is in a section."""
        me = get_ident()
        self._forking[me] = None
        end = time.monotonic() + LIMIT
        while any(thread != me for thread in tuple(self._sections.values())) and time.monotonic() < end:
            time.sleep(_POLL)

    def after_in_parent(self) -> None:
        """Let threads enter sections again."""
        self._forking.pop(get_ident(), None)

    def after_in_child(self) -> None:
        """Forget the threads that do not exist in the child."""
        me = get_ident()
        self._forking = {}
        self._sections = {section: thread for section, thread in self._sections.items() if thread == me}


T = TypeVar("T")


def forgotten_by(forget: Callable[[T], None]) -> WeakSet[T]:
    """A set of objects for each of which `forget` is called in every forked child, without keeping them alive."""
    found: WeakSet[T] = WeakSet()

    def forget_all() -> None:
        for each in tuple(found):
            forget(each)

    os.register_at_fork(after_in_child=forget_all)
    return found


class NoFork:
    """A context manager for code that no fork may interrupt. Each instance can be used once."""

    def __enter__(self) -> None:
        FORKS.enter(self)

    def __exit__(self, *_: object) -> None:
        FORKS.leave(self)


FORKS = Forks()
"""The sections of this process."""
os.register_at_fork(before=FORKS.before, after_in_parent=FORKS.after_in_parent, after_in_child=FORKS.after_in_child)
