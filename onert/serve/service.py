"""The operations of the protocol, independent of HTTP and gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from http import HTTPStatus
from time import time
from typing import Any

import onert
from onert.backend import TensorInfo
from onert.host import HostManager, NetworkStatistics

from .configuration import configuration
from .datatypes import dimensions, name_of
from .errors import ServeError, bad
from .inference import InferenceRequest, InferenceResponse, parse_parameters
from .repository import READY, Repository

NAME = "onert"
PLATFORM = "onert"
VERSION = "1"
"""The version of every model; the repository has only one of each."""
EXTENSIONS = (
    "binary_tensor_data",
    "model_configuration",
    "model_repository",
    "model_repository(unload_dependents)",
    "parameters",
    "schedule_policy",
    "sequence",
    "statistics",
)
_LEND = 100e-6
"""Runs of up to this many seconds stay on the event loop, because handing them to a device's thread takes as long."""
_LEND_ALONE = 2e-3
"""The same if there is only one connection: it blocks no other client, except one that is just connecting."""
_LOGGER = logging.getLogger("onert.serve")


class Service:
    """The protocol's operations on a host and a repository."""

    def __init__(self, host: HostManager, repository: Repository, timeout: float) -> None:
        self.host = host
        self.repository = repository
        self._timeout = timeout
        self.is_ready = False
        """Whether requests are accepted: from the time when all models are loaded until the server shuts down."""
        self._last: dict[str, int] = {}
        """The time of each model's last answer, in milliseconds since 1970."""
        self.under_way = 0
        """The number of inferences in progress."""

    def metadata(self) -> dict[str, Any]:
        """The server's name, its version, and its extensions of the protocol."""
        return {"name": NAME, "version": onert.__version__, "extensions": list(EXTENSIONS)}

    def require(self, name: str, version: str = "") -> None:
        """Raises ServeError unless the model is ready and has this version."""
        self.repository.require_ready(name)
        if version not in ("", VERSION):
            raise ServeError(
                HTTPStatus.NOT_FOUND, f"the version of model {name!r} is {version[:100]!r}, expected {VERSION}"
            )

    def is_model_ready(self, name: str, version: str = "") -> bool:
        """Whether requests for a model are accepted."""
        return self.is_ready and self.repository.is_ready(name) and version in ("", VERSION)

    def model_metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """A model's inputs and outputs. Raises ServeError if it is not ready."""
        self.require(name, version)
        dag = self.host.get_network_dag(name)
        return {
            "name": name,
            "versions": [VERSION],
            "platform": PLATFORM,
            "inputs": [_described(info) for info, _ in dag.inputs],
            "outputs": [_described(info) for info, _ in dag.outputs],
        }

    def model_config(self, name: str, version: str = "") -> dict[str, Any]:
        """A model's configuration. Raises ServeError if it is not ready."""
        self.require(name, version)
        return {"name": name, "platform": PLATFORM, "backend": NAME, **configuration(self.host, name, int(VERSION))}

    def statistics(self, name: str = "", version: str = "") -> list[dict[str, Any]]:
        """The statistics of one model, or of all."""
        if name:
            self.require(name, version)
        found = self.host.statistics().networks
        return [_counted(each, found[each], self._last.get(each, 0)) for each in found if name in ("", each)]

    def index(self, *, ready: bool = False) -> list[dict[str, str]]:
        """All models and their states; with `ready`, only those that are ready."""
        return [
            {"name": each.name, "version": VERSION, "state": each.state, "reason": each.reason}
            for each in self.repository.index()
            if each.state == READY or not ready
        ]

    @contextmanager
    def accepted(self) -> Iterator[None]:
        """Count an inference as in progress, from its arrival on. Raises ServeError unless the server is ready."""
        if not self.is_ready:
            raise ServeError(HTTPStatus.SERVICE_UNAVAILABLE, "the server is starting or shutting down")
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1

    async def infer(
        self, name: str, version: str, asked: InferenceRequest, *, alone: bool = False
    ) -> InferenceResponse:
        """Run an inference. `alone`: there is no other connection of the same kind. Raises errors of the host, and
        ServeError if the inputs or outputs do not match the model."""
        self.require(name, version)
        wanted = parse_parameters(asked.parameters)
        if wanted.begins and wanted.sequence is not None:
            self.host.end_sequence(name, wanted.sequence)
        dag = self.host.get_network_dag(name)
        infos = [info for info, _ in dag.outputs]
        chosen = _chosen(name, infos, asked.outputs)
        timeout = min(self._timeout, wanted.timeout or self._timeout)
        lend = _LEND_ALONE if alone and self.under_way == 1 else _LEND
        future = self.host.run_network(
            name, asked.inputs, priority=wanted.priority, timeout=timeout, sequence=wanted.sequence, lend=lend
        )
        outputs = future.result() if future.done() else await _result(future)
        if wanted.ends and wanted.sequence is not None:
            self.host.end_sequence(name, wanted.sequence)
        self._last[name] = round(time() * 1000)
        return InferenceResponse(
            name, VERSION, asked.id, tuple((info.name, name_of(info.dtype), outputs[info.name]) for info in chosen)
        )


async def _result(future: Future[Any]) -> Any:
    """Wait for a future of the host, which is completed by a device's thread."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not waiting.done():
            waiting.set_result(None)

    def done(_: Future[Any]) -> None:
        try:
            loop.call_soon_threadsafe(wake)
        except RuntimeError:  # the loop has ended
            _LOGGER.info("an answer came after the server's end")

    future.add_done_callback(done)
    try:
        await waiting
    except asyncio.CancelledError:
        future.cancel()
        raise
    return future.result()


def _described(info: TensorInfo) -> dict[str, Any]:
    return {"name": info.name, "datatype": name_of(info.dtype), "shape": dimensions(info)}


def _chosen(name: str, infos: Sequence[TensorInfo], wanted: Sequence[str]) -> list[TensorInfo]:
    if not wanted:
        return list(infos)
    by_name = {info.name: info for info in infos}
    for each in wanted:
        if each not in by_name:
            raise bad(f"model {name!r} has no output {each[:200]!r}, expected {', '.join(map(repr, by_name))}")
    if len(set(wanted)) < len(wanted):
        raise bad(f"model {name!r}: an output is requested twice")
    return [by_name[each] for each in wanted]


def _counted(name: str, counted: NetworkStatistics, last: int) -> dict[str, Any]:
    return {
        "name": name,
        "version": VERSION,
        "last_inference": last,
        "inference_count": counted.requests_succeeded,
        "execution_count": counted.requests_processed,
        "inference_stats": {
            "success": {
                "count": counted.requests_succeeded,
                "ns": round(counted.latency_mean * counted.requests_succeeded * 1e9),
            },
            "fail": {"count": counted.requests_failed + counted.requests_refused, "ns": 0},
        },
    }
