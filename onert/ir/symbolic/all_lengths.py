"""Evaluates a trace for all of its lengths at once, if there are few.

A new length then needs one table lookup to check all conditions. Numbers that are equal for all valid lengths are
unified: most minima and maxima of sizes, and remainders of divisions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array

from .trace import Trace, where_greater_of

MOST_LENGTHS = 1 << 13
"""The maximum number of lengths, or combinations of lengths, in a table."""
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
_WHOLE = (operator.floordiv, operator.mod)
_DIVIDES = (*_WHOLE, operator.truediv)


@frozen(eq=False)
class AllLengths:
    """The results of a trace for all of its lengths. Only `lengths` have an axis in the table: the others equal one of
    them, which is a condition.

    - `holds`: whether all `conditions` (the indices of those that the table covers) hold, for each combination
    - `same`: for numbers that always equal an earlier number, by index, the index of that number
    - `known`: numbers that are constant, by index, and their values
    """

    lengths: tuple[int, ...]
    holds: Array
    conditions: frozenset[int]
    same: dict[int, int]
    known: dict[int, int | float]


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
    return AllLengths(lengths, holds.reshape(counts), conditions, same, known)


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
    return None
