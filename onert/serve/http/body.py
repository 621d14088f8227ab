"""Read and decompress the bodies of requests, within limits."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from http import HTTPStatus

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from onert.serve.errors import ServeError, bad
from onert.serve.room import ServeLimits

_GZIP, _ZLIB = 31, 15
"""zlib's window bits for the two compressed formats."""


class Body:
    """The body of a request, which `async with` keeps as long as it is needed."""

    def __init__(self, headers: Mapping[str, str], receive: Receive, room: ServeLimits) -> None:
        self._headers = headers
        self._receive = receive
        self._room = room
        self._taken = 0

    async def __aenter__(self) -> bytearray:
        """The decompressed bytes. Raises ServeError if there are too many, or decompression fails."""
        try:
            data = await self._read()
            packing = self._headers.get("content-encoding", "identity").lower()
            return data if packing == "identity" else self._unpacked(data, packing)
        except BaseException:
            self._free()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._free()

    def _free(self) -> None:
        self._room.free(self._taken)
        self._taken = 0

    def _take(self, nbytes: int) -> None:
        self._room.take(nbytes)
        self._taken += nbytes

    async def _read(self) -> bytearray:
        announced = self._announced()
        self._require_small(announced)
        self._take(announced)
        data = bytearray()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            data += message.get("body", b"")
            if len(data) > self._taken:
                self._require_small(len(data))
                self._take(len(data) - self._taken)
            if not message.get("more_body", False):
                return data

    def _announced(self) -> int:
        text = self._headers.get("content-length", "0")
        if not text.isascii() or not text.isdecimal() or len(text) > 18:
            raise bad(f"Content-Length is {text[:100]!r}, expected a number of bytes")
        return int(text)

    def _require_small(self, nbytes: int) -> None:
        most = self._room.limits.max_body
        if nbytes > most:
            raise ServeError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has at least {nbytes} bytes, expected at most {most}"
            )

    def _unpacked(self, data: bytearray, packing: str) -> bytearray:
        if packing not in ("gzip", "deflate"):
            raise ServeError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                f"Content-Encoding is {packing[:100]!r}, expected gzip, deflate or identity",
            )
        most = self._room.limits.max_body
        unpacking = zlib.decompressobj(_GZIP if packing == "gzip" else _ZLIB)
        try:
            found = bytearray(unpacking.decompress(data, most + 1))
        except zlib.error as error:
            raise bad(f"the body is not valid {packing} data: {error}") from error
        self._require_small(len(found))
        if not unpacking.eof or unpacking.unused_data:
            raise bad(f"the body's {packing} data is truncated or followed by other data")
        self._take(len(found))
        return found
