"""HTTP requests over a raw socket, and a valid inference request."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

import numpy as np
from patience import PATIENCE

IMAGE = "serving_default_image:0"
SCORES = "StatefulPartitionedCall_1:0"
X = (np.arange(64, dtype=np.int8) - 32).reshape(1, 8, 8, 1)
INFER = "/v2/models/digits/infer"


def exchange(port: int, data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes on a new connection; returns the response's status, headers and body."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as end:
        end.sendall(data)
        return answer(end)


def answer(end: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Read the next response on a connection: status, headers and body."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += _some(end)
    head, _, body = found.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers["content-length"]):
        body += _some(end)
    return int(first.split()[1]), headers, body


def _some(end: socket.socket) -> bytes:
    found = end.recv(1 << 16)
    assert found, "the server said nothing"
    return found


def request(method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """The bytes of an HTTP request."""
    all_headers = {"host": "localhost", "content-length": str(len(body)), **(headers or {})}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in all_headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def right(**more: Any) -> dict[str, Any]:
    """A valid inference request as JSON; keyword arguments replace fields of its input."""
    given = {"name": IMAGE, "shape": list(X.shape), "datatype": "INT8", "data": X.ravel().tolist()}
    return {"inputs": [{**given, **more}]}


def ask(port: int, method: str, path: str, document: Any = None) -> tuple[int, Any]:
    """Send a JSON request; returns the response's status and JSON."""
    body = b"" if document is None else json.dumps(document).encode()
    status, _, found = exchange(port, request(method, path, body))
    return status, json.loads(found)
