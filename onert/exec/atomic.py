"""Changes that no signal handler can interrupt."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from operator import call


def at_once(calls: Iterable[Callable[[], object]]) -> None:
    """Call functions written in C, none of which runs Python code, so that no signal handler runs between the calls."""
    deque(map(call, calls), 0)
