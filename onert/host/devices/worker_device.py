"""A device whose runs a worker makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from onert.host.device_config import DeviceConfig
from onert.host.device_manager import DeviceManager, Done, Result
from onert.host.line import Call, Line, Made
from onert.ir import Array

from .worker import Worker

Run = Callable[[Sequence[Array], int | None], Sequence[Array]]
"""Runs a function on inputs, and on the state of a session or on none."""


class WorkerDevice(DeviceManager):
    """Runs functions one at a time on its worker's thread, or on a caller's that lends itself while nothing waits.

    A kind of device starts the worker in `init`, and says in `_run_of` what a run of a function is.
    """

    def __init__(self, config: DeviceConfig, threads: int) -> None:
        super().__init__(config, threads)
        self._worker: Worker | None = None

    @property
    def _thread(self) -> Worker:
        assert self._worker is not None, "init is called before anything else"
        return self._worker

    def _run_of(self, name: str) -> Run:
        """What runs a function; NetworkNotFoundError for a name that the device does not have."""
        raise NotImplementedError

    @property
    def _borrows(self) -> bool:
        """Whether a caller's thread may run functions."""
        return True

    @property
    def load(self) -> int:
        return self._thread.load

    def run_function(
        self, name: str, inputs: Sequence[Array], done: Done, priority: int = 0, session: int | None = None
    ) -> int:
        return self._thread.submit(priority, partial(self._run_of(name), inputs, session), done)

    def serve(self, line: Line, at: int) -> bool:
        self._thread.serve(line, at)
        return True

    def offer(self, line: Line, at: int, priority: int, made: Made) -> int:
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
        except BaseException as error:  # the request's
            return error
        finally:
            worker.give_back(turn)
