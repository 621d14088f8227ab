"""`POST /v2/models/NAME[/versions/VERSION]/infer`, the most frequent request, handled before the router."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from onert.serve.errors import ServeError, bad
from onert.serve.protocol import json_form
from onert.serve.room import ServeLimits
from onert.serve.service import Service

from .body import Body
from .failures import failure

LENGTH = "inference-header-content-length"
_HEAD = LENGTH.encode()
_LARGE = 1 << 16
"""JSON with more bytes is read and written in a thread, so that others are served meanwhile."""
_JSON = (b"content-type", b"application/json")
_BYTES = (b"content-type", b"application/octet-stream")


class Inferences:
    """Answers inferences, and passes other requests to `app`."""

    def __init__(self, app: ASGIApp, service: Service, room: ServeLimits) -> None:
        self._app = app
        self._service = service
        self._limits = room.limits
        self._room = room
        self._reader = json_form.Reader()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        model = _model(scope["path"]) if scope["type"] == "http" else None
        if model is None:
            await self._app(scope, receive, send)
            return
        try:
            if scope["method"] != "POST":
                raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"allow": "POST"})
            headers, body = await self._answer(*model, scope, receive)
        except Exception as error:
            await failure(scope["method"], scope["path"], error)(scope, receive, send)
            return
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, name: str, version: str, scope: Scope, receive: Receive
    ) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """The headers and the body of an answer."""
        given = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        with self._service.accepted():
            async with Body(given, receive, self._room) as body:
                length = self._json_length(given.get(LENGTH), len(body))
                if length > _LARGE:
                    asked, form = await asyncio.to_thread(json_form.read, body, length)
                else:
                    asked, form = self._reader.read(body, length)
                answer = await self._service.infer(name, version, asked, alone=self._room.connections == 1)
            nbytes = sum(array.nbytes for each, _, array in answer.outputs if not form.is_binary(each))
            if nbytes > _LARGE:
                pieces, head = await asyncio.to_thread(json_form.written, answer, form)
            else:
                pieces, head = json_form.written(answer, form)
        if head is None:
            return [_JSON], pieces[0]
        return [(_HEAD, b"%d" % head), _BYTES], b"".join(pieces)

    def _json_length(self, text: str | None, nbytes: int) -> int:
        length = nbytes
        if text is not None:
            if not text.isascii() or not text.isdecimal() or len(text) > 18 or not 0 < int(text) <= nbytes:
                raise bad(f"Inference-Header-Content-Length is {text[:100]!r}, but the body has {nbytes} bytes")
            length = int(text)
        if length > self._limits.max_json:
            raise ServeError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the JSON has {length} bytes, expected at most {self._limits.max_json}; send tensors as binary data",
            )
        return length


def _model(path: str) -> tuple[str, str] | None:
    """The model and version (empty if there is none) in the path of an inference; None for other paths."""
    if not path.endswith("/infer"):
        return None
    match path.split("/"):
        case ["", "v2", "models", name, "infer"] if name:
            return name, ""
        case ["", "v2", "models", name, "versions", version, "infer"] if name and version:
            return name, version
    return None
