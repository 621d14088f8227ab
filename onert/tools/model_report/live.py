"""Serve the report's page to this machine, so that it can change options, measure again, and follow the model file.

The server listens only on the loopback address. It rejects requests for another host name (which a foreign DNS server
may resolve to this machine), from another site's page, or under a path other than the announced secret one.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from attrs import evolve

from onert import frontend
from onert.compiler import Options
from onert.ir import ExecutionError, OnertError

from .compare import Side, reports
from .document import document

ADDRESS = "127.0.0.1"
MOST_BYTES = 1 << 16
"""The most bytes of a request."""
PATIENCE = 10
"""Seconds that a connection may take to send a request."""
_OPTIONS = {"executor": str, "num_threads": int, "backends": str, "optimize": bool}


class ReportSession:
    """The reports that the server shows, with options chosen in the page. They are made one at a time."""

    def __init__(self, sides: Sequence[Side], *, profile: bool) -> None:
        self._sides = list(sides)
        self._profile = profile
        self._lock = Lock()
        self.secret = secrets.token_urlsafe(12)

    @property
    def path(self) -> str:
        """The path of the page."""
        return f"/{self.secret}/"

    def page(self) -> str:
        with self._lock:
            return document(reports(self._sides, profile=self._profile, graphs=True), live=self.path)

    def changed(self) -> str:
        """A digest that changes when one of the models' files changes."""
        states = [_state(side.path) for side in self._sides]
        return sha256(repr(states).encode()).hexdigest()[:16]

    def report(self, asked: object) -> dict[str, Any]:
        """Read the files again and report with the requested options. Returns an error message if that fails."""
        try:
            chosen, profile = _read(asked)
            with self._lock:
                seen = self.changed()
                self._sides = [_again(side, chosen if at == 0 else {}) for at, side in enumerate(self._sides)]
                found = reports(self._sides, profile=profile, graphs=True)
        except OnertError as error:
            return {"error": str(error)}
        return {"reports": found, "changed": seen}


def _state(path: Path) -> list[tuple[str, int, int]]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = []
    for each in files:
        try:
            state = each.stat()
        except OSError:
            continue  # the file is being replaced
        found.append((str(each), state.st_size, state.st_mtime_ns))
    return found


def _again(side: Side, chosen: dict[str, Any]) -> Side:
    package = frontend.load(side.path, input_shapes=side.options.input_shapes)
    return evolve(side, package=package, options=side.options.choose(**chosen))


def _read(asked: object) -> tuple[dict[str, Any], bool]:
    """The options in a request, and whether it wants a run. Raises ExecutionError for an invalid request."""
    if not isinstance(asked, dict) or not all(type(asked.get(name)) is kind for name, kind in _OPTIONS.items()):
        raise ExecutionError(f"the request is invalid, expected the fields {', '.join(_OPTIONS)} with their types")
    chosen = {name: asked[name] for name in _OPTIONS}
    chosen["backends"] = tuple(name.strip() for name in asked["backends"].split(";") if name.strip())
    Options(**chosen)  # raises an error for invalid values
    return chosen, asked.get("profile") is True


class _Answers(BaseHTTPRequestHandler):
    timeout = PATIENCE
    server_version, sys_version = "onert", ""
    room: ReportSession

    def do_GET(self) -> None:
        if self._refused():
            return
        if self.path == self.room.path:
            try:
                self._answer(200, self.room.page().encode(), "text/html; charset=utf-8")
            except OnertError as error:
                self._answer(500, str(error).encode(), "text/plain; charset=utf-8")
        elif self.path == f"{self.room.path}changed":
            self._json(200, {"changed": self.room.changed()})
        else:
            self._json(404, {"error": "not found"})

    def do_POST(self) -> None:
        if self._refused():
            return
        length = self.headers.get("Content-Length", "")
        if self.path != f"{self.room.path}report" or self.headers.get("Content-Type") != "application/json":
            self._json(404, {"error": "not found"})
        elif not length.isdecimal() or len(length) > 6 or int(length) > MOST_BYTES:
            self._json(413, {"error": "the request is too long"})
        else:
            try:
                asked = json.loads(self.rfile.read(int(length)))
            except (ValueError, RecursionError):
                self._json(400, {"error": "the request is not valid JSON"})
                return
            self._json(200, self.room.report(asked))

    def _refused(self) -> bool:
        """Reject a request from another site or for another host. Returns whether it was rejected."""
        port = self.connection.getsockname()[1]
        own = {f"{name}:{port}" for name in (ADDRESS, "localhost")}
        origin = self.headers.get("Origin")
        wrong = self.headers.get("Host") not in own
        if wrong or (origin is not None and origin not in {f"http://{name}" for name in own}):
            self._json(403, {"error": "only pages of this server may send requests to it"})
            return True
        return False

    def _json(self, status: int, told: object) -> None:
        self._answer(status, json.dumps(told, allow_nan=False).encode(), "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: errors are shown in the page."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors of connections, such as a browser that disconnects early."""


def server(room: ReportSession, port: int) -> ThreadingHTTPServer:
    """A server for the room's page on this machine; port 0 picks a free port. Raises ExecutionError if that fails."""
    try:
        return _Server((ADDRESS, port), type("Answers", (_Answers,), {"room": room}))
    except OSError as error:
        raise ExecutionError(f"cannot listen on port {port}: {error.strerror or error}") from error


def serve(sides: Sequence[Side], *, port: int, profile: bool) -> None:
    """Serve the page until interrupted."""
    room = ReportSession(sides, profile=profile)
    with server(room, port) as listening:
        print(f"http://{ADDRESS}:{listening.server_address[1]}{room.path} (stop with Ctrl-C)", flush=True)
        listening.serve_forever()
