"""How long a test waits for what must happen: a bound that ends a hang, never a claim about speed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = float(os.environ.get("ONERT_PATIENCE", "600"))
"""Seconds: a loaded machine may take a hundred times as long as a free one."""


class Late(BaseException):
    """Nothing that catches errors catches this. TimeoutError is an OSError, which a reader may take for a bad file."""


@contextmanager
def in_time() -> Iterator[None]:
    """`Late` in the main thread where the body takes longer than `PATIENCE`."""

    def late(signum: int, frame: object) -> None:
        raise Late(f"it took more than {PATIENCE} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
