"""Answers to failed requests."""

from __future__ import annotations

import logging
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from onert.ir import OnertError
from onert.serve.errors import status_of

_LOGGER = logging.getLogger("onert.serve")


def failure(method: str, path: str, error: Exception) -> Response:
    """The answer to a failed request: its status, and the reason as JSON."""
    if isinstance(error, OnertError):
        status = status_of(error)
        headers = {"retry-after": "1"} if status is HTTPStatus.SERVICE_UNAVAILABLE else None
        return JSONResponse({"error": str(error)}, status, headers)
    if isinstance(error, HTTPException):
        return JSONResponse({"error": f"{method} {path[:200]}: {error.detail}"}, error.status_code, error.headers)
    if isinstance(error, ClientDisconnect):
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # the client is gone
    _LOGGER.exception("%s %s failed", method, path, exc_info=error)
    return JSONResponse({"error": "internal error; see the server's log"}, HTTPStatus.INTERNAL_SERVER_ERROR)
