"""`onert_serve`: serve models over HTTP and gRPC in the Open Inference Protocol."""

from __future__ import annotations

import argparse
import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from onert import __version__, serve
from onert.host import BatchConfig, ConfigurationError, HostConfig, HostManager, load_devices
from onert.serve import ServeConfig
from onert.serve.repository import Loading

from .exits import ended
from .options import option

_MEBI = 1 << 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 after a signal to stop, 1 if a model cannot be loaded or a port not opened, 2 for wrong usage."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="onert_serve: %(message)s")
    return ended("onert_serve", partial(_serve, options))


def _serve(options: argparse.Namespace) -> None:
    server_class = _server_class()
    models = named_models(options.models)
    if not models and options.repository is None:
        raise ConfigurationError("there is nothing to serve: give a MODEL, or a folder with --repository")
    if options.repository is not None and not options.repository.is_dir():
        raise ConfigurationError(f"--repository is {options.repository}, expected a folder")
    devices = load_devices(options.devices) if options.devices is not None else None
    host_config = HostConfig(max_active_requests=options.max_active, max_queue_size=options.max_queue)
    batch = BatchConfig(options.batch, options.batch_delay / 1000) if options.batch > 1 else None
    with told_to_end() as wait, HostManager(devices, host_config) as host:
        loading = Loading(copies=options.copies or None, parts=options.parts, batch=batch)
        server = server_class(host, models, _config(options), folder=options.repository, loading=loading)
        with server:
            _announce(server, options.host)
            wait()
            print("shutting down: requests in progress are completed", flush=True)


def _server_class() -> type[serve.Server]:
    """`onert.serve.Server`. Raises ConfigurationError if a package of the extra `serve` is missing."""
    try:
        return serve.Server
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"serving needs {error.name}; pip install 'onert-toolkit[serve]'") from error


@contextmanager
def told_to_end() -> Iterator[Callable[[], object]]:
    """A function that waits for SIGINT or SIGTERM, whenever and in whichever thread the signal arrives.

    Each signal writes a byte to a pipe. Waiting for a lock instead could miss a signal that arrives just before.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    others = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    before = signal.set_wakeup_fd(writer)
    try:
        yield partial(os.read, reader, 1)
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in others.items():
            signal.signal(number, handler)
        os.close(writer)
        os.close(reader)


def _announce(server: serve.Server, host: str) -> None:
    for name in server.service.host.networks:
        print(f"model {name}", flush=True)
    shown = f"[{host}]" if ":" in host else host
    if server.http_port is not None:
        print(f"HTTP http://{shown}:{server.http_port}", flush=True)
    if server.grpc_port is not None:
        print(f"gRPC {shown}:{server.grpc_port}", flush=True)


def named_models(given: Sequence[str]) -> dict[str, Path]:
    """Models by name: `NAME=PATH`, or a path whose stem is the name. Raises ConfigurationError if two models have the
    same name or a path does not exist."""
    found: dict[str, Path] = {}
    for each in given:
        name, equals, rest = each.partition("=")
        is_named = equals and "/" not in name
        place = Path(rest if is_named else each)
        name = name if is_named else place.resolve().stem
        if name in found:
            raise ConfigurationError(f"two models are called {name!r}: {found[name]} and {place}; write NAME=PATH")
        if not place.exists():
            raise ConfigurationError(f"the model {place} does not exist")
        found[name] = place
    return found


def _config(options: argparse.Namespace) -> ServeConfig:
    return ServeConfig(
        host=options.host,
        http_port=None if options.http_port < 0 else options.http_port,
        grpc_port=None if options.grpc_port < 0 else options.grpc_port,
        max_body=options.max_body * _MEBI,
        max_json=min(ServeConfig().max_json, options.max_body * _MEBI),
        max_buffered=max(ServeConfig().max_buffered, options.max_body * _MEBI),
        max_connections=options.max_connections,
        request_timeout=options.timeout,
        drain_timeout=options.drain,
    )


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        prog="onert_serve",
        description="Serve models over HTTP and gRPC in the Open Inference Protocol. The page at / shows them at work.",
    )
    option(
        out,
        "models MODEL",
        "a model or package; its name is the file name without extension, or use NAME=PATH",
        nargs="*",
    )
    out.add_argument("--version", action="version", version=f"onert {__version__}")
    option(out, "--devices FILE", "devices in TOML (default: one device with all processors)", type=Path)
    option(out, "--repository FOLDER", "a folder of models that clients may load by name", type=Path)
    where = out.add_argument_group("addresses")
    option(where, "--host ADDRESS", "address to listen on (default 127.0.0.1: this machine only)", default="127.0.0.1")
    option(where, "--http-port N", "port of HTTP (default 8000); 0: any free port; -1: no HTTP", type=int, default=8000)
    option(where, "--grpc-port N", "port of gRPC (default 8001); 0: any free port; -1: no gRPC", type=int, default=8001)
    runs = out.add_argument_group("runs")
    option(runs, "--copies N", "number of devices for each model (default 1); 0: all", type=int, default=1)
    option(runs, "--parts N", "number of parts that each model is divided into", type=int)
    option(runs, "--batch N", "how many requests may run together (default 1)", type=int, default=1)
    option(runs, "--batch-delay MS", "how long a request waits for others (default 0)", type=float, default=0.0)
    limits = out.add_argument_group("limits")
    option(limits, "--max-queue N", "waiting requests (default 100)", type=int, default=100)
    option(limits, "--max-active N", "running requests (default 48)", type=int, default=48)
    option(limits, "--max-body MIB", "size of a request in MiB (default 64)", type=int, default=64)
    option(limits, "--max-connections N", "open connections (default 256)", type=int, default=256)
    option(limits, "--timeout S", "time limit of a request in seconds (default 60)", type=float, default=60.0)
    option(
        limits, "--drain S", "how long shutdown waits for requests in seconds (default 30)", type=float, default=30.0
    )
    return out
