"""Sequences of requests that share state, which each sequence keeps on one device per sub-network."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from itertools import count
from threading import Lock
from time import monotonic

from onert.host.device_manager import DeviceManager
from onert.host.errors import NetworkBusyError, NetworkNotFoundError, RequestRefusedError
from onert.host.host_config import HostConfig
from onert.host.network import Network, PlacedNode

from .request import Request

_NUMBERS = count(1)


class Session:
    """A sequence of requests for a network. They run one at a time, in order of admission."""

    def __init__(self, sequence: Hashable) -> None:
        self.sequence = sequence
        self.number = next(_NUMBERS)
        """Its unique number, by which devices identify it."""
        self.used = monotonic()
        self.busy = False
        self._lock = Lock()
        self._ended = False
        self._waiting: deque[Request] = deque()
        self._places: dict[int, DeviceManager] = {}

    def enter(self, request: Request) -> bool:
        """Whether a request may run now; otherwise it waits for the previous one. Raises NetworkNotFoundError after the
        end."""
        with self._lock:
            if self._ended:
                raise NetworkNotFoundError(f"network {request.network.name!r}: sequence {self.sequence!r} was ended")
            if self.busy:
                self._waiting.append(request)
                return False
            self.busy = True
            return True

    def leave(self) -> Request | None:
        """Called when a request is over. Returns the next one, which may run now, or None."""
        with self._lock:
            self.used = monotonic()
            if self._waiting:
                return self._waiting.popleft()
            self.busy = False
            return None

    def end(self) -> bool:
        """Admit no more requests. Returns False, without effect, if one is in progress."""
        with self._lock:
            self._ended = not self.busy
            return self._ended

    def device(self, at: int, node: PlacedNode) -> DeviceManager:
        """The device that holds the state of a sub-network; chosen on the first call."""
        found = self._places.get(at)
        if found is None:
            found = self._places.setdefault(at, node.choose()[0])
        return found

    def forget(self, network: Network) -> None:
        """Drop the state on all devices."""
        for at, device in self._places.items():
            device.end_session(network.nodes[at].functions[0], self.number)


class Sessions:
    """The sequences of all networks of a host."""

    def __init__(self, config: HostConfig) -> None:
        self._config = config
        self._lock = Lock()
        self._sessions: dict[tuple[Network, Hashable], Session] = {}

    def of(self, network: Network, sequence: Hashable) -> Session:
        """A network's session for a sequence, which is created if necessary. Raises RequestRefusedError if the limit is
        reached and no session has been idle for long enough."""
        key = (network, sequence)
        with self._lock:
            found = self._sessions.get(key)
            if found is not None:
                return found
            if len(self._sessions) >= self._config.max_sequences:
                self._drop_idle()
            if len(self._sessions) >= self._config.max_sequences:
                raise RequestRefusedError(
                    f"network {network.name!r}: sequence {sequence!r} exceeds the limit of "
                    f"{self._config.max_sequences}, and none has been idle for {self._config.sequence_idle:g} seconds"
                )
            return self._sessions.setdefault(key, Session(sequence))

    def _drop_idle(self) -> None:
        longest = monotonic() - self._config.sequence_idle
        for key, session in tuple(self._sessions.items()):
            if session.used <= longest and session.end():
                del self._sessions[key]
                session.forget(key[0])

    def end(self, network: Network, sequence: Hashable) -> None:
        """Drop a sequence, if it exists. Raises NetworkBusyError while one of its requests is in progress."""
        with self._lock:
            session = self._sessions.get((network, sequence))
            if session is None:
                return
            if not session.end():
                raise NetworkBusyError(f"network {network.name!r}: sequence {sequence!r} has a request in progress")
            del self._sessions[network, sequence]
        session.forget(network)

    def remove(self, network: Network) -> None:
        """Drop the sequences of a network that was removed together with its functions."""
        with self._lock:
            for key in [key for key in self._sessions if key[0] is network]:
                del self._sessions[key]
