"""Requests: a network's inputs, and the way to deliver the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from time import perf_counter
from typing import Any

from onert.backend.tasks import Gate
from onert.host.device_manager import Result
from onert.host.errors import DeadlineError
from onert.host.network import Network, Outputs
from onert.ir import Array

from .promise import Promise

Callback = Callable[[Future[Outputs]], object]


class Request:
    """A request to run a network. It is answered once. `begun` and `deadline` are seconds of `perf_counter`."""

    __slots__ = ("__weakref__", "begun", "deadline", "inputs", "network", "number", "priority")

    callback: Callback | None = None
    """Called on a callback thread after the answer. The request counts as active until it returns."""
    session: Any = None
    """The `Session` of a request that shares state with others."""

    def __init__(
        self, network: Network, inputs: Sequence[Array], priority: int, number: int, begun: float, timeout: float | None
    ) -> None:
        self.network = network
        self.inputs = inputs
        self.priority = priority
        self.number = number
        self.begun = begun
        self.deadline = None if timeout is None else begun + timeout

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and perf_counter() >= self.deadline

    def late(self) -> DeadlineError:
        """The answer to a late request."""
        assert self.deadline is not None
        return DeadlineError(
            f"network {self.network.name!r}: request {self.number} was not answered within "
            f"{self.deadline - self.begun:g} seconds"
        )

    @property
    def is_wanted(self) -> bool:
        """Whether the sender still wants the answer."""
        raise NotImplementedError

    def start(self) -> bool:
        """Start a queued request. Returns False if its sender no longer wants the answer. Called once."""
        raise NotImplementedError

    def start_at_once(self) -> None:
        """Start a request that was never queued, before its sender gets a handle to it."""

    @property
    def is_answered(self) -> bool:
        """Whether the sender has the answer."""
        raise NotImplementedError

    def claim(self) -> bool:
        """Whether the caller must answer the request. True only once, because a run may end just at the deadline."""
        return True

    def answer(self, result: Result) -> None:
        """Deliver the outputs, or the error, to the sender."""
        raise NotImplementedError


class WaitingRequest(Request):
    """A request whose sender waits for the answer."""

    __slots__ = ("_abandoned", "_gate", "_result", "session")

    def __init__(
        self, network: Network, inputs: Sequence[Array], priority: int, number: int, begun: float, timeout: float | None
    ) -> None:
        super().__init__(network, inputs, priority, number, begun, timeout)
        self.session: Any = None
        self._gate = Gate()
        self._result: Result | None = None
        self._abandoned = False

    @property
    def is_wanted(self) -> bool:
        return not self._abandoned

    def start(self) -> bool:
        return not self._abandoned

    @property
    def is_answered(self) -> bool:
        return self._gate.is_open

    def answer(self, result: Result) -> None:
        self._result = result
        self._gate.open()

    def wait(self) -> Outputs:
        """Wait for the outputs, by name. Errors are raised, and DeadlineError if there is no answer in time."""
        try:
            while not self._gate.is_open:
                left = None if self.deadline is None else self.deadline - perf_counter()
                if not self._gate.wait(left):
                    raise self.late()
        except BaseException:
            self._abandoned = True
            raise
        result = self._result
        if isinstance(result, BaseException):
            try:
                raise result
            finally:
                del self, result  # otherwise the error's traceback would keep them alive
        assert result is not None
        return self.network.named(result)


class PromisedRequest(Request):
    """A request whose sender has a future."""

    __slots__ = ("_claims", "callback", "future", "session")

    def __init__(
        self, network: Network, inputs: Sequence[Array], priority: int, number: int, begun: float, timeout: float | None
    ) -> None:
        # The base class's constructor is inlined, because its call would cost time in every request.
        self.network = network
        self.inputs = inputs
        self.priority = priority
        self.number = number
        self.begun = begun
        self.deadline = None if timeout is None else begun + timeout
        self.session: Any = None
        self.future = Promise()
        self.callback: Callback | None = None
        self._claims = None if timeout is None else [True]

    @property
    def is_wanted(self) -> bool:
        return not self.future.cancelled()

    @property
    def is_answered(self) -> bool:
        return self.future.done()

    def claim(self) -> bool:
        if self._claims is None:
            return True
        try:
            return self._claims.pop()
        except IndexError:
            return False

    def start(self) -> bool:
        return self.future.start()

    def start_at_once(self) -> None:
        self.future.start_at_once()

    def answer(self, result: Result) -> None:
        if isinstance(result, BaseException):
            self.future.set_exception(result)
        else:
            self.future.set_result(self.network.named(result))
