"""Executors by name. Each makes a function that runs the steps of a frame once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onert.exec.frame import Frame
from onert.exec.stop import Stop
from onert.ir import ExecutionError

from .dataflow import dataflow
from .linear import linear
from .parallel import parallel

Executor = Callable[[Frame], None]

EXECUTORS: Mapping[str, Callable[[int, Stop], Executor]] = {
    "Linear": linear,
    "Dataflow": dataflow,
    "Parallel": parallel,
}


def executor(name: str, threads: int, stop: Stop) -> Executor:
    """The executor of a name, with so many threads; ExecutionError where there is none."""
    if name not in EXECUTORS:
        raise ExecutionError(f"no executor is called {name!r}, expected one of {', '.join(EXECUTORS)}")
    return EXECUTORS[name](threads, stop)
