"""The protocol over gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import grpc
from google.protobuf.json_format import ParseDict

from onert.ir import OnertError

from .errors import bad, status_of
from .protocol import proto_form
from .protocol.messages import SERVICE, message
from .room import ServeLimits
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
"""Requests with more bytes of numbers are parsed in a thread, so that others are served meanwhile."""
_MOST_TOLD = 4000
"""The most characters of an error message; more do not fit into gRPC's trailers."""
Method = Callable[[Any], Awaitable[Any]]


def rpc_server(service: Service, room: ServeLimits, ending: asyncio.Event) -> grpc.aio.Server:
    """A server with the protocol's methods, not yet started, for the running event loop. `ending` ends its streams."""
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
    infer = partial(_infer, service, room)
    handlers = {}
    for method in SERVICE.methods:
        forms = {
            "request_deserializer": message(method.input_type.name).FromString,
            "response_serializer": message(method.output_type.name).SerializeToString,
        }
        if method.server_streaming:

            async def stream(requests: Any, context: Any) -> None:
                await Stream(infer, limits, ending).serve(requests, context)

            handlers[method.name] = grpc.stream_stream_rpc_method_handler(stream, **forms)
        else:
            answer = _answering(infer if method.name == "ModelInfer" else partial(_told, service, method.name))
            handlers[method.name] = grpc.unary_unary_rpc_method_handler(answer, **forms)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, handlers),))
    return server


def _answering(method: Method) -> Callable[[Any, Any], Awaitable[Any]]:
    """A handler for gRPC, which converts errors to status codes."""

    async def answer(request: Any, context: Any) -> Any:
        try:
            return await method(request)
        except OnertError as error:
            code = _CODES.get(status_of(error), grpc.StatusCode.INTERNAL)
            await context.abort(code, str(error)[:_MOST_TOLD])
        except Exception:
            _LOGGER.exception("a call over gRPC failed")
            await context.abort(grpc.StatusCode.INTERNAL, "internal error; see the server's log")

    return answer


async def _infer(service: Service, room: ServeLimits, request: Any) -> Any:
    nbytes = request.ByteSize()
    room.take(nbytes)
    try:
        with service.accepted():
            if nbytes > _LARGE and not request.raw_input_contents:
                asked, raw = await asyncio.to_thread(proto_form.read, request)
            else:
                asked, raw = proto_form.read(request)
            answer = await service.infer(request.model_name, request.model_version, asked)
            return proto_form.written(answer, raw=raw)
    finally:
        room.free(nbytes)


async def _told(service: Service, name: str, request: Any) -> Any:
    """The answer of a method other than inference. Those of the repository may take long and run in a thread."""
    ask = _ANSWERS[name]
    slow = name.startswith("Repository")
    found = await asyncio.to_thread(ask, service, request) if slow else ask(service, request)
    return ParseDict(found, message(f"{name}Response")())


def _changed(change: Callable[[str], object], request: Any) -> dict[str, Any]:
    """Load or unload a model. Clients can provide neither files nor settings."""
    if set(request.parameters) - {"unload_dependents"}:
        raise bad("parameters are not supported: models are loaded from the server's repository as they are")
    change(request.model_name)
    return {}


_ANSWERS: Mapping[str, Callable[[Service, Any], dict[str, Any]]] = {
    "ServerLive": lambda service, request: {"live": True},
    "ServerReady": lambda service, request: {"ready": service.is_ready},
    "ServerMetadata": lambda service, request: service.metadata(),
    "ModelReady": lambda service, request: {"ready": service.is_model_ready(request.name, request.version)},
    "ModelMetadata": lambda service, request: service.model_metadata(request.name, request.version),
    "ModelConfig": lambda service, request: {"config": service.model_config(request.name, request.version)},
    "ModelStatistics": lambda service, request: {"model_stats": service.statistics(request.name, request.version)},
    "RepositoryIndex": lambda service, request: {"models": service.index(ready=request.ready)},
    "RepositoryModelLoad": lambda service, request: _changed(service.repository.load, request),
    "RepositoryModelUnload": lambda service, request: _changed(service.repository.unload, request),
}
"""The fields of each method's answer, by the protocol's names."""
