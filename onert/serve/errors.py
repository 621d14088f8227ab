"""Errors of a server, and their HTTP statuses."""

from __future__ import annotations

from http import HTTPStatus

from onert.host import (
    ConfigurationError,
    DeadlineError,
    DeviceLostError,
    NetworkBusyError,
    NetworkExistsError,
    NetworkNotFoundError,
    OutOfDeviceMemoryError,
    RequestRefusedError,
)
from onert.ir import CompileError, ExecutionError, ModelError, OnertError


class ServeError(OnertError):
    """A failed request, with its HTTP status."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


_STATUS: tuple[tuple[type[OnertError], HTTPStatus], ...] = (
    (NetworkNotFoundError, HTTPStatus.NOT_FOUND),
    (RequestRefusedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (DeadlineError, HTTPStatus.GATEWAY_TIMEOUT),
    (DeviceLostError, HTTPStatus.SERVICE_UNAVAILABLE),
    (NetworkBusyError, HTTPStatus.CONFLICT),
    (NetworkExistsError, HTTPStatus.CONFLICT),
    (OutOfDeviceMemoryError, HTTPStatus.SERVICE_UNAVAILABLE),
    (ExecutionError, HTTPStatus.BAD_REQUEST),
    (ModelError, HTTPStatus.BAD_REQUEST),
    (CompileError, HTTPStatus.BAD_REQUEST),
    (ConfigurationError, HTTPStatus.BAD_REQUEST),
)


def status_of(error: OnertError) -> HTTPStatus:
    """The HTTP status of an error."""
    if isinstance(error, ServeError):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


def bad(message: str) -> ServeError:
    """The error for a request that violates the protocol."""
    return ServeError(HTTPStatus.BAD_REQUEST, message)
