"""What runs on a node of a Ray cluster: functions by name, as they were sent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from onert.backend import HOST, Backend, Program
from onert.backend.backend import Settings
from onert.backend.registry import find_backends
from onert.compiler.program_cache.transport import received
from onert.exec import Execution
from onert.host.device_manager import is_stateful
from onert.ir import Array, BackendError

from .sending import told


class _Function:
    """A program, and executions of it: one for requests without a session, and one for each session."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.stateful = is_stateful(program)
        self.plain = Execution(program)
        self.sessions: dict[int, Execution] = {}

    def run(self, inputs: Sequence[Array], session: int | None) -> list[Array]:
        execution = self.plain
        if session is not None:
            execution = self._of(session)
        elif self.stateful:
            execution.reset_variables()
        return list(execution.run(inputs).values())

    def _of(self, session: int) -> Execution:
        found = self.sessions.get(session)
        if found is None:
            found = self.sessions[session] = Execution(self.program)
        return found


class RayActor:
    """Functions of one device. Errors are told and not raised, so that the host makes its own of them."""

    def __init__(self) -> None:
        self._functions: dict[str, _Function] = {}

    def place(self) -> int:
        """The number of the process."""
        return os.getpid()

    def load(
        self, name: str, payload: Array, names: list[str], settings: Settings, fingerprints: Mapping[str, str | None]
    ) -> dict[str, str]:
        """Take a function. Its machine code is for the processor and the versions that `fingerprints` name."""
        try:
            backends: tuple[Backend, ...] = find_backends(names)[0]
            for backend in backends:
                own = backend.fingerprint(settings)
                if own != fingerprints[backend.name]:
                    raise BackendError(
                        f"node {os.uname().nodename} has backend {backend.name!r} as {own}, and {name!r} was compiled "
                        f"by {fingerprints[backend.name]}"
                    )
            memory = HOST.allocate(payload.nbytes)
            np.copyto(memory, payload)
            self._functions[name] = _Function(received(memory.data, backends))
        except Exception as error:
            return told(error)
        return {}

    def unload(self, name: str) -> None:
        """Forget a function."""
        self._functions.pop(name, None)

    def end(self, name: str, session: int) -> None:
        """Forget a session."""
        self._functions[name].sessions.pop(session, None)

    def run(self, name: str, session: int | None, *inputs: Array) -> tuple[dict[str, str], int, list[Any]]:
        """What went wrong, if something did, the nanoseconds of the run, and the outputs."""
        start = perf_counter_ns()
        try:
            outputs = self._functions[name].run(inputs, session)
        except Exception as error:
            return told(error), 0, []
        return {}, perf_counter_ns() - start, outputs
