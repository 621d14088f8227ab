"""Evaluates a trace for all of its lengths at once, if there are few.

A new length then needs one table lookup to check all conditions. Numbers that are equal for all valid lengths are
unified: most minima and maxima of sizes, and remainders of divisions. Numbers that rarely change from one length to
the next, such as choices between algorithms, need no arithmetic: ranges of lengths share a row of them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array

from .trace import Trace, where_greater_of

MOST_LENGTHS = 1 << 13
"""The maximum number of lengths, or combinations of lengths, in a table."""
MOST_ROWS = 1 << 8
"""The maximum number of ranges of lengths with a row of numbers each."""
MOST_CELLS = 1 << 14
"""The maximum number of numbers in all rows together."""
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
_TABLES: dict[Callable[..., Any], Callable[[int], Array]] = {
    int.bit_length: lambda count: np.array([number.bit_length() for number in range(count)])
}
"""The results of Python's own functions for all numbers below a count."""
_WHOLE = (operator.floordiv, operator.mod)
_DIVIDES = (*_WHOLE, operator.truediv)


@frozen(eq=False)
class AllLengths:
    """The results of a trace for all of its lengths. Only `lengths` have an axis in the table: the others equal one of
    them, which is a condition.

    - `holds`: whether all `conditions` (the indices of those that the table covers) hold, for each combination
    - `same`: for numbers that always equal an earlier number, by index, the index of that number
    - `known`: numbers that are constant, by index, and their values
    - `steady`: the bits of other numbers that change less than `MOST_ROWS` times, by index, for the combinations that
      hold
    """

    lengths: tuple[int, ...]
    holds: Array
    conditions: frozenset[int]
    same: dict[int, int]
    known: dict[int, int | float]
    steady: dict[int, Array]

    def rows(self, numbers: Iterable[int]) -> tuple[list[int], Array, Array]:
        """The first of these steady numbers, by how often they change, that fit into rows; the row of each combination
        of lengths, -1 if it does not hold; and the rows, int64 [rows, numbers]."""
        changes = {at: self.steady[at][1:] != self.steady[at][:-1] for at in numbers}
        chosen, joint = list[int](), np.zeros(int(np.count_nonzero(self.holds)) - 1, bool)
        for at in sorted(changes, key=lambda at: (np.count_nonzero(changes[at]), at)):
            both = joint | changes[at]
            count = np.count_nonzero(both) + 1
            if count > MOST_ROWS or count * (len(chosen) + 1) > MOST_CELLS:
                break
            chosen.append(at)
            joint = both
        firsts = np.concatenate([[True], joint])
        row = np.full(self.holds.shape, -1)
        row[self.holds] = np.cumsum(firsts) - 1
        cells = [self.steady[at][firsts] for at in chosen]
        return chosen, row, np.stack(cells, axis=1) if cells else np.zeros((len(firsts), 0), np.int64)


def all_lengths(trace: Trace) -> AllLengths | None:
    """Evaluates a trace for all of its lengths; None if these are too many."""
    count = len(trace.lengths)
    alike = list(range(count))
    pairs = set[int]()
    for at, function, arguments in trace.steps:
        if function is operator.eq and trace.conditions.get(at) is True and max(arguments) < count:
            least, other = sorted(alike[i] for i in arguments)
            alike = [least if each == other else each for each in alike]
            pairs.add(at)
    lengths = tuple(at for at in range(count) if alike[at] == at)
    counts = tuple(trace.most[at] + 1 for at in lengths)
    if math.prod(counts) > MOST_LENGTHS:
        return None
    places = np.indices(counts).reshape(len(lengths), -1)
    values: dict[int, Array] = {at: places[lengths.index(alike[at])] for at in range(count)}
    valid: dict[int, Array] = {}
    results = {at for at, *_ in trace.steps}
    holds = np.ones(places.shape[1], bool)
    with np.errstate(all="ignore"):
        for at, function, arguments in trace.steps:
            if at in pairs or any(i in results and i not in values for i in arguments):
                continue
            given = [values.get(i, trace.values[i]) for i in arguments]
            found = _computed(function, given)
            if found is not None:
                values[at], fits = np.broadcast_to(found[0], holds.shape), found[1]
                for i in arguments:
                    fits = fits & valid.get(i, True)
                if not np.all(fits):
                    valid[at] = fits
        conditions = frozenset(trace.conditions.keys() & values.keys())
        for at in conditions:
            holds &= (values[at] == trace.conditions[at]) & valid.get(at, True)
    if not holds.reshape(counts)[tuple(trace.values[at] for at in lengths)]:
        return None  # numbers are too large
    same, known, seen = dict[int, int](), dict[int, int | float](), dict[tuple[bool, bytes], int]()
    steady = dict[int, Array]()
    for at, array in values.items():
        is_float = isinstance(trace.values[at], float)
        if (array.dtype == np.float64) is not is_float or not np.all(valid.get(at, True) | ~holds):
            continue
        some = array[holds]
        bits = some.view(np.int64)
        if not (bits != bits[0]).any():
            known[at] = some[0].item()
        elif seen.setdefault((is_float, bits.tobytes()), at) != at and at >= count:
            same[at] = seen[is_float, bits.tobytes()]
        elif at >= count and np.count_nonzero(bits[1:] != bits[:-1]) < MOST_ROWS:
            steady[at] = bits
    return AllLengths(lengths, holds.reshape(counts), conditions, same, known, steady)


def _computed(function: Any, given: Sequence[Any]) -> tuple[Array, Any] | None:
    """A function applied to many numbers at once, and where the result equals Python's; None if that cannot be told."""
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
    if function in _ROUNDED:
        found = np.asarray(_ROUNDED[function](given[0])) if floats else np.asarray(given[0])
        fits = np.abs(found) <= _EXACT
        return np.where(fits, found, 0).astype(np.int64), fits
    return None if floats else _looked_up(results_of(function), given)


def _looked_up(results: Callable[..., Array] | None, given: Sequence[Any]) -> tuple[Array, Any] | None:
    """The results for many numbers at once from a table of all results, and where it has them."""
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
