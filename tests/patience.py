"""How long a test waits for an event: a bound that ends a hang, never a claim about speed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic, process_time

PATIENCE = float(os.environ.get("ONERT_PATIENCE", "600"))
"""Seconds. A loaded machine may take a hundred times as long as an idle one."""


class Late(BaseException):
    """Not caught by any error handler; a TimeoutError is an OSError, which a reader may take for a bad file."""


@contextmanager
def _watched(look: Callable[[int, object], None], first: float, interval: float = 0) -> Iterator[None]:
    """Call `look` in the main thread after `first` seconds, then every `interval` unless that is 0."""
    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, first, interval)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def in_time() -> AbstractContextManager[None]:
    """Raise `Late` in the main thread if the body takes longer than `PATIENCE`."""

    def late(signum: int, frame: object) -> None:
        raise Late(f"it took more than {PATIENCE} seconds")

    return _watched(late, PATIENCE)


def at_work(seconds: int) -> AbstractContextManager[None]:
    """Raise `Late` in the main thread if the body uses more than `seconds` of processor time, or none for that long.

    A process that gets no processor is not stuck: it may take up to `PATIENCE`.
    """
    begun, seen = monotonic(), process_time()
    end = seen + seconds

    def look(signum: int, frame: object) -> None:
        nonlocal seen
        now = process_time()
        if now > end or now - seen < 1e-3 or monotonic() - begun > PATIENCE:
            raise Late(f"{monotonic() - begun:.0f} seconds, {now - end + seconds:.2f} of the processor")
        seen = now

    return _watched(look, seconds, seconds)
