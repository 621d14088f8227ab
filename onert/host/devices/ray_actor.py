"""The part of a Ray device that runs on a node of the cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from time import perf_counter_ns
from typing import Any

import numpy as np

from onert.backend import HOST, Backend
from onert.backend.backend import Settings
from onert.backend.registry import find_backends
from onert.compiler.program_cache.transport import deserialise
from onert.ir import Array, BackendError

from .executions import Executions
from .sending import told


class RayActor:
    """The functions of a device. Errors are returned instead of raised, so that the host can raise its own."""

    def __init__(self) -> None:
        self._functions: dict[str, Executions] = {}

    def place(self) -> int:
        """The process ID."""
        return os.getpid()

    def load(
        self, name: str, payload: Array, names: list[str], settings: Settings, fingerprints: Mapping[str, str | None]
    ) -> dict[str, str]:
        """Load a function. Its machine code is for the processor and versions in `fingerprints`, by backend. Returns an
        error if this node's fingerprints differ."""
        try:
            backends: tuple[Backend, ...] = find_backends(names)[0]
            for backend in backends:
                own = backend.fingerprint(settings)
                if own != fingerprints[backend.name]:
                    raise BackendError(
                        f"{name!r} was compiled by {fingerprints[backend.name]}, but node {os.uname().nodename} has "
                        f"backend {backend.name!r} as {own}"
                    )
            memory = HOST.allocate(payload.nbytes)
            np.copyto(memory, payload)
            self._functions[name] = Executions(deserialise(memory.data, backends))
        except Exception as error:
            return told(error)
        return {}

    def unload(self, name: str) -> None:
        """Unload a function."""
        self._functions.pop(name, None)

    def end(self, name: str, session: int) -> None:
        """Drop a session."""
        self._functions[name].end(session)

    def run(self, name: str, session: int | None, *inputs: Array) -> tuple[dict[str, str], int, list[Any]]:
        """Run a function. Returns the error (empty if there is none), the nanoseconds of the run, and the outputs."""
        start = perf_counter_ns()
        try:
            outputs = list(self._functions[name].of(session).run(inputs).values())
        except Exception as error:
            return told(error), 0, []
        return {}, perf_counter_ns() - start, outputs
