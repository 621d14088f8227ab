"""Sequences of requests that share state: each keeps its own, on one device."""

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
    """A sequence of requests for one network. They are run one at a time, in the order in which they were let in."""

    def __init__(self, sequence: Hashable) -> None:
        self.sequence = sequence
        self.number = next(_NUMBERS)
        """Unique in the process: what devices know it by."""
        self.used = monotonic()
        self.busy = False
        self._lock = Lock()
        self._ended = False
        self._waiting: deque[Request] = deque()
        self._places: dict[int, DeviceManager] = {}

    def enter(self, request: Request) -> bool:
        """Whether a request may run now; else it waits for the one before it. NetworkNotFoundError where the sequence
        was ended meanwhile."""
        with self._lock:
            if self._ended:
                raise NetworkNotFoundError(f"network {request.network.name!r}: sequence {self.sequence!r} was ended")
            if self.busy:
                self._waiting.append(request)
                return False
            self.busy = True
            return True

    def leave(self) -> Request | None:
        """A request is over; the next one, which may run now."""
        with self._lock:
            self.used = monotonic()
            if self._waiting:
                return self._waiting.popleft()
            self.busy = False
            return None

    def end(self) -> bool:
        """Let no more requests in; False where one is under way."""
        with self._lock:
            self._ended = not self.busy
            return self._ended

    def device(self, at: int, node: PlacedNode) -> DeviceManager:
        """The device that keeps the state of a sub-network."""
        found = self._places.get(at)
        if found is None:
            found = self._places.setdefault(at, node.choose()[0])
        return found

    def forget(self, network: Network) -> None:
        """Have devices forget the state."""
        for at, device in self._places.items():
            device.end_session(network.nodes[at].functions[0], self.number)


class Sessions:
    """The sequences of all networks of a host."""

    def __init__(self, config: HostConfig) -> None:
        self._config = config
        self._lock = Lock()
        self._sessions: dict[tuple[Network, Hashable], Session] = {}

    def of(self, network: Network, sequence: Hashable) -> Session:
        """A network's session of this name, a new one where there is none. RequestRefusedError where there are as many
        as may be, and none has been idle for long."""
        key = (network, sequence)
        with self._lock:
            found = self._sessions.get(key)
            if found is not None:
                return found
            if len(self._sessions) >= self._config.max_sequences:
                self._drop_idle()
            if len(self._sessions) >= self._config.max_sequences:
                raise RequestRefusedError(
                    f"network {network.name!r}: sequence {sequence!r} would be one more than "
                    f"{self._config.max_sequences}, and none was idle for {self._config.sequence_idle:g} seconds"
                )
            return self._sessions.setdefault(key, Session(sequence))

    def _drop_idle(self) -> None:
        longest = monotonic() - self._config.sequence_idle
        for key, session in tuple(self._sessions.items()):
            if session.used <= longest and session.end():
                del self._sessions[key]
                session.forget(key[0])

    def end(self, network: Network, sequence: Hashable) -> None:
        """Forget a sequence; nothing where there is none. NetworkBusyError while a request of it is being run."""
        with self._lock:
            session = self._sessions.get((network, sequence))
            if session is None:
                return
            if not session.end():
                raise NetworkBusyError(f"network {network.name!r}: sequence {sequence!r} has a request under way")
            del self._sessions[network, sequence]
        session.forget(network)

    def remove(self, network: Network) -> None:
        """Forget the sequences of a network that was removed, with its functions."""
        with self._lock:
            for key in [key for key in self._sessions if key[0] is network]:
                del self._sessions[key]

    def count(self, network: Network) -> int:
        """How many sequences a network has."""
        with self._lock:
            return sum(key[0] is network for key in self._sessions)
