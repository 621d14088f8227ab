"""The executor that runs independent steps at the same time, on any backends."""

from __future__ import annotations

from contextlib import suppress
from queue import SimpleQueue

from onert.backend.tasks import Pool, Task
from onert.exec.frames.frame import Frame
from onert.exec.stop import Stop

from .dataflow import dataflow
from .executor import Executor
from .linear import linear
from .ready import Ready

MOST = 64
"""The most worker threads. A run never waits for one: its own thread runs the steps that no worker takes."""

WORKERS = Pool(MOST, "onert-worker")
"""The process's worker threads, shared by all runs."""


def parallel(threads: int, stop: Stop) -> Executor:
    """Runs up to `threads` steps at the same time; the calling thread is one of the threads.

    After a step has failed, no other step is started. When all running steps have ended, an error is raised: that of
    the first failed step in the compiler's order.
    """
    in_order, one_by_one = linear(threads, stop).run, dataflow(threads, stop).run
    runs: dict[_Run, None] = {}

    def run(frame: Frame) -> None:
        steps = len(frame.routine.steps)
        if frame.routine.is_chain:
            in_order(frame)
            return
        if threads == 1:
            one_by_one(frame)
            return
        together = _Run(frame, stop)
        runs[together] = None
        try:
            together.lead(min(threads, steps) - 1)
        finally:
            together.settle()
            runs.pop(together, None)
        if frame.stateful:
            frame.update_state()

    def settle() -> None:
        for broken_off in tuple(runs):
            broken_off.settle()
            runs.pop(broken_off, None)

    return Executor(run, settle)


class _Run:
    """One run of a frame by several threads."""

    def __init__(self, frame: Frame, stop: Stop) -> None:
        self._calls = frame.calls
        self._stop = stop
        self._ready = Ready(frame.routine)
        self._errors: list[tuple[int, BaseException]] = []
        self._tasks: list[Task[None]] = []
        self._ended = False
        # True for every step that is ready; False, once and for all threads, when no more are to be started.
        self._news: SimpleQueue[bool] = SimpleQueue()
        for _ in range(len(self._ready)):
            self._news.put(True)

    def lead(self, others: int) -> None:
        """Run steps together with `others` more threads, and raise their errors."""
        with suppress(RuntimeError):  # go on with fewer if the system has no more threads
            for _ in range(others):
                task = Task(self._work)
                self._tasks.append(task)
                WORKERS.give(task)
        self._work()
        self.settle()
        if self._errors:  # an interrupt of this thread before all other errors
            raise min(self._errors, key=lambda found: (isinstance(found[1], Exception), found[0]))[1]

    def settle(self) -> None:
        """Start no more steps, and wait until none is running in another thread."""
        self._ended = True
        self._news.put(False)
        for task in self._tasks:
            if not task.drop():
                task.wait()

    def _work(self) -> None:
        """Run steps until none are left, or one has failed."""
        while self._news.get() and not self._ended:
            step = self._ready.take()
            try:
                if self._stop.armed:
                    self._stop.check()
                self._calls[step]()
            except BaseException as error:  # raised again by the leading thread
                self._errors.append((step, error))
                self._ended = True
                break
            for _ in range(self._ready.done(step)):
                self._news.put(True)
            if self._ready.over:
                break
        self._news.put(False)
