"""Shortens the interpreter's switch interval while code is generated."""

from __future__ import annotations

import sys

from onert.backend.holders import Holders

_SECONDS = 0.000501
"""A thread that has generated code needs the interpreter for a moment before it generates more. Python's default
interval of 5 ms, which it would wait for the thread that lowers operations and writes kernels, is half the time that a
kernel takes. The odd number distinguishes this setting from anyone else's.
"""
_usual: list[float] = []
"""The last element is the interval before it was shortened."""


def _is_short() -> bool:
    return abs(sys.getswitchinterval() - _SECONDS) < 5e-7


def _shorten() -> None:
    if not _is_short():
        _usual[:] = [sys.getswitchinterval()]
        sys.setswitchinterval(min(_usual[0], _SECONDS))


def _lengthen() -> None:
    if _usual and _is_short():  # otherwise someone else has changed it since, and it is left alone
        sys.setswitchinterval(_usual[0])


SHORT_SWITCH_INTERVAL = Holders(_shorten, _lengthen)
"""Holds the short interval while code is generated in this process."""
