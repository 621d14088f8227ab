"""A device in a process of its own, so that a crash there affects nothing else."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np

from onert.backend.registry import find_backends
from onert.host.device_config import DeviceConfig
from onert.host.device_manager import CompiledFunction
from onert.host.errors import DeviceLostError
from onert.ir import Array, OnertError

from .remote import RemoteDevice, Sent
from .sending import pieces, raised
from .shared import Channel, area_bytes, file_of, mapped, tensors
from .worker import Worker

_PATIENCE = 5.0
"""How long to wait for a process to stop, in seconds, before killing it."""


class _Sent(Sent):
    """A function as it is sent to the process: its program in a file, and the shared memory of inputs and outputs."""

    def __init__(self, function: CompiledFunction) -> None:
        super().__init__(function)
        backends = find_backends(function.options.backends)[0]
        self.backends = list(function.options.backends)
        self.area = file_of("onert-tensors", area_bytes(function.program))
        finalize(self, os.close, self.area)
        parts = pieces(function, backends)
        self.payload = file_of("onert-program", sum(map(len, parts)))
        finalize(self, os.close, self.payload)
        whole, start = mapped(self.payload), 0
        for piece in parts:
            whole[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
            start += len(piece)
        self.inputs, self.outputs = tensors(mapped(self.area), function.program)


class _Process:
    """A child process and the channel to it."""

    def __init__(self, name: str, cores: Sequence[int]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-m", "onert.host.devices.child", str(number), ",".join(map(str, cores))]
            try:
                # A session of its own, so that Ctrl-C at a terminal interrupts the host and not its devices.
                self._process = subprocess.Popen(
                    command,
                    pass_fds=(number,),
                    stdin=subprocess.DEVNULL,
                    env=_environment(),
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise DeviceLostError(f"device {name!r}: its process cannot be started: {error}") from error
        self.channel = Channel(ours)
        self.pid = self._process.pid

    def ask(self, message: dict[str, Any], files: Sequence[int] = ()) -> dict[str, Any]:
        """Send a message and return the answer. Errors in it are raised, and EOFError if the process is gone."""
        try:
            self.channel.send(message, files)
        except OSError as error:
            raise EOFError(str(error)) from error
        answer, _ = self.channel.receive()
        if "error" in answer:
            raise raised(answer)
        return answer

    @property
    def is_over(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def end(self) -> str:
        """Close the channel, make sure that the process ends, and return a description of how it ended."""
        self.channel.close()
        try:
            status = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        if status < 0:
            return f"signal {-status} ({signal.strsignal(-status)})"
        return f"status {status}"


def _environment() -> dict[str, str]:
    """This process's environment, with its import path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path)}


class ProcessDevice(RemoteDevice[_Sent]):
    """Runs functions in another process, one at a time, with inputs and outputs in shared memory.

    If the process dies during a run, the run fails with a DeviceLostError. The next run, also after a death while idle,
    gets a new process with the same functions. The state of sequences is lost with the process: their requests fail
    until the sequences are ended. Functions with inputs or outputs of dynamic size cannot be loaded.
    """

    kind = "process"
    place = "process"

    def __init__(self, config: DeviceConfig, threads: int) -> None:
        super().__init__(config, threads)
        self._processes: list[_Process] = []
        """The current process; empty before the first one and after one has ended."""
        self._life = Lock()

    def init(self) -> None:
        self._worker = worker = Worker(self.name, lambda: None)
        self._process()
        finalize(self, _end, worker, self._processes)

    @property
    def pid(self) -> int:
        """The ID of the current process."""
        return self._process().pid

    def _process(self) -> _Process:
        """The current process. If there is none or it died while idle, a new one with all functions is started."""
        for idle in self._processes[:1]:
            if idle.is_over:
                self._lose(idle)
        with self._life:
            if not self._processes:
                made = _Process(self.name, self.config.cores)
                for name, each in self._sent.items():
                    _send(made, name, each)
                self._processes.append(made)
            return self._processes[0]

    def _ask(self, message: dict[str, Any], files: Sequence[int] = ()) -> dict[str, Any]:
        """Send a message to the process and return its answer. Must be called in the worker's turn. Raises
        DeviceLostError if the process ended."""
        process = self._process()
        try:
            return process.ask(message, files)
        except EOFError:
            how = self._lose(process)
            raise DeviceLostError(
                f"device {self.name!r}: its process {process.pid} ended with {how} during a request to "
                f"{message['do']} {message['name']!r}"
            ) from None
        except OnertError:
            raise
        except BaseException:  # an interrupt: the pending answer would never be read
            process.kill()
            self._lose(process)
            raise

    def _lose(self, process: _Process) -> str:
        with self._life:
            if process in self._processes:
                self._processes.remove(process)
                self._note_loss()
            return process.end()

    def _packed(self, function: CompiledFunction) -> _Sent:
        return _Sent(function)

    def _give(self, name: str, sent: _Sent) -> None:
        self._ask(*_loading(name, sent))

    def _tell(self, what: str, name: str, session: int | None = None) -> None:
        with self._life:
            processes = list(self._processes)
        for process in processes:
            try:
                process.ask({"do": what, "name": name, "session": session})
            except EOFError:
                self._lose(process)

    def _run_there(self, name: str, sent: _Sent, inputs: Sequence[Array], session: int | None) -> list[Array]:
        for target, array in zip(sent.inputs, inputs, strict=True):
            np.copyto(target, array)
        answer = self._ask({"do": "run", "name": name, "session": session})
        for trace in self.traces:
            trace.ran_elsewhere(name, self.name, self._processes[0].pid, answer["start"], answer["end"])
        return [array.copy() for array in sent.outputs]

    def stop(self) -> None:
        _end(self._thread, self._processes)


def _loading(name: str, sent: _Sent) -> tuple[dict[str, Any], tuple[int, int]]:
    """The message and files that load a function into a process."""
    return {"do": "load", "name": name, "backends": sent.backends}, (sent.payload, sent.area)


def _send(process: _Process, name: str, sent: _Sent) -> None:
    try:
        process.ask(*_loading(name, sent))
    except EOFError as error:
        how = process.end()
        raise DeviceLostError(f"the device's process ended with {how} while loading {name!r}") from error


def _end(worker: Worker, processes: list[_Process]) -> None:
    """Stop the thread, then the process."""
    worker.stop()
    while processes:
        processes.pop().end()
