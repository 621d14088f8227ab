"""A device in this process, with a thread of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from time import perf_counter, perf_counter_ns
from typing import Any
from weakref import finalize, ref

from onert.exec import Execution
from onert.host.device_config import DeviceConfig
from onert.host.device_manager import CompiledFunction, Result, is_steady
from onert.host.errors import ConfigurationError
from onert.host.memory import program_memory
from onert.ir import Array

from .worker import Worker
from .worker_device import Run, WorkerDevice


class _Loaded:
    """A function with its execution, and another execution for each session."""

    __slots__ = (
        "_device",
        "_function",
        "_owner",
        "_run",
        "_sessions",
        "_shapes",
        "_traces",
        "execution",
        "seconds",
        "stateful",
        "steady",
    )

    def __init__(self, function: CompiledFunction, owner: CpuDevice) -> None:
        self.execution = Execution(function.program)
        self.stateful = function.stateful
        self.steady = is_steady(function.program)
        """Whether runs on inputs with the shapes of the last run take about the same time."""
        self._run = self.execution.run
        self._function = function
        self._owner = ref(owner)
        self._device = owner.name
        self._traces = owner.traces
        self._sessions: dict[int, Execution] = {}
        self.seconds = inf
        """The time of the last run."""
        self._shapes: list[tuple[int, ...]] | None = [] if function.is_open else None
        """The shapes of the last run's inputs; None if shapes are static."""

    def run(self, inputs: Sequence[Array], session: int | None = None) -> list[Array]:
        """Run on inputs and return the outputs in order.

        Without a session, state is reset first, so that no request sees the state of another.
        """
        if self._traces:
            return self._recorded(inputs, session)
        start = perf_counter()
        if session is not None:
            found = list(self._of(session).run(inputs).values())
        else:
            if self.stateful:
                self.execution.reset_variables()
            found = list(self._run(inputs).values())
        self.seconds = perf_counter() - start
        if self._shapes is not None:
            self._note([array.shape for array in inputs])
        return found

    def _note(self, shapes: list[tuple[int, ...]]) -> None:
        """Update `steady` if the shapes of the inputs have changed."""
        if shapes != self._shapes:
            self.steady = is_steady(self.execution.program)
            self._shapes = shapes

    def expected(self, inputs: Sequence[Array]) -> float:
        """The expected seconds of a run, based on the last one; infinite if that is no good estimate."""
        if not self.steady or (self._shapes is not None and self._shapes != [array.shape for array in inputs]):
            return inf
        return self.seconds

    def _recorded(self, inputs: Sequence[Array], session: int | None) -> list[Array]:
        execution = self.execution if session is None else self._of(session)
        if session is None and self.stateful:
            execution.reset_variables()
        start = perf_counter_ns()
        try:
            return list(execution.run(inputs).values())
        finally:
            end = perf_counter_ns()
            for trace in self._traces:
                trace.ran(self._function.name, self._device, start, end)

    def _of(self, session: int) -> Execution:
        found = self._sessions.get(session)
        if found is None:
            memory = program_memory(self._function.program)
            owner = self._owner()
            assert owner is not None, "the device exists while it runs"
            owner.take_session(self._function.name, session, memory.total - memory.constants)
            found = self._sessions[session] = Execution(self._function.program)
        return found

    def end(self, session: int) -> None:
        """Drop a session's state."""
        found = self._sessions.pop(session, None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Release all executions."""
        self.execution.close()
        for session in tuple(self._sessions):
            self.end(session)

    def run_all(self, batch: Sequence[Sequence[Array]]) -> list[Result]:
        """The results for each of several inputs."""
        found: list[Result] = []
        for inputs in batch:
            try:
                found.append(self.run(inputs))
            except Exception as error:  # becomes the request's error
                found.append(error)
        return found


class CpuDevice(WorkerDevice):
    """Runs functions one at a time on its own thread, or on a caller's thread while no run waits.

    With `cores`, its thread and the kernels' threads that it starts are bound to them, and it rejects callers' threads.
    """

    kind = "cpu"

    def __init__(self, config: DeviceConfig, threads: int) -> None:
        super().__init__(config, threads)
        self._loaded: dict[str, _Loaded] = {}

    def init(self) -> None:
        cores = self.config.cores
        allowed = _allowed()
        if not allowed.issuperset(cores):
            raise ConfigurationError(
                f"device {self.name!r} is bound to processors {', '.join(map(str, cores))}, but this process may only "
                f"use {', '.join(map(str, sorted(allowed)))}"
            )
        self._worker = worker = Worker(self.name, partial(_bind, cores))
        finalize(self, worker.stop)

    def _load(self, function: CompiledFunction) -> None:
        self._loaded[function.name] = _Loaded(function, self)

    def _unload(self, name: str) -> None:
        found = self._loaded.pop(name, None)
        if found is not None:
            self._thread.alone(found.close)

    def end_session(self, name: str, session: int) -> None:
        found = self._loaded.get(name)
        if found is not None:
            self._thread.alone(partial(found.end, session))
            self.free_session(name, session)

    def run_each(
        self, name: str, batch: Sequence[Sequence[Array]], done: Callable[[Any], None], priority: int = 0
    ) -> None:
        self._thread.submit(priority, partial(self._function(name).run_all, batch), done)

    @property
    def _borrows(self) -> bool:
        return not self.config.cores

    def _run_of(self, name: str) -> Run:
        return self._function(name).run

    def last_run(self, name: str, inputs: Sequence[Array]) -> float:
        found = None if self.config.cores else self._loaded.get(name)
        return inf if found is None else found.expected(inputs)

    def _function(self, name: str) -> _Loaded:
        found = self._loaded.get(name)
        if found is None:
            raise self._unknown(name)
        return found

    def stop(self) -> None:
        self._thread.stop()


def _allowed() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _bind(cores: Sequence[int]) -> None:
    """Bind the calling thread to processors. In Linux's call, 0 is the calling thread."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
