"""Resource limits shared by all requests: memory and connections."""

from __future__ import annotations

from http import HTTPStatus

from .errors import ServeError
from .serve_config import ServeConfig


class ServeLimits:
    """Counts the bytes of all requests in progress, which are limited, and the HTTP connections."""

    def __init__(self, limits: ServeConfig) -> None:
        self.limits = limits
        self.taken = 0
        self.connections = 0

    def take(self, nbytes: int) -> None:
        """Reserve bytes. Raises ServeError if the limit is exceeded."""
        if self.taken + nbytes > self.limits.max_buffered:
            raise ServeError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"the request has {nbytes} bytes and those in progress have {self.taken}, together more than the limit "
                f"of {self.limits.max_buffered}",
            )
        self.taken += nbytes

    def free(self, nbytes: int) -> None:
        """Release reserved bytes."""
        self.taken -= nbytes
