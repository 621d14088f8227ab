"""How long a thread of the interpreter keeps others waiting while code is generated."""

from __future__ import annotations

import sys
from threading import Lock

_SECONDS = 0.0005
"""A thread that has generated code needs the interpreter for a moment before it generates more. Python's own 5 ms,
which it would wait for who lowers and writes kernels, are half of what a kernel takes.
"""


class Turns:
    """Shortens the interpreter's interval for as long as someone is inside; another's setting is left alone."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._usual = 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual, _SECONDS))

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and sys.getswitchinterval() == min(self._usual, _SECONDS):
                sys.setswitchinterval(self._usual)


TURNS = Turns()
"""The process's, as the interval is."""
