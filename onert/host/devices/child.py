"""The process of a device. It loads programs sent by the host, and runs them on memory shared with the host.

A host starts it as `python -m onert.host.devices.child DESCRIPTOR CORES`.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np

from onert.backend import HOST, Backend, Program
from onert.backend.registry import find_backends
from onert.compiler.program_cache.transport import deserialise
from onert.exec import Execution
from onert.ir import Array

from .executions import Executions
from .sending import told
from .shared import Channel, mapped, tensors


class Child:
    """Handles messages from the host, one after another."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._functions: dict[str, Executions] = {}

    def serve(self) -> None:
        """Serve until the host sends "stop" or is gone."""
        while True:
            try:
                message, files = self._channel.receive()
            except EOFError:
                return
            if message["do"] == "stop":
                return
            try:
                answer = self._answer(message, files)
            except Exception as error:  # the host adds the device's name
                answer = dict(told(error))
            try:
                self._channel.send(answer)
            except OSError:
                return

    def _answer(self, message: dict[str, Any], files: list[int]) -> dict[str, Any]:
        what, name = message["do"], message["name"]
        if what == "run":
            start = perf_counter_ns()
            self._functions[name].of(message["session"]).execute()
            return {"start": start, "end": perf_counter_ns()}
        if what == "load":
            self._functions[name] = _loaded(files, message["backends"])
        elif what == "unload":
            self._functions.pop(name, None)
        elif what == "end":
            self._functions[name].end(message["session"])
        return {}


def _loaded(files: list[int], names: list[str]) -> Executions:
    """Load a program with executions whose inputs and outputs are in shared memory."""
    payload, area = files
    try:
        shared = mapped(payload)
        own = HOST.allocate(shared.nbytes)
        np.copyto(own, shared)
        backends: tuple[Backend, ...] = find_backends(names)[0]
        program = deserialise(own.data, backends)
        return Executions(program, partial(_bound, *tensors(mapped(area), program)))
    finally:
        os.close(payload)
        os.close(area)


def _bound(inputs: Sequence[Array], outputs: Sequence[Array], program: Program) -> Execution:
    execution = Execution(program)
    for at, array in enumerate(inputs):
        execution.set_input(at, array)
    for at, array in enumerate(outputs):
        execution.set_output(at, array)
    return execution


def main(descriptor: str, cores: str) -> None:
    """Serve the host at the other end of a socket, on the given processors or (if empty) on any."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [int(core) for core in cores.split(",")])
    with socket.socket(fileno=int(descriptor)) as end:
        Child(Channel(end)).serve()


if __name__ == "__main__":
    main(*sys.argv[1:3])
