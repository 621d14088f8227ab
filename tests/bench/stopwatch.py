"""The time that a call takes."""

from __future__ import annotations

import time
from collections.abc import Callable


def fastest(run: Callable[[], object], repeat: int) -> float:
    """The fastest of `repeat` consecutive runs."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best
