"""Computations whose decisions differ between lengths: a result for each case, and numbers that say which one applies.

A computation is repeated for some sample lengths. The conditions of each run say for which lengths its result is valid:
they become a number that is 1 for these lengths, instead of conditions of the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice, product
from typing import Any, TypeVar

from .trace import OneLengthError, Symbolic, Trace, where_greater

MOST_CASES, MOST_SAMPLES = 16, 256
"""The maximum number of cases of a computation, and of sample lengths."""

_SAMPLED, _SAMPLED_AMONG_MANY = (1, 2, 3, 4, 6, 9, 13, 16), (2, 3, 5, 13)
"""Sample lengths, and those if more than two lengths vary: schedules differ mostly between small sizes."""

_NEAR = (2, 3, 5, 6, 7, 9, 11)
"""Samples in quarters of the initial length: sizes that are fractions of it may be small, such as a sound's frames."""

_Result = TypeVar("_Result")


def samples(lengths: tuple[int, ...], most: tuple[int, ...], equal: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Samples of lengths up to `most` by which cases are found; `equal` has the first length that each one equals."""
    own = [at for at in range(len(lengths)) if equal[at] == at and lengths[at]]
    some, near = (_SAMPLED, _NEAR) if len(own) < 3 else (_SAMPLED_AMONG_MANY, ())
    each = [
        sorted({n for n in (*some, *(n * lengths[at] // 4 for n in near), lengths[at], most[at]) if n <= most[at]})
        for at in own
    ]
    chosen = [dict(zip(own, found, strict=True)) for found in islice(product(*each), MOST_SAMPLES)]
    return tuple(tuple(known.get(equal[at], length) for at, length in enumerate(lengths)) for known in chosen)


class Cases:
    """Runs computations of a trace for its sample lengths."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._done = len(trace.steps)
        self._samples = [values for lengths in trace.samples if (values := trace.at(lengths)) is not None]
        self._met = len(trace.conditions)

    def run(self, compute: Callable[[], _Result], is_split: Callable[[_Result], bool]) -> list[tuple[_Result, Any]]:
        """The results of `compute` for different lengths, each with a number that is 1 where it is to be used, else 0.

        That some result can be used becomes a condition. A single result has no number, and its conditions are those of
        the trace; so has the first one if it may not be one of several by `is_split`.
        """
        trace, first, outer = self._trace, self._trace.values, self._trace.conditions
        self._leave_out_others()
        given = trace.samples  # none while a case is computed: it has no cases of its own
        found: list[tuple[_Result, Any]] = []
        own = dict[int, Any]()
        left: Any = 1
        for values in (first, *self._samples):
            if len(found) == MOST_CASES or (found and not self._at(left, values)):
                continue
            trace.values, trace.conditions, trace.samples = values, dict(outer), ()
            try:
                result = compute()
                added = {at: value for at, value in trace.conditions.items() if at not in outer}
            except (OneLengthError, ValueError):
                if values is first:
                    raise
                continue
            finally:
                trace.values, trace.conditions, trace.samples = first, outer, given
                self._sync(values)
            if not found:
                own = added
            if not is_split(result) or not all(isinstance(value, int) for value in added.values()):
                if values is first:
                    found.append((result, None))
                    break
                continue
            applies = self._holds(added)
            found.append((result, where_greater(left, 0, applies, 0)))
            left = where_greater(applies, 0, 0, left)
            self._sync(first)
        if len(found) == 1:
            outer |= own
            return [(found[0][0], None)]
        if isinstance(left, Symbolic):
            trace.require(left.index)
        self._samples = [values for values in self._samples if not self._at(left, values)]
        return found

    def _leave_out_others(self) -> None:
        """Drop the samples for which a condition that was added meanwhile does not hold."""
        self._sync(self._trace.values)
        added = [*islice(self._trace.conditions.items(), self._met, None)]
        self._met += len(added)
        self._samples = [values for values in self._samples if all(values[at] == value for at, value in added)]

    def _at(self, number: Any, values: list[Any]) -> Any:
        return values[number.index] if isinstance(number, Symbolic) else number

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

    def _sync(self, current: list[Any]) -> None:
        """Let all values have the numbers that were added to the `current` ones."""
        steps = self._trace.steps[self._done :]
        self._done = len(self._trace.steps)
        for values in (self._trace.values, *self._samples):
            if values is current:
                continue
            values += current[len(values) :]
            for at, function, arguments in steps:
                try:
                    if len(arguments) == 2:
                        values[at] = function(values[arguments[0]], values[arguments[1]])
                    else:
                        values[at] = function(*[values[i] for i in arguments])
                except (ArithmeticError, ValueError):  # a number of a case that does not apply
                    continue


def cases_of(sizes: Iterable[Any]) -> Cases | None:
    """The cases of computations with these sizes; None if they are plain, or their trace has no sample lengths."""
    trace = next((size.trace for size in sizes if isinstance(size, Symbolic)), None)
    return Cases(trace) if trace is not None and trace.samples else None
