"""`Server`: serves a host over HTTP and gRPC on a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

import grpc
import uvicorn
import uvloop

from onert.host import ConfigurationError, HostManager

from .http.app import application
from .http.connection import Connection
from .repository import Loading, Repository
from .room import ServeLimits
from .rpc import rpc_server
from .serve_config import ServeConfig
from .service import Service

_LOGGER = logging.getLogger("onert.serve")
_BACKLOG = 256
_LOOK = 0.02
"""Seconds between checks whether the last inference is answered."""


class Server:
    """Serves the models of a host from `start` to `stop`, or within a `with` block.

    `models` are files or packages by name; `folder` has more, which clients may load by stem. The caller owns the host.
    """

    def __init__(
        self,
        host: HostManager,
        models: Mapping[str, Path],
        config: ServeConfig | None = None,
        *,
        folder: Path | None = None,
        loading: Loading | None = None,
    ) -> None:
        self.config = ServeConfig() if config is None else config
        self.repository = Repository(host, models, folder, loading or Loading(), self.config.drain_timeout)
        self.service = Service(host, self.repository, self.config.request_timeout)
        self.http_port: int | None = None
        """The port that it listens on, once it does."""
        self.grpc_port: int | None = None
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._over = Event()

    def start(self) -> None:
        """Listen, and load the models. The server is live at once, and ready when all are loaded. Raises
        ConfigurationError if it cannot listen on a port, and errors of loading, after stopping the server."""
        listening: Future[None] = Future()
        self._thread = Thread(target=self._run, args=[listening], name="onert-serve", daemon=True)
        self._thread.start()
        listening.result()
        try:
            self.repository.load_all()
        except BaseException:
            self.stop()
            raise
        self.service.is_ready = True

    def stop(self) -> None:
        """Accept no more requests, finish those in progress, and shut down. May be called repeatedly."""
        self.service.is_ready = False
        loop, ending, thread = self._loop, self._ending, self._thread
        if loop is not None and ending is not None and not self._over.is_set():
            try:
                loop.call_soon_threadsafe(ending.set)
            except RuntimeError:  # the loop has just ended
                _LOGGER.debug("the server's loop has already ended")
        if thread is not None:
            thread.join()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the shutdown. Returns whether it happened in time."""
        return self._over.wait(timeout)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, listening: Future[None]) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve(listening))
        except BaseException as error:
            if listening.done():
                _LOGGER.exception("the server failed")
            else:
                listening.set_exception(error)
        finally:
            self._over.set()

    async def _serve(self, listening: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        http: _HttpServer | None = None
        calls: grpc.aio.Server | None = None
        bound = self._bound()
        room = ServeLimits(self.config)
        try:
            if self.config.grpc_port is not None:
                calls = rpc_server(self.service, room, self._ending)
                self.grpc_port = _bind_calls(calls, self.config)
                await calls.start()
            if bound is not None:
                self.http_port = bound.getsockname()[1]
                http = _HttpServer(_uvicorn(self.service, room), bound)
                await http.begin()
        except BaseException:
            if bound is not None:
                bound.close()
            raise
        listening.set_result(None)
        await self._ending.wait()
        await self._end(http, calls)

    async def _end(self, http: _HttpServer | None, calls: grpc.aio.Server | None) -> None:
        """Finish accepted requests within `drain_timeout`, and shut down."""
        seconds = self.config.drain_timeout
        if http is not None:
            http.refuse()
        stopping = asyncio.ensure_future(calls.stop(seconds)) if calls is not None else None
        try:
            async with asyncio.timeout(seconds):
                while self.service.under_way:
                    await asyncio.sleep(_LOOK)
        except TimeoutError:
            _LOGGER.warning("%d inferences were not answered within %g s", self.service.under_way, seconds)
        if http is not None:
            await http.end()
        if stopping is not None:
            await stopping

    def _bound(self) -> socket.socket | None:
        """The bound socket for HTTP; None if HTTP is disabled."""
        if self.config.http_port is None:
            return None
        try:
            return socket.create_server(
                (self.config.host, self.config.http_port),
                family=socket.AF_INET6 if ":" in self.config.host else socket.AF_INET,
                backlog=_BACKLOG,
            )
        except OSError as error:
            raise ConfigurationError(
                f"HTTP cannot be served on {self.config.host}:{self.config.http_port}: {error.strerror or error}"
            ) from error


def _bind_calls(calls: grpc.aio.Server, config: ServeConfig) -> int:
    host = f"[{config.host}]" if ":" in config.host else config.host
    try:
        port: int = calls.add_insecure_port(f"{host}:{config.grpc_port}")
    except RuntimeError as error:
        raise ConfigurationError(f"gRPC cannot be served on {config.host}:{config.grpc_port}: {error}") from error
    return port


def _uvicorn(service: Service, room: ServeLimits) -> uvicorn.Config:
    config = room.limits
    protocol: Any = partial(Connection, room)
    return uvicorn.Config(
        application(service, room),
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=max(1, round(config.keep_alive)),
        timeout_graceful_shutdown=1,
    )


class _HttpServer:
    """uvicorn's server without its signal handling, which is left to the application."""

    def __init__(self, config: uvicorn.Config, bound: socket.socket) -> None:
        config.load()
        self._bound = bound
        self._server = uvicorn.Server(config)
        self._ticking: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        await self._server.startup([self._bound])
        self._ticking = asyncio.create_task(self._server.main_loop())

    def refuse(self) -> None:
        """Accept no more connections, and close idle ones."""
        for server in self._server.servers:
            server.close()
        for connection in tuple(self._server.server_state.connections):
            connection.shutdown()

    async def end(self) -> None:
        """Close the remaining connections and stop."""
        self._server.should_exit = True
        if self._ticking is not None:
            await self._ticking
        await self._server.shutdown([self._bound])
