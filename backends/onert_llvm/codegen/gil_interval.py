"""How long a thread of the interpreter keeps others waiting while code is generated."""

from __future__ import annotations

import sys

from onert.backend.holders import Holders

_SECONDS = 0.000501
"""A thread that has generated code needs the interpreter for a moment before it generates more. Python's own 5 ms,
which it would wait for who lowers and writes kernels, are half of what a kernel takes. The odd number tells this
setting from anybody else's.
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
    if _usual and _is_short():  # else it is someone else's setting by now, which is left alone
        sys.setswitchinterval(_usual[0])


TURNS = Holders(_shorten, _lengthen)
"""Who generates code in this process."""
