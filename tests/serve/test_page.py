"""The status page in a browser."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from onert.serve import Server
from serve.browser import Browser, executable
from serve.http_requests import IMAGE, INFER, SCORES, ask, exchange, request


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Browser]:
    command = executable()
    if command is None:
        pytest.skip("there is no browser: chromium is not installed")
    with closing(Browser(command)) as opened:
        opened.tell("Page.navigate", url=f"http://127.0.0.1:{server.http_port}/")
        opened.wait("document.querySelector('#models tbody tr') !== null")
        yield opened


def cells(browser: Browser, table: str) -> list[str]:
    found: list[str] = browser.value(
        f"[...document.querySelectorAll('#{table} tbody tr:first-child td')].map(cell => cell.textContent)"
    )
    return found


def test_the_page_shows_models_and_devices(browser: Browser) -> None:
    assert browser.wait("document.getElementById('state').textContent === 'ready'")
    assert cells(browser, "models")[:3] == ["digits", "READY", "cpu0"]
    device = cells(browser, "devices")
    assert (device[0], device[1], device[4]) == ("cpu0", "cpu", "digits")
    assert browser.value("[...document.querySelectorAll('#model option')].map(o => o.value)") == ["digits"]


def test_the_page_updates_the_load(browser: Browser, server: Server) -> None:
    before = int(cells(browser, "models")[3])
    for _ in range(3):
        sent = {"inputs": [{"name": IMAGE, "shape": [1, 8, 8, 1], "datatype": "INT8", "data": [0] * 64}]}
        assert ask(server.http_port or 0, "POST", INFER, sent)[0] == 200
    row = "#models tbody tr:first-child td:nth-child(4)"
    assert browser.wait(f"Number(document.querySelector('{row}').textContent) >= {before + 3}")
    assert float(cells(browser, "models")[9]) > 0
    assert browser.wait("document.querySelector('#rate polyline').getAttribute('points').length > 0")
    assert browser.wait("latencies.some(latency => latency > 0) && latencies.at(-1) === 0")  # and the load has ended


def test_an_uploaded_image_is_answered(browser: Browser, server: Server, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    image.fromarray(pixels, "L").save(tmp_path / "digit.png")
    browser.choose_file("#file", tmp_path / "digit.png")
    browser.value("document.getElementById('go').click()")
    text = browser.wait("document.getElementById('answer').textContent")
    found = re.fullmatch(rf"answered in [\d.]+ ms\n\n{re.escape(SCORES)}  INT8 \[1,10\]\n((?: +\d+  -?\d+\n?)+)", text)
    assert found is not None, text
    shown = [tuple(map(int, line.split())) for line in found[1].splitlines()]
    data = (pixels.astype(int) - 128).ravel().tolist()
    sent = {"inputs": [{"name": IMAGE, "shape": [1, 8, 8, 1], "datatype": "INT8", "data": data}]}
    scores = ask(server.http_port or 0, "POST", INFER, sent)[1]["outputs"][0]["data"]
    assert [value for _, value in shown] == sorted(scores, reverse=True)[:5]
    assert all(scores[at] == value for at, value in shown)
    picture = os.environ.get("ONERT_SCREENSHOT")
    if picture:
        browser.screenshot(Path(picture))
    assert browser.complaints == []


def test_models_can_be_unloaded_and_loaded_by_a_click(browser: Browser) -> None:
    state = "document.querySelector('#models tbody tr td:nth-child(2)').textContent"
    browser.value("document.querySelector('#models button').click()")
    assert browser.wait(f"{state}.startsWith('UNAVAILABLE')")
    browser.value("document.querySelector('#models button').click()")
    assert browser.wait(f"{state} === 'READY'")
    assert browser.complaints == []


@pytest.mark.parametrize(("path", "kind"), [("/", "html"), ("/page.js", "javascript"), ("/page.css", "css")])
def test_the_page_loads_nothing_from_other_sites(server: Server, path: str, kind: str) -> None:
    status, headers, body = exchange(server.http_port or 0, request("GET", path))
    assert (status, headers["content-type"]) == (200, f"text/{kind}; charset=utf-8")
    assert "default-src 'self'" in headers["content-security-policy"]
    outside = re.findall(rb"https?://[^\"' ]+", body)
    assert set(outside) <= {b"http://www.w3.org/2000/svg"}
