"""The default executor: one step after the other, in the compiler's order."""

from __future__ import annotations

from onert.exec.frames.frame import Frame
from onert.exec.stop import Stop

from .executor import Executor


def linear(threads: int, stop: Stop) -> Executor:
    """Runs every step once, then gives variables their new values. Only kernels use several threads."""

    def run(frame: Frame) -> None:
        for call in frame.bound or frame.calls:
            if stop.armed:
                stop.check()
            call()
        if frame.stateful:
            frame.update_state()

    return Executor(run)
