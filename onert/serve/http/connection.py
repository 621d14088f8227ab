"""HTTP connections with limits: times for headers and bodies, size of headers, number of connections."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from onert.serve.room import ServeLimits


class WholeAnswer:
    """A transport for uvicorn's answers that sends head and body in one call.

    uvicorn writes them separately, which would send two segments and wake the client twice.
    """

    __slots__ = ("_cycle", "_head", "_transport")

    def __init__(self, cycle: Any) -> None:
        self._cycle = cycle
        self._transport: asyncio.Transport = cycle.transport
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        if self._head:
            self._transport.writelines((self._head, data))
            self._head = b""
        elif self._head is None and self._cycle.response_started:
            self._head = data
        else:  # more of the body, or an interim response (100)
            self._transport.write(data)

    def close(self) -> None:
        if self._head:  # there will be no body
            self._transport.write(self._head)
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()


class Connection(HttpToolsProtocol):
    """uvicorn's connection, protected from slow and endless senders. It is closed in these cases:

    - Headers take longer than `header_timeout`, or a body longer than `body_timeout`: answered with 408.
    - Headers are larger than `max_header`: 431. The data is not HTTP: 400.
    - There are more than `max_connections` connections: 503.
    - The answer is not read within `body_timeout`.
    """

    def __init__(self, room: ServeLimits, **more: Any) -> None:
        super().__init__(**more)
        self._room = room
        self._limits = room.limits
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._in_headers = True
        self._header_bytes = 0
        self._heads = 0
        """How many header blocks ended in the data received last."""
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._room.connections += 1
        if len(self.connections) > self._limits.max_connections:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, f"{len(self.connections) - 1} connections are open")
            return
        self._arm(self._limits.header_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.connections -= 1
        self._disarm()
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        began_in_headers = self._in_headers
        self._heads = 0
        super().data_received(data)
        # A request that arrived in one piece, like most small ones, is complete now and needs no timer.
        if not self._in_headers:
            self._await(self._limits.body_timeout)
        if began_in_headers and self._in_headers and not self._heads:
            self._header_bytes += len(data)
            self._require_small_headers()
            self._await(self._limits.header_timeout)

    def _require_small_headers(self) -> None:
        if self._header_bytes > self._limits.max_header and not self._refused:
            most = self._limits.max_header
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the headers have more than {most} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        self._require_small_headers()
        if not self._refused:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._refused:
            return
        self._in_headers = False
        self._header_bytes = 0
        self._heads += 1
        self._disarm()
        before: Any = self.cycle
        super().on_headers_complete()
        cycle: Any = self.cycle
        if cycle is not before and self.scope["method"] == "POST":
            cycle.transport = WholeAnswer(cycle)

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._disarm()
        self._in_headers = True
        self._header_bytes = 0
        if not self._refused:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(HTTPStatus.BAD_REQUEST, "the data is not an HTTP request")

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self._limits.body_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self._too_slow, seconds)

    def _await(self, seconds: float) -> None:
        """Start a timer for the rest of the request, unless one is running."""
        if self._timer is None and not self.transport.is_closing():
            self._arm(seconds)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self, seconds: float) -> None:
        self._timer = None
        what = "headers" if self._in_headers else "body"
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"the {what} did not arrive within {seconds:g} seconds")

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        """Answer with the reason, unless an answer has started, and close the connection."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._disarm()
        cycle: Any = self.cycle  # None before the first request
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_answer(status, reason))
        self.transport.close()


def _answer(status: HTTPStatus, reason: str) -> bytes:
    body = json.dumps({"error": reason}).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
