"""`ServeConfig`: addresses and limits of a server."""

from __future__ import annotations

from typing import Any

from attrs import Attribute, field, frozen

from onert.host import ConfigurationError
from onert.ir.value import Value


def _port(config: object, attribute: Attribute[Any], value: int | None) -> None:
    if value is not None and not 0 <= value < 1 << 16:
        raise ConfigurationError(f"{attribute.name} is {value}, expected 0 to 65535")


def _positive(config: object, attribute: Attribute[Any], value: float) -> None:
    if not value > 0:
        raise ConfigurationError(f"{attribute.name} is {value}, expected more than 0")


@frozen
class ServeConfig(Value):
    """Addresses and limits of a server.

    - `host`: the address to listen on; by default only this machine can connect
    - `http_port`, `grpc_port`: 0 picks a free port, None disables this interface
    - `max_body`: bytes of a request, before and after decompression
    - `max_json`: bytes of its JSON, which needs thirty times as much memory when parsed
    - `max_buffered`: bytes of all requests in progress
    - `max_header`: bytes of a request's request line and headers
    - `max_connections`: concurrent HTTP connections, and concurrent gRPC calls
    - `header_timeout`, `body_timeout`: seconds in which headers and body must arrive
    - `keep_alive`: seconds that a connection without a request stays open
    - `request_timeout`: time limit in seconds of a request without a shorter one of its own
    - `drain_timeout`: seconds that shutdown waits for requests in progress, and unloading for those of a model
    """

    host: str = "127.0.0.1"
    http_port: int | None = field(default=8000, validator=_port)
    grpc_port: int | None = field(default=8001, validator=_port)
    max_body: int = field(default=64 << 20, validator=_positive)
    max_json: int = field(default=16 << 20, validator=_positive)
    max_buffered: int = field(default=512 << 20, validator=_positive)
    max_header: int = field(default=64 << 10, validator=_positive)
    max_connections: int = field(default=256, validator=_positive)
    header_timeout: float = field(default=10.0, validator=_positive)
    body_timeout: float = field(default=60.0, validator=_positive)
    keep_alive: float = field(default=60.0, validator=_positive)
    request_timeout: float = field(default=60.0, validator=_positive)
    drain_timeout: float = field(default=30.0, validator=_positive)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")
