"""Settings of the process that are other than usual while somebody needs that."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from weakref import WeakSet, ref


class Holders:
    """Who needs a setting to be other than usual: `begin` sets it, and `end` makes it usual again after the last.

    Holders are referred to weakly: one whose end a signal handler interrupted ends when it is dropped. In a child that
    is forked there are none.
    """

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self._begin = begin
        self._end = end
        self._holders: dict[int, ref[Hold]] = {}
        _ALL.add(self)

    def __len__(self) -> int:
        return len(self._holders)

    def hold(self) -> Hold:
        """A holder. `with hold.ended(), hold.ended(), hold:` ends it wherever one or two interrupts come.

        To end one twice does no harm.
        """
        return Hold(self)

    def add(self, hold: Hold) -> None:
        number = id(hold)
        self._holders[number] = ref(hold, lambda _: self._remove(number))
        self._begin()

    def remove(self, hold: Hold) -> None:
        self._remove(id(hold))

    def _remove(self, number: int) -> None:
        """Holders that were dropped count for nothing: an interrupt may have kept one from being removed."""
        self._holders.pop(number, None)
        if all(holder() is None for holder in tuple(self._holders.values())):
            self._end()

    def forget(self) -> None:
        """After a fork."""
        if self._holders:
            self._holders.clear()
            self._end()


class Hold:
    """Somebody who needs a setting."""

    __slots__ = ("__weakref__", "_holders")

    def __init__(self, holders: Holders) -> None:
        self._holders = holders

    def ended(self) -> Ended:
        """What ends the holder when it is left, even if an interrupt keeps the holder from being entered whole."""
        return Ended(self)

    def __enter__(self) -> None:
        self._holders.add(self)

    def __exit__(self, *_: object) -> None:
        self._holders.remove(self)


class Ended:
    """Ends a holder when it is left; entering it does nothing."""

    __slots__ = ("_hold",)

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    def __enter__(self) -> None:
        """Nothing begins."""

    def __exit__(self, *_: object) -> None:
        self._hold.__exit__()


_ALL: WeakSet[Holders] = WeakSet()


def _forget() -> None:
    for each in tuple(_ALL):
        each.forget()


os.register_at_fork(after_in_child=_forget)


def _disable() -> None:
    if gc.isenabled():
        _was_enabled.append(None)
        gc.disable()


def _enable() -> None:
    if _was_enabled:
        gc.enable()  # first: an interrupt between the two leaves it to whoever ends the holder again
        _was_enabled.clear()


_was_enabled: list[None] = []
"""Has elements while it was a holder here that disabled the search for reference cycles, and nobody else."""
UNCOLLECTED = Holders(_disable, _enable)
"""Who makes many objects and next to no cycles: compilations, readings of programs, imports. There is no search for
reference cycles meanwhile, which looks at all that a process has."""
