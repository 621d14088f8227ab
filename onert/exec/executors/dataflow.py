"""The executor that runs one step at a time: the ready step with the highest rank."""

from __future__ import annotations

from onert.exec.frames.frame import Frame
from onert.exec.stop import Stop

from .executor import Executor
from .ready import Ready


def dataflow(threads: int, stop: Stop) -> Executor:
    """Runs steps by rank, each once its operands are computed. Only kernels use several threads."""

    def run(frame: Frame) -> None:
        calls = frame.calls
        ready = Ready(frame.routine)
        while ready:
            step = ready.take()
            if stop.armed:
                stop.check()
            calls[step]()
            ready.done(step)
        if frame.stateful:
            frame.update_state()

    return Executor(run)
