"""Other lengths for which a trace's conditions hold: where the cases of a computation are looked for."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, product
from typing import Any

import numpy as np

from .trace import Symbolic, Trace
from .vectorized import Vectorized

MOST_PLACES = 512
"""The maximum number of combinations of lengths."""
_MOST_ALONG = 1 << 15
"""The longest length to be considered, and how many around the initial one if that is longer."""

_SMALL, _SMALL_AMONG_MANY = (1, 2, 3, 4, 6, 9, 13, 16), (2, 3, 5, 13)
"""The lengths to begin with, and those if more than two lengths vary: schedules differ mostly between small sizes."""

_NEAR = (2, 3, 5, 6, 7, 9, 11)
"""The same in quarters of the initial length: sizes that are fractions of it may be small, such as a sound's frames."""


class Places:
    """Combinations of lengths for which the conditions of a trace hold, by preference, with all numbers there."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        own = [at for at, first in enumerate(trace.equal) if first == at and trace.values[at]]
        each = int(MOST_PLACES ** (1 / max(1, len(own))) + 1e-9)
        axes = [self._along(at, each, len(own)) for at in own]
        chosen = sorted(product(*axes), key=lambda place: any(is_other for is_other, _ in place))
        known = [dict(zip(own, (length for _, length in place), strict=True)) for place in chosen]
        self._lengths = [
            tuple([place.get(first, trace.values[at]) for at, first in enumerate(trace.equal)]) for place in known
        ]
        columns = np.array(self._lengths, np.int64).reshape(len(known), -1).T
        self._numbers = Vectorized(trace, list(columns))
        self._hold = np.ones(len(known), bool)
        """Where the first `_met` conditions hold."""
        self._met = 0
        self._values: dict[int, list[Any]] = {}
        self._done: dict[int, int] = {}
        """How many steps of the trace are done in these values."""

    def _along(self, at: int, count: int, among: int) -> list[tuple[bool, int]]:
        """Up to so many values of a length for which the conditions hold with the other lengths as they are: first the
        nearest to those to begin with, then others, which have a flag."""
        trace = self._trace
        initial, most = trace.values[at], trace.most[at]
        first = np.arange(1, min(most, _MOST_ALONG) + 1)
        around = np.arange(max(1, initial - _MOST_ALONG // 2), min(most, initial + _MOST_ALONG // 2) + 1)
        values = np.union1d(first, around)
        lengths = [values if i == at else np.full(len(values), trace.values[j]) for j, i in enumerate(trace.equal)]
        holds = Vectorized(trace, lengths).holds(trace.conditions.items())
        values = values[holds | (values == initial)]
        wanted = [*_SMALL, *(n * initial // 4 for n in _NEAR)] if among < 3 else list(_SMALL_AMONG_MANY)
        wanted = sorted(n for n in (*wanted, initial, most) if n <= most)
        nearest = values[np.minimum(np.searchsorted(values, wanted), len(values) - 1)]
        spread = values[np.geomspace(1, len(values), min(count, len(values))).astype(int) - 1]
        chosen = list(dict.fromkeys([*nearest.tolist(), *spread.tolist()]))
        return [(length not in nearest, length) for length in chosen[: max(count, 1)]]

    def open(self, left: Any, tried: Iterable[int]) -> int | None:
        """The first place not yet tried where all conditions hold and the number `left` is not 0."""
        added = [*islice(self._trace.conditions.items(), self._met, None)]
        self._met += len(added)
        self._hold &= self._numbers.holds(added)
        numbers = self._numbers.number(left.index) if isinstance(left, Symbolic) else (left, True)
        if numbers is None:
            return None
        found = self._hold & (numbers[0] != 0) & numbers[1]
        found[list(tried)] = False
        return int(np.argmax(found)) if found.any() else None

    def values(self, place: int) -> list[Any]:
        """All numbers of the trace at a place."""
        trace = self._trace
        values = self._values.setdefault(place, [*self._lengths[place]])
        extend(values, trace.values, trace, self._done.get(place, 0))
        self._done[place] = len(trace.steps)
        return values

    def computed(self, place: int) -> None:
        """All numbers of the trace have been computed at a place."""
        self._done[place] = len(self._trace.steps)


def extend(values: list[Any], others: list[Any], trace: Trace, done: int) -> None:
    """Add the numbers that others have been computed for to those for other lengths; `done` steps have been."""
    values += others[len(values) :]
    for at, function, arguments in islice(trace.steps, done, None):
        try:
            if len(arguments) == 2:
                values[at] = function(values[arguments[0]], values[arguments[1]])
            else:
                values[at] = function(*[values[i] for i in arguments])
        except (ArithmeticError, ValueError):  # a number of a case that does not apply
            continue
