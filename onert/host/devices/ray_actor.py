"""What runs on a node of a Ray cluster: functions by name, as they were sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from time import perf_counter_ns
from typing import Any

import numpy as np

from onert.backend import HOST, Backend
from onert.backend.backend import Settings
from onert.backend.registry import find_backends
from onert.compiler.program_cache.transport import received
from onert.ir import Array, BackendError

from .executions import Executions
from .sending import told


class RayActor:
    """Functions of one device. Errors are told and not raised, so that the host makes its own of them."""

    def __init__(self) -> None:
        self._functions: dict[str, Executions] = {}

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
            self._functions[name] = Executions(received(memory.data, backends))
        except Exception as error:
            return told(error)
        return {}

    def unload(self, name: str) -> None:
        """Forget a function."""
        self._functions.pop(name, None)

    def end(self, name: str, session: int) -> None:
        """Forget a session."""
        self._functions[name].end(session)

    def run(self, name: str, session: int | None, *inputs: Array) -> tuple[dict[str, str], int, list[Any]]:
        """What went wrong, if something did, the nanoseconds of the run, and the outputs."""
        start = perf_counter_ns()
        try:
            outputs = list(self._functions[name].of(session).run(inputs).values())
        except Exception as error:
            return told(error), 0, []
        return {}, perf_counter_ns() - start, outputs
