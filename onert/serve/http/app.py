"""What each path answers: the protocol, metrics, and the page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from onert.ir import OnertError
from onert.serve.errors import ServeError, bad, status_of
from onert.serve.metrics import metrics, status
from onert.serve.protocol import json_form
from onert.serve.room import Room
from onert.serve.service import Service

from .body import Body
from .guard import Guard

LENGTH = "inference-header-content-length"
_LARGE = 1 << 16
"""Bytes of JSON above which a thread reads or writes it, while others are served."""
_PAGE = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
_SAFE = {
    "content-security-policy": "default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
_LOGGER = logging.getLogger("onert.serve")
Endpoint = Callable[[Request], Awaitable[Response]]


class Paths:
    """The endpoints, over one service."""

    def __init__(self, service: Service, room: Room) -> None:
        self._service = service
        self._limits = room.limits
        self._room = room

    def routes(self) -> list[Route]:
        """Every path; the one that is asked most comes first."""
        found = [Route(f"/v2/models/{{name}}{version}/infer", self.infer, methods=["POST"]) for version in _VERSIONS]
        found.append(Route("/v2/models/stats", self.statistics, methods=["GET"]))
        for version in _VERSIONS:
            model = f"/v2/models/{{name}}{version}"
            found += [
                Route(f"{model}/ready", self.model_ready, methods=["GET"]),
                Route(f"{model}/stats", self.statistics, methods=["GET"]),
                Route(f"{model}/config", self.model_config, methods=["GET"]),
                Route(model, self.model_metadata, methods=["GET"]),
            ]
        found += [
            Route("/v2", self.metadata, methods=["GET"]),
            Route("/v2/health/live", self.live, methods=["GET"]),
            Route("/v2/health/ready", self.ready, methods=["GET"]),
            Route("/v2/repository/index", self.index, methods=["POST"]),
            Route("/v2/repository/models/{name}/load", self.load, methods=["POST"]),
            Route("/v2/repository/models/{name}/unload", self.unload, methods=["POST"]),
            Route("/metrics", self.metrics, methods=["GET"]),
            Route("/status", self.status, methods=["GET"]),
        ]
        found += [Route(path, partial(_page, *file), methods=["GET"]) for path, file in _PAGE.items()]
        return found

    async def infer(self, request: Request) -> Response:
        """`POST /v2/models/NAME[/versions/VERSION]/infer`"""
        with self._service.accepted():
            async with Body(request, self._room) as body:
                length = self._json_length(request, len(body))
                if length > _LARGE:
                    asked, form = await asyncio.to_thread(json_form.read, body, length)
                else:
                    asked, form = json_form.read(body, length)
                name, version = request.path_params["name"], request.path_params.get("version", "")
                answer = await self._service.infer(name, version, asked)
            nbytes = sum(array.nbytes for each, _, array in answer.outputs if not form.is_binary(each))
            if nbytes > _LARGE:
                pieces, head = await asyncio.to_thread(json_form.written, answer, form)
            else:
                pieces, head = json_form.written(answer, form)
        if head is None:
            return Response(pieces[0], media_type="application/json")
        return Response(b"".join(pieces), headers={LENGTH: str(head)}, media_type="application/octet-stream")

    def _json_length(self, request: Request, nbytes: int) -> int:
        text = request.headers.get(LENGTH)
        length = nbytes
        if text is not None:
            if not text.isascii() or not text.isdecimal() or len(text) > 18 or not 0 < int(text) <= nbytes:
                raise bad(f"Inference-Header-Content-Length is {text[:100]!r}, and the body has {nbytes} bytes")
            length = int(text)
        if length > self._limits.max_json:
            raise ServeError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the JSON has {length} bytes, expected {self._limits.max_json} at most; send tensors as bytes",
            )
        return length

    async def metadata(self, request: Request) -> Response:
        """`GET /v2`"""
        return JSONResponse(self._service.metadata())

    async def live(self, request: Request) -> Response:
        """`GET /v2/health/live`"""
        return JSONResponse({"live": True})

    async def ready(self, request: Request) -> Response:
        """`GET /v2/health/ready`"""
        return _readiness(self._service.is_ready, {})

    async def model_ready(self, request: Request) -> Response:
        """`GET /v2/models/NAME[/versions/VERSION]/ready`"""
        name, version = request.path_params["name"], request.path_params.get("version", "")
        return _readiness(self._service.is_model_ready(name, version), {"name": name})

    async def model_metadata(self, request: Request) -> Response:
        """`GET /v2/models/NAME[/versions/VERSION]`"""
        return JSONResponse(
            self._service.model_metadata(request.path_params["name"], request.path_params.get("version", ""))
        )

    async def model_config(self, request: Request) -> Response:
        """`GET /v2/models/NAME[/versions/VERSION]/config`"""
        return JSONResponse(
            self._service.model_config(request.path_params["name"], request.path_params.get("version", ""))
        )

    async def statistics(self, request: Request) -> Response:
        """`GET /v2/models[/NAME[/versions/VERSION]]/stats`"""
        found = self._service.statistics(request.path_params.get("name", ""), request.path_params.get("version", ""))
        return JSONResponse({"model_stats": found})

    async def index(self, request: Request) -> Response:
        """`POST /v2/repository/index`"""
        async with Body(request, self._room) as body:
            wanted = json_form.parsed(body) if body else {}
        ready = wanted.get("ready", False)
        if not isinstance(ready, bool):
            raise bad("'ready' is neither true nor false")
        return JSONResponse(await asyncio.to_thread(self._service.index, ready=ready))

    async def load(self, request: Request) -> Response:
        """`POST /v2/repository/models/NAME/load`"""
        await self._require_no_files(request)
        await asyncio.to_thread(self._service.repository.load, request.path_params["name"])
        return JSONResponse({})

    async def unload(self, request: Request) -> Response:
        """`POST /v2/repository/models/NAME/unload`"""
        await self._require_no_files(request)
        await asyncio.to_thread(self._service.repository.unload, request.path_params["name"])
        return JSONResponse({})

    async def _require_no_files(self, request: Request) -> None:
        """Models come from the server's folder alone, with its own settings."""
        async with Body(request, self._room) as body:
            wanted = json_form.parsed(body) if body else {}
        given = wanted.get("parameters", {})
        if not isinstance(given, dict) or given.keys() - {"unload_dependents"}:
            raise bad("'parameters' are not taken: models are loaded from the server's repository as they are")

    async def metrics(self, request: Request) -> Response:
        """`GET /metrics`, in Prometheus's text form."""
        return Response(metrics(self._service), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def status(self, request: Request) -> Response:
        """`GET /status`: what the page shows."""
        return JSONResponse(await asyncio.to_thread(status, self._service))


_VERSIONS = ("", "/versions/{version}")


def _readiness(ready: bool, document: dict[str, Any]) -> Response:
    return JSONResponse({**document, "ready": ready}, HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)


async def _page(name: str, kind: str, request: Request) -> Response:
    text = (files("onert.serve") / "page" / name).read_text(encoding="utf-8")
    return Response(text, media_type=kind, headers=_SAFE)


def _refused(error: OnertError) -> Response:
    found = status_of(error)
    headers = {"retry-after": "1"} if found is HTTPStatus.SERVICE_UNAVAILABLE else None
    return JSONResponse({"error": str(error)}, found, headers)


async def _on_error(request: Request, error: Exception) -> Response:
    if isinstance(error, OnertError):
        return _refused(error)
    if isinstance(error, HTTPException):
        told = f"{request.method} {request.url.path[:200]}: {error.detail}"
        return JSONResponse({"error": told}, error.status_code, error.headers)
    if isinstance(error, ClientDisconnect):
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # to nobody
    _LOGGER.exception("%s %s failed", request.method, request.url.path, exc_info=error)
    return JSONResponse({"error": "the server failed; its log says how"}, HTTPStatus.INTERNAL_SERVER_ERROR)


def application(service: Service, room: Room) -> Starlette:
    """The application that uvicorn runs."""
    limits = room.limits
    kinds: tuple[Any, ...] = (OnertError, HTTPException, ClientDisconnect, Exception)
    return Starlette(
        routes=Paths(service, room).routes(),
        middleware=[Middleware(Guard, host=limits.host, is_loopback=limits.is_loopback)],
        exception_handlers=dict.fromkeys(kinds, _on_error),
    )
