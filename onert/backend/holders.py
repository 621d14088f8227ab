"""Process-wide settings that are changed for as long as some code needs it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from weakref import ref

from onert.ir.process.forks import forgotten_by


class Holders:
    """The current holders of a changed setting: `begin` changes it, and `end` restores it after the last one.

    Holders are referenced weakly: one whose end was interrupted by a signal handler ends when it is garbage collected.
    A forked child starts with none.
    """

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self._begin = begin
        self._end = end
        self._holders: dict[int, ref[Hold]] = {}
        _ALL.add(self)

    def __len__(self) -> int:
        return len(self._holders)

    def hold(self) -> Hold:
        """A new holder. `with hold.ended(), hold.ended(), hold:` ends it even if it is interrupted once or twice.

        Ending a holder twice is harmless.
        """
        return Hold(self)

    def add(self, hold: Hold) -> None:
        number = id(hold)
        self._holders[number] = ref(hold, lambda _: self._remove(number))
        self._begin()

    def remove(self, hold: Hold) -> None:
        self._remove(id(hold))

    def _remove(self, number: int) -> None:
        """Ignore holders that no longer exist: an interrupt may have prevented the removal of one."""
        self._holders.pop(number, None)
        if all(holder() is None for holder in tuple(self._holders.values())):
            self._end()

    def forget(self) -> None:
        """After a fork."""
        if self._holders:
            self._holders.clear()
            self._end()


class Hold:
    """One use of a changed setting."""

    __slots__ = ("__weakref__", "_holders")

    def __init__(self, holders: Holders) -> None:
        self._holders = holders

    def ended(self) -> Ended:
        """A context that ends the holder on exit, even if an interrupt came while the holder was being entered."""
        return Ended(self)

    def __enter__(self) -> None:
        self._holders.add(self)

    def __exit__(self, *_: object) -> None:
        self._holders.remove(self)


class Ended:
    """Ends a holder on exit; entering it does nothing."""

    __slots__ = ("_hold",)

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_: object) -> None:
        self._hold.__exit__()


_ALL = forgotten_by(Holders.forget)


def _disable() -> None:
    if gc.isenabled():
        _was_enabled.append(None)
        gc.disable()


def _enable() -> None:
    if _was_enabled:
        gc.enable()  # first: after an interrupt here, the next end of the holder does it again
        _was_enabled.clear()


_was_enabled: list[None] = []
"""Not empty while a holder here, and nothing else, has disabled garbage collection."""
GC_PAUSED = Holders(_disable, _enable)
"""Held by code that makes many objects and hardly any cycles (compiling, reading programs, importing): the cyclic
garbage collector, which visits all objects of the process, is disabled meanwhile."""
