"""A progress bar for commands that take longer than a second, on terminals."""

from __future__ import annotations

import sys
import threading
from typing import Any

from onert.ir.process import imports

AFTER = 1.0
"""Seconds before anything is shown."""


class Progress:
    """A bar on standard error: the phase, its progress, and the time elapsed. Silent if that is not a terminal.

    Nothing is imported or shown in the first second.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self._shown = shown and sys.stderr is not None and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._bar: Any = None
        self._task: Any = None
        self._phase, self._done, self._total = "", 0, 0
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Progress:
        if self._shown:
            self._timer = threading.Timer(AFTER, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._shown = False
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def phase(self, name: str, total: int | None = None) -> None:
        """Start a phase with `total` steps, None if unknown."""
        with self._lock:
            self._phase, self._done, self._total = name, 0, total or 0
            self._update()

    def advance(self) -> None:
        """Count a finished step."""
        with self._lock:
            self._done += 1
            self._update()

    def _show(self) -> None:
        rich = imports.module("rich.progress")
        console = imports.module("rich.console").Console(stderr=True)
        columns = (
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.TextColumn("{task.fields[steps]}"),
            rich.TimeElapsedColumn(),
        )
        both = sys.stdout is not None and sys.stdout.isatty()
        bar = rich.Progress(
            *columns, console=console, transient=True, refresh_per_second=5, redirect_stdout=both, redirect_stderr=False
        )
        with self._lock:
            if self._shown:
                self._bar, self._task = bar, bar.add_task("", total=None, steps="")
                self._update()
                bar.start()

    def _update(self) -> None:
        if self._bar is not None:
            total = self._total or None
            steps = f"{self._done}/{total}" if total else f"{self._done}" if self._done else ""
            self._bar.update(self._task, description=self._phase, completed=self._done, total=total, steps=steps)
