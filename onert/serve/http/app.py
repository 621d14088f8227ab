"""The endpoints except inference: the rest of the protocol, metrics, and the page."""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from onert.ir import OnertError
from onert.serve.errors import bad
from onert.serve.metrics import metrics, status
from onert.serve.protocol import json_form
from onert.serve.room import ServeLimits
from onert.serve.service import Service

from .body import Body
from .failures import failure
from .guard import Guard
from .inferences import Inferences

_PAGE = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
_SAFE = {
    "content-security-policy": "default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


class Paths:
    """The endpoints of a service."""

    def __init__(self, service: Service, room: ServeLimits) -> None:
        self._service = service
        self._room = room

    def routes(self) -> list[Route]:
        """The routes of all endpoints except inference."""
        found = [Route("/v2/models/stats", self.statistics, methods=["GET"])]
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
        async with Body(request.headers, request.receive, self._room) as body:
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
        """Raises ServeError if a client tries to provide files or settings of a model."""
        async with Body(request.headers, request.receive, self._room) as body:
            wanted = json_form.parsed(body) if body else {}
        given = wanted.get("parameters", {})
        if not isinstance(given, dict) or given.keys() - {"unload_dependents"}:
            raise bad("'parameters' are not supported: models are loaded from the server's repository as they are")

    async def metrics(self, request: Request) -> Response:
        """`GET /metrics`, in Prometheus's text format."""
        return Response(metrics(self._service), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def status(self, request: Request) -> Response:
        """`GET /status`: the data of the page."""
        return JSONResponse(await asyncio.to_thread(status, self._service))


_VERSIONS = ("", "/versions/{version}")


def _readiness(ready: bool, document: dict[str, Any]) -> Response:
    return JSONResponse({**document, "ready": ready}, HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)


async def _page(name: str, kind: str, request: Request) -> Response:
    text = (files("onert.serve") / "page" / name).read_text(encoding="utf-8")
    return Response(text, media_type=kind, headers=_SAFE)


async def _on_error(request: Request, error: Exception) -> Response:
    return failure(request.method, request.url.path, error)


def application(service: Service, room: ServeLimits) -> ASGIApp:
    """The application that uvicorn runs."""
    limits = room.limits
    kinds: tuple[Any, ...] = (OnertError, HTTPException, ClientDisconnect, Exception)
    others = Starlette(routes=Paths(service, room).routes(), exception_handlers=dict.fromkeys(kinds, _on_error))
    return Guard(Inferences(others, service, room), host=limits.host, is_loopback=limits.is_loopback)
