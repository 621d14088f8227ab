"""The served report page: which requests it accepts and how it answers them."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from chromium import PROGRAM, REASON, Chromium
from patience import PATIENCE
from report_models import MACHINE
from shared_material import REPOSITORY

from onert import frontend
from onert.compiler import Options
from onert.tools.model_report.compare import Side
from onert.tools.model_report.live import ADDRESS, ReportSession, server

ASKED = {"executor": "Linear", "num_threads": 1, "backends": "reference", "optimize": True, "profile": False}


class Served:
    """A running server of a report, and requests to it."""

    def __init__(self, room: ReportSession, port: int, model: Path) -> None:
        self.room, self.port, self.model = room, port, model

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def report(self, **asked: Any) -> dict[str, Any]:
        body = json.dumps({**ASKED, **asked}).encode()
        status, said = self.ask("POST", f"{self.room.path}report", body, {"Content-Type": "application/json"})
        assert status == 200
        return dict(json.loads(said))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    model = tmp_path_factory.mktemp("live") / "model.tflite"
    shutil.copy(REPOSITORY / "nnpackage" / "examples" / "digits_float" / "digits_float.tflite", model)
    room = ReportSession([Side(model, frontend.load(model), Options(num_threads=1))], profile=False)
    with pytest.MonkeyPatch.context() as patch, server(room, 0) as listening:
        patch.setattr("onert.tools.model_report.report.machine", lambda threads: MACHINE)
        patch.setattr("onert.tools.model_report.times.running.SECONDS", 0.0)
        thread = Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield Served(room, listening.server_address[1], model)
        listening.shutdown()
        thread.join()


def test_the_page_is_served_under_a_secret_path(served: Served) -> None:
    status, page = served.ask("GET", served.room.path)
    assert status == 200
    assert "connect-src 'self'" in page
    assert served.ask("GET", "/")[0] == 404
    assert served.ask("GET", "/../../etc/passwd")[0] == 404
    assert served.room.secret not in served.ask("GET", "/page")[1]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "attacker.example:80"},
        {"Host": f"{ADDRESS}:1"},
        {"Host": ""},
        {"Origin": "https://attacker.example"},
        {"Origin": "null"},
    ],
    ids=lambda headers: " ".join(f"{k} {v}" for k, v in headers.items()),
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_requests_from_other_origins_are_refused(served: Served, method: str, headers: dict[str, str]) -> None:
    assert served.ask(method, served.room.path, headers=headers)[0] == 403


@pytest.mark.parametrize(
    ("body", "kind", "length", "status"),
    [
        (b"{}", "text/plain", None, 404),
        (b"{}", "application/x-www-form-urlencoded", None, 404),
        (b"{", "application/json", None, 400),
        (b"[" * 60_000, "application/json", None, 400),
        (b"\xff", "application/json", None, 400),
        (b"", "application/json", "100000", 413),
        (b"", "application/json", "-1", 413),
        (b"", "application/json", "many", 413),
    ],
)
def test_invalid_requests_are_refused(served: Served, body: bytes, kind: str, length: str | None, status: int) -> None:
    headers = {"Content-Type": kind} | ({} if length is None else {"Content-Length": length})
    assert served.ask("POST", f"{served.room.path}report", body, headers)[0] == status


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"executor": "Quantum"}, "executor"),
        ({"num_threads": 0}, "num_threads"),
        ({"num_threads": True}, "the request is invalid"),
        ({"num_threads": "2"}, "the request is invalid"),
        ({"backends": ["llvm"]}, "the request is invalid"),
        ({"backends": "gpu"}, "no backend is called 'gpu'"),
    ],
)
def test_invalid_options_are_reported(served: Served, asked: dict[str, Any], says: str) -> None:
    assert says in served.report(**asked)["error"]


def test_other_options_give_another_report(served: Served) -> None:
    for names in ("reference", "llvm"):
        (found,) = served.report(backends=names)["reports"]
        assert [b["name"] for b in found["facts"]["runs"]["backends"]] == [names]


def test_a_changed_model_file_is_noticed(served: Served) -> None:
    _, before = served.ask("GET", f"{served.room.path}changed")
    assert served.ask("GET", f"{served.room.path}changed")[1] == before
    os.utime(served.model, ns=(1, 1))
    assert served.ask("GET", f"{served.room.path}changed")[1] != before


@pytest.mark.skipif(PROGRAM is None, reason=REASON)
def test_the_page_can_measure_again(served: Served, tmp_path: Path) -> None:
    with Chromium(tmp_path) as browser:
        browser.open(f"http://{ADDRESS}:{served.port}{served.room.path}")
        assert "Measure" in browser.run("document.getElementById('live').innerText")
        browser.run("[...document.querySelectorAll('#live button')].find((b) => b.textContent === 'Measure').click()")
        browser.wait("state.reports[0].profile && state.reports[0].profile.median_us > 0")
        assert browser.errors == []


def test_an_interrupt_ends_the_server() -> None:
    model = REPOSITORY / "nnpackage" / "examples" / "digits_float"
    command = [sys.executable, "-m", "onert.tools.inspect", str(model), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(f"http://{ADDRESS}:")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert (out, err, process.returncode) == ("", "", 130)
