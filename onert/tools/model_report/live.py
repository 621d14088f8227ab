"""The page from a server of this process, for this machine alone: other options, another run, a file that changes.

Only loopback addresses are listened on. A request for another host's name (a name that somebody's server resolves to
this machine), of another site's page, or under another path than the secret one that is announced, is refused.
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
"""Of a request."""
PATIENCE = 10
"""Seconds that a connection may take to send one."""
_OPTIONS = {"executor": str, "num_threads": int, "backends": str, "optimize": bool}


class Room:
    """What the server shows: reports of its sides, with options that the page chooses; one at a time."""

    def __init__(self, sides: Sequence[Side], *, profile: bool) -> None:
        self._sides = list(sides)
        self._profile = profile
        self._lock = Lock()
        self.secret = secrets.token_urlsafe(12)

    @property
    def path(self) -> str:
        """Where the page lies."""
        return f"/{self.secret}/"

    def page(self) -> str:
        with self._lock:
            return document(reports(self._sides, profile=self._profile, graphs=True), live=self.path)

    def changed(self) -> str:
        """Something that differs when one of the models' files has changed."""
        states = [_state(side.path) for side in self._sides]
        return sha256(repr(states).encode()).hexdigest()[:16]

    def report(self, asked: object) -> dict[str, Any]:
        """Reports with the options that the page asks for; the files are read again. A sentence where that fails."""
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
            continue  # it is being replaced
        found.append((str(each), state.st_size, state.st_mtime_ns))
    return found


def _again(side: Side, chosen: dict[str, Any]) -> Side:
    return evolve(side, package=frontend.load(side.path), options=side.options.choose(**chosen))


def _read(asked: object) -> tuple[dict[str, Any], bool]:
    """The options in a request, and whether it asks for a run; ExecutionError for anything else."""
    if not isinstance(asked, dict) or not all(type(asked.get(name)) is kind for name, kind in _OPTIONS.items()):
        raise ExecutionError(f"a request has {', '.join(_OPTIONS)}, and nothing else")
    chosen = {name: asked[name] for name in _OPTIONS}
    chosen["backends"] = tuple(name.strip() for name in asked["backends"].split(";") if name.strip())
    Options(**chosen)  # says what is wrong with it
    return chosen, asked.get("profile") is True


class _Answers(BaseHTTPRequestHandler):
    timeout = PATIENCE
    server_version, sys_version = "onert", ""
    room: Room

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
            self._json(404, {"error": "there is nothing here"})

    def do_POST(self) -> None:
        if self._refused():
            return
        length = self.headers.get("Content-Length", "")
        if self.path != f"{self.room.path}report" or self.headers.get("Content-Type") != "application/json":
            self._json(404, {"error": "there is nothing here"})
        elif not length.isdecimal() or len(length) > 6 or int(length) > MOST_BYTES:
            self._json(413, {"error": "the request is too long"})
        else:
            try:
                asked = json.loads(self.rfile.read(int(length)))
            except (ValueError, RecursionError):
                self._json(400, {"error": "the request is no JSON"})
                return
            self._json(200, self.room.report(asked))

    def _refused(self) -> bool:
        """Whether a request is another site's, or for another host, and was told so."""
        port = self.connection.getsockname()[1]
        own = {f"{name}:{port}" for name in (ADDRESS, "localhost")}
        origin = self.headers.get("Origin")
        wrong = self.headers.get("Host") not in own
        if wrong or (origin is not None and origin not in {f"http://{name}" for name in own}):
            self._json(403, {"error": "this is served to this machine's own pages alone"})
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
        """Nothing: what goes wrong is said in the page."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a browser that leaves early is no error of the server's."""


def server(room: Room, port: int) -> ThreadingHTTPServer:
    """A server of the room's page on this machine; port 0 is any that is free. ExecutionError where there is none."""
    try:
        return _Server((ADDRESS, port), type("Answers", (_Answers,), {"room": room}))
    except OSError as error:
        raise ExecutionError(f"port {port} cannot be listened on: {error.strerror or error}") from error


def serve(sides: Sequence[Side], *, port: int, profile: bool) -> None:
    """Serve until interrupted."""
    room = Room(sides, profile=profile)
    with server(room, port) as listening:
        print(f"http://{ADDRESS}:{listening.server_address[1]}{room.path} (end with Ctrl-C)", flush=True)
        listening.serve_forever()
