"""A device that runs functions in another place, which may be lost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Generic, TypeVar

from onert.host.device_config import DeviceConfig
from onert.host.device_manager import CompiledFunction
from onert.host.errors import DeviceLostError
from onert.host.memory import program_memory
from onert.ir import Array

from .worker_device import Run, WorkerDevice


class Sent:
    """A function that was sent to the place where it runs, and its sessions."""

    def __init__(self, function: CompiledFunction) -> None:
        self.function = function
        self.sessions: set[int] = set()
        self.lost: set[int] = set()
        """Sessions whose state was lost with the place."""


SentT = TypeVar("SentT", bound=Sent)


class RemoteDevice(WorkerDevice, Generic[SentT]):
    """Sends functions to a place and runs them there. The state of sequences is lost with the place: their requests
    fail until the sequences are ended.

    A subclass implements `_packed`, `_give`, `_tell` and `_run_there`, which (except `_packed`) are called in the
    worker's turn.
    """

    place: ClassVar[str]
    """The name of the place in messages."""

    def __init__(self, config: DeviceConfig, threads: int) -> None:
        super().__init__(config, threads)
        self._sent: dict[str, SentT] = {}
        self.restarts = 0
        """How often the place was lost."""

    def _packed(self, function: CompiledFunction) -> SentT:
        """Pack a function for sending."""
        raise NotImplementedError

    def _give(self, name: str, sent: SentT) -> None:
        """Send a function. Raises DeviceLostError if the place is gone."""
        raise NotImplementedError

    def _tell(self, what: str, name: str, session: int | None = None) -> None:
        """Unload a function ("unload") or end a session of it ("end"). Does nothing if the place is gone."""
        raise NotImplementedError

    def _run_there(self, name: str, sent: SentT, inputs: Sequence[Array], session: int | None) -> Sequence[Array]:
        """Run a function. Raises DeviceLostError if the place is gone."""
        raise NotImplementedError

    def _load(self, function: CompiledFunction) -> None:
        sent = self._packed(function)
        self._thread.alone(partial(self._load_now, function.name, sent))

    def _load_now(self, name: str, sent: SentT) -> None:
        self._give(name, sent)
        self._sent[name] = sent

    def _unload(self, name: str) -> None:
        if self._sent.pop(name, None) is not None:
            self._thread.alone(partial(self._tell, "unload", name))

    def _run_of(self, name: str) -> Run:
        if name not in self._sent:
            raise self._unknown(name)
        return partial(self._run, name)

    def _run(self, name: str, inputs: Sequence[Array], session: int | None) -> Sequence[Array]:
        sent = self._sent.get(name)
        if sent is None:
            raise self._unknown(name)
        if session is not None:
            self._admit(sent, session)
        return self._run_there(name, sent, inputs, session)

    def _admit(self, sent: SentT, session: int) -> None:
        name = sent.function.name
        if session in sent.lost:
            raise DeviceLostError(
                f"device {self.name!r}: the state of this sequence of {name!r} was lost with its {self.place}"
            )
        if session not in sent.sessions:
            memory = program_memory(sent.function.program)
            self.take_session(name, session, memory.total - memory.constants)
            sent.sessions.add(session)

    def _note_loss(self) -> None:
        """The place is gone, and with it the state of all sequences."""
        self.restarts += 1
        for each in self._sent.values():
            each.lost |= each.sessions
            each.sessions.clear()

    def end_session(self, name: str, session: int) -> None:
        sent = self._sent.get(name)
        if sent is not None:
            sent.lost.discard(session)
            if session in sent.sessions:
                sent.sessions.discard(session)
                self._thread.alone(partial(self._tell, "end", name, session))
            self.free_session(name, session)
