"""Reject requests that a foreign web page makes a browser send, before reading them."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Guard:
    """Rejects requests whose `Origin` is another site and, on the loopback address, requests for another `Host` (a name
    that a foreign DNS server may resolve to this machine)."""

    def __init__(self, app: ASGIApp, host: str, *, is_loopback: bool) -> None:
        self._app = app
        self._names = (*_LOOPBACK, host) if is_loopback else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            wrong = self._wrong(scope)
            if wrong is not None:
                await JSONResponse({"error": wrong}, 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _wrong(self, scope: Scope) -> str | None:
        host = origin = None
        for name, value in scope["headers"]:
            if name == b"host":
                host = value.decode("latin-1")
            elif name == b"origin":
                origin = value.decode("latin-1")
        if self._names is not None and host is not None and _host_of(f"//{host}") not in self._names:
            return f"this server is not {host[:200]!r}"
        if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            return f"requests from {origin[:200]!r} are not accepted"
        return None


@lru_cache(maxsize=64)
def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
