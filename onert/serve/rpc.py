"""The protocol over gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import grpc
from google.protobuf.json_format import ParseDict

from onert.ir import OnertError

from .errors import bad, status_of
from .protocol import proto_form
from .protocol.messages import SERVICE, message
from .room import Room
from .service import Service
from .stream import Stream

_LOGGER = logging.getLogger("onert.serve")
_CODES = {
    HTTPStatus.BAD_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
    HTTPStatus.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    HTTPStatus.CONFLICT: grpc.StatusCode.FAILED_PRECONDITION,
    HTTPStatus.SERVICE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
}
_LARGE = 1 << 16
"""Bytes of numbers above which a thread reads them, while others are served."""
_MOST_TOLD = 4000
"""Characters of an error: more do not fit into gRPC's trailers."""
Method = Callable[[Any], Awaitable[Any]]


def rpc_server(service: Service, room: Room, ending: asyncio.Event) -> grpc.aio.Server:
    """A server with the protocol's methods, not started; to be made where its event loop runs. Streams end when it is
    `ending`."""
    limits = room.limits
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", limits.max_body),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", limits.max_header),
            ("grpc.so_reuseport", 0),
            ("grpc.max_connection_idle_ms", round(limits.keep_alive * 1000)),
        ],
        maximum_concurrent_rpcs=limits.max_connections,
    )
    methods = Methods(service, room)
    handlers = {}
    for method in SERVICE.methods:
        forms = {
            "request_deserializer": message(method.input_type.name).FromString,
            "response_serializer": message(method.output_type.name).SerializeToString,
        }
        if method.server_streaming:

            async def stream(requests: Any, context: Any) -> None:
                await Stream(methods.ModelInfer, limits, ending).serve(requests, context)

            handlers[method.name] = grpc.stream_stream_rpc_method_handler(stream, **forms)
        else:
            answer = _answering(getattr(methods, method.name))
            handlers[method.name] = grpc.unary_unary_rpc_method_handler(answer, **forms)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, handlers),))
    return server


def _answering(method: Method) -> Callable[[Any, Any], Awaitable[Any]]:
    """What gRPC calls: errors become its own."""

    async def answer(request: Any, context: Any) -> Any:
        try:
            return await method(request)
        except OnertError as error:
            code = _CODES.get(status_of(error), grpc.StatusCode.INTERNAL)
            await context.abort(code, str(error)[:_MOST_TOLD])
        except Exception:
            _LOGGER.exception("a call over gRPC failed")
            await context.abort(grpc.StatusCode.INTERNAL, "the server failed; its log says how")

    return answer


class Methods:
    """The protocol's methods, by its own names."""

    def __init__(self, service: Service, room: Room) -> None:
        self._service = service
        self._room = room

    async def ServerLive(self, request: Any) -> Any:  # noqa: N802
        return message("ServerLiveResponse")(live=True)

    async def ServerReady(self, request: Any) -> Any:  # noqa: N802
        return message("ServerReadyResponse")(ready=self._service.is_ready)

    async def ServerMetadata(self, request: Any) -> Any:  # noqa: N802
        return message("ServerMetadataResponse")(**self._service.metadata())

    async def ModelReady(self, request: Any) -> Any:  # noqa: N802
        return message("ModelReadyResponse")(ready=self._service.is_model_ready(request.name, request.version))

    async def ModelMetadata(self, request: Any) -> Any:  # noqa: N802
        return ParseDict(
            self._service.model_metadata(request.name, request.version), message("ModelMetadataResponse")()
        )

    async def ModelConfig(self, request: Any) -> Any:  # noqa: N802
        found = self._service.model_config(request.name, request.version)
        return ParseDict({"config": found}, message("ModelConfigResponse")())

    async def ModelInfer(self, request: Any) -> Any:  # noqa: N802
        nbytes = request.ByteSize()
        self._room.take(nbytes)
        try:
            with self._service.accepted():
                if nbytes > _LARGE and not request.raw_input_contents:
                    asked, raw = await asyncio.to_thread(proto_form.read, request)
                else:
                    asked, raw = proto_form.read(request)
                answer = await self._service.infer(request.model_name, request.model_version, asked)
                return proto_form.written(answer, raw=raw)
        finally:
            self._room.free(nbytes)

    async def ModelStatistics(self, request: Any) -> Any:  # noqa: N802
        found = self._service.statistics(request.name, request.version)
        return ParseDict({"model_stats": found}, message("ModelStatisticsResponse")())

    async def RepositoryIndex(self, request: Any) -> Any:  # noqa: N802
        found = await asyncio.to_thread(self._service.index, ready=request.ready)
        return ParseDict({"models": found}, message("RepositoryIndexResponse")())

    async def RepositoryModelLoad(self, request: Any) -> Any:  # noqa: N802
        _require_no_files(request.parameters)
        await asyncio.to_thread(self._service.repository.load, request.model_name)
        return message("RepositoryModelLoadResponse")()

    async def RepositoryModelUnload(self, request: Any) -> Any:  # noqa: N802
        _require_no_files(request.parameters)
        await asyncio.to_thread(self._service.repository.unload, request.model_name)
        return message("RepositoryModelUnloadResponse")()


def _require_no_files(parameters: Mapping[str, Any]) -> None:
    """Models come from the server's folder alone, with its own settings."""
    if set(parameters) - {"unload_dependents"}:
        raise bad("parameters are not taken: models are loaded from the server's repository as they are")
