"""Run times of a sub-network, depending on how long its device had been idle before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import cycle

import numpy as np

_CLASSES = 6
"""The number of classes for runs on idle devices; each class has the same number of runs."""


class Times:
    """Measured run times in seconds, which simulated runs use in turn.

    `idle` is, for each of them, how long its device had been idle before: a thread that has slept longer starts later,
    because the processor is doing something else, and finds less in the caches. A simulated run uses a time measured
    after a similar idle period. Without `idle`, there is only one class.
    """

    def __init__(self, seconds: Sequence[float], idle: Sequence[float] = ()) -> None:
        spells = [0.0] * len(seconds) if not idle else list(idle)
        waited = [spell for spell in spells if spell > 0]
        self._bounds: list[float] = []
        """The longest idle period of each class except the last, which is unbounded; the first is 0 (not idle)."""
        if waited:
            inner = np.unique(np.quantile(waited, np.arange(1, _CLASSES) / _CLASSES, method="inverted_cdf")).tolist()
            self._bounds = [0.0, *(bound for bound in inner if bound < max(waited))]
        classes: list[list[float]] = [[] for _ in range(len(self._bounds) + 1)]
        for value, spell in zip(seconds, spells, strict=True):
            classes[bisect_left(self._bounds, spell)].append(value)
        self._next = [cycle(values or seconds) for values in classes]

    def take(self, idle: float) -> float:
        """The time of the next run, whose device was idle for `idle` seconds before."""
        return next(self._next[bisect_left(self._bounds, idle)])
