"""Streams of inferences over gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from functools import partial
from typing import Any

import grpc

from onert.ir import OnertError

from .protocol import proto_form
from .serve_config import ServeConfig

_LOGGER = logging.getLogger("onert.serve")
_MOST = 64
"""The most requests of a stream in progress; no more are read until the first of them is answered."""
_MOST_TOLD = 4000
"""The most characters of an error message."""
Infer = Callable[[Any], Awaitable[Any]]


class Stream:
    """The requests of one call. They run concurrently (those of a sequence in order) and are answered in order.

    The error of a failed request is its answer, and the stream continues. The stream ends when the client has finished
    and everything is answered; with DEADLINE_EXCEEDED when no request arrives for `keep_alive` seconds or an answer is
    not read within `body_timeout`; and with UNAVAILABLE when the server shuts down, after answering what it has read.
    """

    def __init__(self, infer: Infer, limits: ServeConfig, ending: asyncio.Event) -> None:
        self._infer = infer
        self._limits = limits
        self._ending = ending
        self._answers: asyncio.Queue[asyncio.Task[Any] | None] = asyncio.Queue(_MOST)
        self._under_way: set[asyncio.Task[Any]] = set()
        self._last: dict[Hashable, asyncio.Task[Any]] = {}
        """The last request of each sequence, while it is in progress."""
        self._end: tuple[grpc.StatusCode, str] | None = None

    async def serve(self, requests: AsyncIterator[Any], context: Any) -> None:
        """Serve the stream until it ends."""
        reading = asyncio.create_task(self._read(requests))
        try:
            while (answer := await self._answers.get()) is not None:
                found = await answer
                try:
                    async with asyncio.timeout(self._limits.body_timeout):
                        await context.write(found)
                except TimeoutError:
                    self._end = grpc.StatusCode.DEADLINE_EXCEEDED, "answers were not read"
                    break
        finally:
            for task in (reading, *self._under_way):
                task.cancel()
        if self._end is not None:
            await context.abort(*self._end)

    async def _read(self, requests: AsyncIterator[Any]) -> None:
        """Read requests and start each of them on arrival."""
        ending = asyncio.create_task(self._ending.wait())
        try:
            while (request := await self._next(requests, ending)) is not None:
                sequence = proto_form.sequence_of(request)
                task = asyncio.create_task(self._answer(request, self._last.get(sequence)))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
                if sequence is not None:
                    self._last[sequence] = task
                    task.add_done_callback(partial(self._forget, sequence))
                await self._answers.put(task)
        except Exception:
            _LOGGER.exception("a stream failed")
            self._end = grpc.StatusCode.INTERNAL, "internal error; see the server's log"
        finally:
            ending.cancel()
        await self._answers.put(None)

    def _forget(self, sequence: Hashable, task: asyncio.Task[Any]) -> None:
        if self._last.get(sequence) is task:
            del self._last[sequence]

    async def _next(self, requests: AsyncIterator[Any], ending: asyncio.Task[Any]) -> Any:
        """The next request; None if the client has finished, or if the stream ends for another reason (`_end`)."""
        coming = asyncio.ensure_future(anext(requests, None))
        seconds = self._limits.keep_alive
        try:
            while True:
                done, _ = await asyncio.wait((coming, ending), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                if coming in done:
                    return coming.result()
                if ending in done:
                    self._end = grpc.StatusCode.UNAVAILABLE, "the server is shutting down"
                    return None
                if not self._under_way:
                    self._end = grpc.StatusCode.DEADLINE_EXCEEDED, f"no request arrived within {seconds:g} seconds"
                    return None
        finally:
            coming.cancel()

    async def _answer(self, request: Any, before: asyncio.Task[Any] | None) -> Any:
        """The answer to a request, which runs after the previous one in its sequence."""
        if before is not None:
            await asyncio.wait((before,))
        try:
            return proto_form.streamed(await self._infer(request))
        except OnertError as error:
            return proto_form.failed(request, str(error)[:_MOST_TOLD])
        except Exception:
            _LOGGER.exception("a request of a stream failed")
            return proto_form.failed(request, "internal error; see the server's log")
