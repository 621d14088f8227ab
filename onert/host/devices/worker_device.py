"""A device whose runs are executed by a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from onert.host.device_config import DeviceConfig
from onert.host.device_manager import DeviceManager, Done, Result
from onert.host.line import Call, Made, SharedQueue
from onert.ir import Array

from .worker import Worker

Run = Callable[[Sequence[Array], int | None], Sequence[Array]]
"""Runs a function on inputs, with the state of a session or (None) without."""


class WorkerDevice(DeviceManager):
    """Runs functions one at a time on its worker's thread, or on a caller's thread while no run waits.

    A subclass starts the worker in `init`, and implements runs in `_run_of`.
    """

    def __init__(self, config: DeviceConfig, threads: int) -> None:
        super().__init__(config, threads)
        self._worker: Worker | None = None

    @property
    def _thread(self) -> Worker:
        assert self._worker is not None, "init is called before anything else"
        return self._worker

    def _run_of(self, name: str) -> Run:
        """The callable that runs a function. Raises NetworkNotFoundError if the device does not have it."""
        raise NotImplementedError

    @property
    def _borrows(self) -> bool:
        """Whether callers' threads may run functions."""
        return True

    @property
    def load(self) -> int:
        return self._thread.load

    def run_function(
        self, name: str, inputs: Sequence[Array], done: Done, priority: int = 0, session: int | None = None
    ) -> int:
        return self._thread.submit(priority, partial(self._run_of(name), inputs, session), done)

    def serve(self, line: SharedQueue, at: int) -> bool:
        self._thread.serve(line, at)
        return True

    def offer(self, line: SharedQueue, at: int, priority: int, made: Made) -> int:
        return self._thread.offer(line, at, priority, made)

    def call(self, name: str, inputs: Sequence[Array]) -> Call:
        return lambda: self._run_of(name)(inputs, None)

    def run_here(self, name: str, inputs: Sequence[Array], session: int | None = None) -> Result | None:
        run = self._run_of(name)
        worker = self._thread
        turn = worker.borrow() if self._borrows else None
        if turn is None:
            return None
        try:
            return run(inputs, session)
        except BaseException as error:  # becomes the request's error
            return error
        finally:
            worker.give_back(turn)
