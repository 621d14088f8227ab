"""The executor that runs steps at a time which do not wait for one another, whatever backends they are on."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition

from onert.exec.frame import Frame
from onert.exec.stop import Stop

from .dataflow import dataflow
from .ready import Ready
from .workers import WORKERS


def parallel(threads: int, stop: Stop) -> Callable[[Frame], None]:
    """Runs up to `threads` steps at a time, the calling thread among those that run them.

    After a step has failed no other is started; the error of the first of those that failed, in the compiler's order,
    is raised when all that were under way have ended.
    """
    one_by_one = dataflow(threads, stop)

    def run(frame: Frame) -> None:
        steps = len(frame.routine.steps)
        if threads == 1 or steps < 2 or frame.routine.is_chain:
            one_by_one(frame)
            return
        together = _Run(frame, stop)
        for _ in range(min(threads, steps) - 1):
            WORKERS.submit(together.work)
        together.lead()
        if frame.routine.subgraph.state:
            frame.update_state()

    return run


class _Run:
    """One run of a frame by several threads."""

    def __init__(self, frame: Frame, stop: Stop) -> None:
        self._calls = frame.calls
        self._stop = stop
        self._ready = Ready(frame.routine)
        self._running = 0
        self._errors: list[tuple[int, BaseException]] = []
        self._changed = Condition()

    def lead(self) -> None:
        """Work, wait for the others, and raise what went wrong."""
        try:
            self.work()
        finally:
            self._wait()
        if self._errors:
            raise min(self._errors, key=lambda found: found[0])[1]

    def work(self) -> None:
        """Run steps until there are none left, or one has failed."""
        with self._changed:
            while True:
                while not self._ready and not self._over:
                    self._changed.wait()
                if self._over:
                    return
                self._one(self._ready.take())

    @property
    def _over(self) -> bool:
        return bool(self._errors) or self._ready.left == 0

    def _one(self, step: int) -> None:
        """Run a step, the lock released meanwhile."""
        self._running += 1
        self._changed.release()
        error: BaseException | None = None
        try:
            if self._stop.armed:
                self._stop.check()
            self._calls[step]()
        except BaseException as caught:  # raised again by the thread that leads
            error = caught
        self._changed.acquire()
        self._running -= 1
        if error is not None:
            self._errors.append((step, error))
            self._changed.notify_all()
            return
        made_ready = self._ready.done(step)
        if self._over:
            self._changed.notify_all()
        elif made_ready > 1:
            self._changed.notify(made_ready - 1)  # this thread takes one itself

    def _wait(self) -> None:
        """Until no step is under way; no more are started where the leader was interrupted."""
        with self._changed:
            if not self._over:
                self._errors.append((-1, KeyboardInterrupt()))
                self._changed.notify_all()
            while self._running:
                self._changed.wait()
