"""The numbers of a trace for many combinations of lengths at once, with NumPy."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from onert.ir.dtype import Array

from .floats import as_float32, as_float64
from .trace import Trace, where_greater_of

MOST_RESULTS = 1 << 16
"""The maximum number of results in a function's table."""
_EXACT = 1 << 53
"""Integers up to this magnitude are compared with float64s in the same way as in Python."""

_PLAIN: dict[Callable[..., Any], Callable[..., Any]] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.floordiv: np.floor_divide,
    operator.mod: np.remainder,
    operator.truediv: np.true_divide,
    operator.neg: np.negative,
    operator.pos: np.positive,
    operator.lt: np.less,
    operator.le: np.less_equal,
    operator.gt: np.greater,
    operator.ge: np.greater_equal,
    operator.eq: np.equal,
    operator.ne: np.not_equal,
    bool: lambda a: a != 0,
    where_greater_of: lambda a, b, then, otherwise: np.where(a > b, then, otherwise),
}
_ROUNDED: dict[Callable[..., Any], Callable[..., Any]] = {math.floor: np.floor, math.ceil: np.ceil, round: np.rint}
_FINITE: dict[Callable[..., Any], Any] = {as_float32: np.float32, as_float64: np.float64}
_TABLES: dict[Callable[..., Any], Callable[[int], Array]] = {
    int.bit_length: lambda count: np.array([number.bit_length() for number in range(count)])
}
"""The results of Python's own functions for all numbers below a count."""
_WHOLE = (operator.floordiv, operator.mod)
_DIVIDES = (*_WHOLE, operator.truediv)

Numbers = tuple[Any, Any]
"""A number, or an array of one for each combination, int64 or float64; and where it equals Python's."""


class Vectorized:
    """The numbers of a trace for some combinations of lengths, each computed on demand."""

    def __init__(self, trace: Trace, lengths: Sequence[Array]) -> None:
        """`lengths` are int64 arrays of one shape, an element for each combination."""
        self._trace = trace
        self._steps: dict[int, tuple[Callable[..., Any], tuple[int, ...]]] = {}
        self._seen = 0
        self._lengths = len(lengths)
        self._found: dict[int, Numbers | None] = {at: (array, True) for at, array in enumerate(lengths)}
        self.shape = lengths[0].shape

    def number(self, at: int) -> Numbers | None:
        """A number by its index; None if it cannot be computed for many lengths at once."""
        for i in sorted(self.needed([at])):
            self._found[i] = self._result(i)
        return self._found[at]

    def holds(self, conditions: Iterable[tuple[int, Any]]) -> Array:
        """Where these numbers have these values; numbers that cannot be computed are left out."""
        found = np.ones(self.shape, bool)
        for at, value in conditions:
            numbers = self.number(at)
            if numbers is not None:
                found &= (numbers[0] == value) & numbers[1]
        return found

    def each(self, wanted: Iterable[int]) -> Iterator[tuple[int, Numbers]]:
        """The wanted numbers in order, with their indices, but for those that cannot be computed. Only numbers that are
        still needed are kept in memory."""
        asked = frozenset(wanted)
        needed = sorted(self.needed(asked))
        last = {i: at for at in needed for i in (*self._arguments(at), at)}
        ended = dict[int, list[int]]()
        for i, at in last.items():
            ended.setdefault(at, []).append(i)
        for at in (*sorted(asked.difference(needed)), *needed):
            numbers = self._found[at] if at in self._found else self._result(at)
            if at in asked and numbers is not None:
                yield at, numbers
            if at in last:
                self._found[at] = numbers
            for i in ended.get(at, ()):
                if i >= self._lengths:
                    del self._found[i]

    def _arguments(self, at: int) -> tuple[int, ...]:
        return self._steps[at][1] if at in self._steps else ()

    def needed(self, wanted: Iterable[int]) -> set[int]:
        """The numbers without which these cannot be computed, and those themselves, but for those that have been."""
        fresh = self._trace.steps[self._seen :]
        self._seen += len(fresh)
        self._steps.update((i, (function, arguments)) for i, function, arguments in fresh)
        needed, waiting = set[int](), list(wanted)
        while waiting:
            i = waiting.pop()
            if i not in needed and i not in self._found:
                needed.add(i)
                waiting += self._arguments(i)
        return needed

    def _result(self, at: int) -> Numbers | None:
        """A number whose arguments have been computed."""
        if at not in self._steps:
            return self._trace.values[at], True
        function, arguments = self._steps[at]
        given = []
        fits: Any = True
        for i in arguments:
            numbers = self._found[i]
            if numbers is None:
                return None
            given.append(numbers[0])
            fits = fits & numbers[1]
        with np.errstate(all="ignore"):
            found = _computed(function, given)
        return found and (np.broadcast_to(found[0], self.shape), fits & found[1])


def _computed(function: Any, given: Sequence[Any]) -> Numbers | None:
    """A function applied to many numbers at once; None if that cannot be done as in Python."""
    floats = any(isinstance(x, float) or getattr(x, "dtype", None) == np.float64 for x in given)
    if any(isinstance(x, int) and abs(x) > _EXACT for x in given) or (floats and function in _WHOLE):
        return None
    fits: Any = True
    if function in _PLAIN:
        if function in _DIVIDES:
            fits = given[1] != 0
            given = (given[0], np.where(fits, given[1], 1))
        found = np.asarray(_PLAIN[function](*given))
        if found.dtype == np.float64:
            return found, fits
        if found.dtype == np.bool_:
            return found.astype(np.int64), fits
        size = np.asarray(given[0], float) * given[1] if function is operator.mul else found
        return found.astype(np.int64, copy=False), fits & (np.abs(size) <= _EXACT)
    if function in _FINITE:
        found = np.asarray(given[0]).astype(_FINITE[function]).astype(np.float64)
        return found, np.isfinite(found)
    if function in _ROUNDED:
        found = np.asarray(_ROUNDED[function](given[0])) if floats else np.asarray(given[0])
        fits = np.abs(found) <= _EXACT
        return np.where(fits, found, 0).astype(np.int64), fits
    return None if floats else _looked_up(results_of(function), given)


def _looked_up(results: Callable[..., Array] | None, given: Sequence[Any]) -> Numbers | None:
    """The results for many numbers at once from a table of all results."""
    counts = [int(np.max(each)) + 1 for each in given]
    if results is None or min(counts) < 1 or math.prod(counts) > MOST_RESULTS:
        return None
    fits = np.logical_and.reduce(np.broadcast_arrays(*(np.asarray(each) >= 0 for each in given)))
    found = np.asarray(results(*counts)).reshape(counts)[tuple(np.maximum(each, 0) for each in given)]
    return found.astype(np.int64), fits


def results_of(function: Callable[..., Any]) -> Callable[..., Array] | None:
    """What makes the table of a function's results, if it has one: for all numbers below a count for each argument."""
    found: Callable[..., Array] | None = _TABLES.get(function) or getattr(function, "results", None)
    return found
