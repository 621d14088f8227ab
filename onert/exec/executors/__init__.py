"""Executors by name: functions that run the steps of a frame once."""

from __future__ import annotations

from collections.abc import Callable

from onert.exec.frame import Frame
from onert.ir import ExecutionError

from .linear import linear

Executor = Callable[[Frame], None]

EXECUTORS: dict[str, Executor] = {"Linear": linear}


def executor(name: str) -> Executor:
    """The executor of a name; ExecutionError where there is none."""
    if name not in EXECUTORS:
        raise ExecutionError(f"no executor is called {name!r}, expected one of {', '.join(EXECUTORS)}")
    return EXECUTORS[name]
