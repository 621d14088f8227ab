"""A headless browser, controlled through its debugging pipe.

Source: Chrome DevTools Protocol; messages are JSON, each ended by a zero byte, on descriptors 3 and 4.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from patience import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")


_PLACE = """
import os, sys
browser_input, browser_output, *command = sys.argv[1:]
os.dup2(int(browser_input), 3)
os.dup2(int(browser_output), 4)
os.execv(command[0], command)
"""
"""A program that moves the pipe to the descriptors that the browser uses, then executes the browser."""


def executable() -> str | None:
    """The path of the installed browser, or None."""
    return next((found for name in NAMES if (found := shutil.which(name)) is not None), None)


def _pipe() -> tuple[int, int]:
    """A pipe (read end, write end) whose descriptors are at least 10, so that they are not 3 or 4."""
    found = os.pipe()
    moved = tuple(fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in found)
    for each in found:
        os.close(each)
    return moved[0], moved[1]


class Browser:
    """A browser with one page."""

    def __init__(self, command: str, width: int = 1200, height: int = 900) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="onert-browser-", ignore_cleanup_errors=True)
        browser_input, self._send = _pipe()
        browser_output, self._receive = _pipe()[::-1]

        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _PLACE,
                str(browser_input),
                str(browser_output),
                command,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                f"--window-size={width},{height}",
                f"--user-data-dir={self._home.name}",
                "--remote-debugging-pipe",
                "about:blank",
            ],
            pass_fds=(browser_input, browser_output),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(browser_input)
        os.close(browser_output)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        """Errors that the page logged, and exceptions that it threw."""
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        (page,) = [t for t in self.tell("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self._session = self.tell("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "DOM", "Log"):
            self.tell(f"{domain}.enable")

    def tell(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found["error"]
                return found["result"]
            self._note(found)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._receive, 1 << 16)
            assert piece, "the browser ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(event["params"]["exceptionDetails"]))
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.complaints.append(event["params"]["entry"]["text"])

    def value(self, expression: str) -> Any:
        """Evaluate an expression in the page."""
        found = self.tell("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Wait until an expression in the page is true, and return its value."""
        end = monotonic() + PATIENCE
        while monotonic() < end:
            found = self.value(expression)
            if found:
                return found
            sleep(0.05)
        raise AssertionError(f"{expression} never became true")

    def choose_file(self, selector: str, path: Path) -> None:
        """Choose a file in a form's file input."""
        root = self.tell("DOM.getDocument")["root"]["nodeId"]
        node = self.tell("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.tell("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def screenshot(self, path: Path) -> None:
        """Save a screenshot of the page as PNG."""
        path.write_bytes(base64.b64decode(self.tell("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """End the browser."""
        self._process.kill()
        self._process.wait()
        os.close(self._send)
        os.close(self._receive)
        self._home.cleanup()
