"""What runs of a sub-network take, by how long their device had had nothing to do before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import cycle

import numpy as np

_CLASSES = 6
"""Of runs that did not begin at the end of another one: as many of them in each."""


class Times:
    """Seconds of runs, which other runs take in turn.

    `idle` has for each of them how long its device had had nothing to do before: a thread that has slept for longer
    begins later, because the processor does something else meanwhile, and finds less in the caches. A run takes a time
    that was measured after a spell like its own. Where none was measured, all times are alike.
    """

    def __init__(self, seconds: Sequence[float], idle: Sequence[float] = ()) -> None:
        spells = [0.0] * len(seconds) if not idle else list(idle)
        waited = [spell for spell in spells if spell > 0]
        self._bounds: list[float] = []
        """The longest spell of each class but the last, which has no end; the first is that of no spell at all."""
        if waited:
            inner = np.unique(np.quantile(waited, np.arange(1, _CLASSES) / _CLASSES, method="inverted_cdf")).tolist()
            self._bounds = [0.0, *(bound for bound in inner if bound < max(waited))]
        classes: list[list[float]] = [[] for _ in range(len(self._bounds) + 1)]
        for value, spell in zip(seconds, spells, strict=True):
            classes[bisect_left(self._bounds, spell)].append(value)
        self._next = [cycle(values or seconds) for values in classes]

    def take(self, idle: float) -> float:
        """What the next run takes, whose device had nothing to do for so many seconds."""
        return next(self._next[bisect_left(self._bounds, idle)])
