"""The executor that runs one step at a time, of those that are ready the most urgent."""

from __future__ import annotations

from collections.abc import Callable

from onert.exec.frame import Frame
from onert.exec.stop import Stop

from .ready import Ready


def dataflow(threads: int, stop: Stop) -> Callable[[Frame], None]:
    """Runs steps by rank as their operands are there. Threads are the kernels' own affair."""

    def run(frame: Frame) -> None:
        calls = frame.calls
        ready = Ready(frame.routine)
        while ready:
            step = ready.take()
            if stop.armed:
                stop.check()
            calls[step]()
            ready.done(step)
        if frame.routine.subgraph.state:
            frame.update_state()

    return run
