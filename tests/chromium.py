"""Drives Chromium through the DevTools protocol over a pipe, using only the standard library.

The protocol's messages are JSON, each terminated by a NUL; the browser reads them from file descriptor 3 and writes to
file descriptor 4.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from base64 import b64decode
from pathlib import Path
from typing import Any, Self

PROGRAM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
"""The browser; None if there is none."""
REASON = "there is no Chromium on this machine"
PATIENCE = 60.0


class Chromium:
    """A headless browser with a profile of its own, and one page in it.

    `errors` collects console errors and warnings, uncaught exceptions, and what the page's policy blocked.
    """

    def __init__(self, folder: Path) -> None:
        if PROGRAM is None:
            raise RuntimeError(REASON)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        self._session: str | None = None
        self._buffer = b""
        self._loaded = False
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        flags += ["--disable-background-networking", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, "chromium", PROGRAM, *flags, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        session, self._session = self._session, None
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._session = session
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command; events received before it are recorded. RuntimeError if it fails."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next(PATIENCE)
            if found.get("id") == number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return dict(found["result"])

    def _next(self, patience: float) -> dict[str, Any]:
        end = time.monotonic() + patience
        while b"\0" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise OSError("Chromium has ended")
            self._buffer += data
        raw, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(raw)
        self._note(found.get("method", ""), found.get("params", {}))
        return found

    def _note(self, method: str, details_: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = details_["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and details_["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in details_["args"]))
        elif method == "Log.entryAdded" and details_["entry"]["level"] in ("error", "warning"):
            self.errors.append(details_["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(details_["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True

    def open(self, url: str) -> None:
        """Go to a page and wait until it reports that it is ready."""
        self._loaded = False
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._next(PATIENCE)
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page, with promises awaited. RuntimeError if it throws."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", script))
        return found["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until an expression is true; TimeoutError with the page's errors."""
        end = time.monotonic() + PATIENCE
        while not self.run(f"!!({script})"):
            if time.monotonic() > end:
                raise TimeoutError(f"{script} is not true; errors: {self.errors}")
            time.sleep(0.02)

    def key(self, key: str, text: str | None = None) -> None:
        """Press and release a key."""
        text = key if text is None and len(key) == 1 else text
        more = {"text": text} if text else {"text": "\r"} if key == "Enter" else {}
        codes = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "ArrowLeft": 37}
        code = codes.get(key, 0)
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, words: str) -> None:
        """Insert text at the focus."""
        self.call("Input.insertText", text=words)

    def click(self, x: float, y: float, count: int = 1) -> None:
        """Click the left button at a position in the window."""
        for at in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=at)

    def wheel(self, x: float, y: float, down: float, *, control: bool = False) -> None:
        """Turn the wheel."""
        modifiers = 2 if control else 0
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=down, modifiers=modifiers)

    def size(self, width: int, height: int, *, scale: float = 1.0) -> None:
        """Set the window's width and height in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def theme(self, name: str) -> None:
        """Set the system's preferred colour scheme: dark or light."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path: Path) -> None:
        """Save the window's content as PNG."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        path.write_bytes(b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
