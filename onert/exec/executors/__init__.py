"""Executors, by name."""

from __future__ import annotations

from onert.exec.stop import Stop
from onert.ir import ExecutionError
from onert.ir.process.imports import module

from .executor import Executor
from .linear import linear

_EXECUTORS = {"Linear": "linear", "Dataflow": "dataflow", "Parallel": "parallel"}
"""The module of each, which has a function of the same name. All but the default are imported when they are chosen."""


def executor(name: str, threads: int, stop: Stop) -> Executor:
    """The executor with this name, using `threads` threads. Raises ExecutionError if there is none."""
    if name not in _EXECUTORS:
        raise ExecutionError(f"no executor is called {name!r}, expected one of {', '.join(_EXECUTORS)}")
    if name == "Linear":
        return linear(threads, stop)
    made: Executor = getattr(module(f"{__name__}.{_EXECUTORS[name]}"), _EXECUTORS[name])(threads, stop)
    return made
