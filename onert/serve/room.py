"""What requests take of the server: memory, and connections."""

from __future__ import annotations

from http import HTTPStatus

from .errors import ServeError
from .serve_config import ServeConfig


class Room:
    """The bytes of all requests under way, which have a bound, and how many connections there are over HTTP."""

    def __init__(self, limits: ServeConfig) -> None:
        self.limits = limits
        self.taken = 0
        self.connections = 0

    def take(self, nbytes: int) -> None:
        """Account for bytes; ServeError where there is no room."""
        if self.taken + nbytes > self.limits.max_buffered:
            raise ServeError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"requests under way have {self.taken} bytes, with {nbytes} more it would be more than "
                f"{self.limits.max_buffered}",
            )
        self.taken += nbytes

    def free(self, nbytes: int) -> None:
        """Account for them no more."""
        self.taken -= nbytes
