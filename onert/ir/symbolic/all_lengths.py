"""What a trace gives for all lengths that it is for, computed at once where these are few.

A new length then asks one table whether all conditions hold. Numbers that are the same for all lengths for which they
do are one number: most sizes of which the less or the greater is taken, and rests of divisions.
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

MOST_LENGTHS = 1 << 12
"""For how many lengths, or pairs of these, a table is made."""
_EXACT = 1 << 53
"""Integers of at most this size are compared with float64s as Python does."""

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
    """The lengths with an axis of the table each: the others are the same as one of these, which are conditions.

    - `holds`: where all `conditions` of the trace do, by index, that the table stands for
    - `same`: for numbers that are always the same as one that came before, by index, that one's
    - `known`: those that are always the same number
    """

    lengths: tuple[int, ...]
    holds: Array
    conditions: frozenset[int]
    same: dict[int, int]
    known: dict[int, int | float]


def all_lengths(trace: Trace) -> AllLengths | None:
    """What there is to know of a trace for all of its lengths; None where these are too many."""
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
    """What a function gives for many numbers at once, and for which of them that is what Python gives; None where that
    is not known."""
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
        size = np.asarray(given[0], float) * given[1] if function is operator.mul else found.astype(np.int64)
        return found.astype(np.int64), fits & (np.abs(size) <= _EXACT)
    if function in _ROUNDED:
        found = np.asarray(_ROUNDED[function](given[0])) if floats else np.asarray(given[0])
        fits = np.abs(found) <= _EXACT
        return np.where(fits, found, 0).astype(np.int64), fits
    return None
