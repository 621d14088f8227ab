"""Computations whose decisions differ between lengths: a result for each case, and numbers that say which one applies.

A computation is repeated for other lengths. The conditions of each run say for which lengths its result is valid: they
become a number that is 1 for these lengths, instead of conditions of the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from .places import Places, extend
from .trace import OneLengthError, Symbolic, Trace, where_greater

MOST_CASES = 16
"""The maximum number of cases of a computation."""

_Result = TypeVar("_Result")


class Cases:
    """Runs computations of a trace for other lengths."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._places = Places(trace)

    def run(self, compute: Callable[[], _Result], is_split: Callable[[_Result], bool]) -> list[tuple[_Result, Any]]:
        """The results of `compute` for different lengths, each with a number that is 1 where it is to be used, else 0.

        That some result can be used becomes a condition. A single result has no number, and its conditions are those of
        the trace; so has the first one if it may not be one of several by `is_split`.
        """
        trace, first, outer = self._trace, self._trace.values, self._trace.conditions
        given = trace.equal  # none while a case is computed: it has no cases of its own
        found: list[tuple[_Result, Any]] = []
        own = dict[int, Any]()
        left: Any = 1
        place, tried = None, set[int]()
        while len(found) < MOST_CASES and len(tried) < 2 * MOST_CASES:
            values, done = first if place is None else self._places.values(place), len(trace.steps)
            trace.values, trace.conditions, trace.equal = values, dict(outer), ()
            try:
                result = compute()
                added = {at: value for at, value in trace.conditions.items() if at not in outer}
                is_case = is_split(result) and all(isinstance(value, int) for value in added.values())
            except (ArithmeticError, OneLengthError, ValueError):
                if place is None:
                    raise
                is_case = False
            finally:
                trace.values, trace.conditions, trace.equal = first, outer, given
                if place is not None:
                    extend(first, values, trace, done)
                    self._places.computed(place)
            if place is None:
                own = added
                if not is_case:
                    found.append((result, None))
                    break
            if is_case:
                applies = self._holds(added)
                found.append((result, where_greater(left, 0, applies, 0)))
                left = where_greater(applies, 0, 0, left)
            if place is not None:
                tried.add(place)
            place = self._places.open(left, tried)
            if place is None:
                break
        if len(found) == 1:
            outer |= own
            return [(found[0][0], None)]
        if isinstance(left, Symbolic):
            trace.require(left.index)
        return found

    def _holds(self, conditions: Mapping[int, Any]) -> Any:
        """1 where all conditions hold, else 0."""
        found: Any = 1
        for at, value in conditions.items():
            number = Symbolic(self._trace, at)
            if value is True or value is False:
                found = where_greater(number, 0, found, 0) if value else where_greater(number, 0, 0, found)
            else:
                found = where_greater(number, value, 0, where_greater(value, number, 0, found))
        return found


def cases_of(sizes: Iterable[Any]) -> Cases | None:
    """The cases of computations with these sizes; None if they are plain, or computations of their trace may not be
    repeated."""
    trace = next((size.trace for size in sizes if isinstance(size, Symbolic)), None)
    if trace is None or not trace.equal:
        return None
    cases: Cases = trace.cases or Cases(trace)
    trace.cases = cases
    return cases
