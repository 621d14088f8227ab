"""Evaluates a trace for all of its lengths at once, if there are few.

A new length then needs one table lookup to check all conditions. Numbers that are equal for all valid lengths are
unified: most minima and maxima of sizes, and remainders of divisions. Numbers that rarely change from one length to
the next, such as choices between algorithms, need no arithmetic: ranges of lengths share a row of them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array

from .trace import Trace
from .vectorized import Vectorized

MOST_LENGTHS = 1 << 13
"""The maximum number of lengths, or combinations of lengths, in a table."""
MOST_ROWS = 1 << 8
"""The maximum number of ranges of lengths with a row of numbers each."""
MOST_CELLS = 1 << 14
"""The maximum number of numbers in all rows together."""


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
    numbers = Vectorized(trace, [places[lengths.index(alike[at])] for at in range(count)])
    results = [at for at, *_ in trace.steps if at not in pairs]
    found = {at: each for at in (*range(count), *results) if (each := numbers.number(at)) is not None}
    conditions = frozenset(trace.conditions.keys() & found.keys())
    holds = numbers.holds((at, trace.conditions[at]) for at in conditions)
    if not holds.reshape(counts)[tuple(trace.values[at] for at in lengths)]:
        return None  # numbers are too large
    same, known, seen = dict[int, int](), dict[int, int | float](), dict[tuple[bool, bytes], int]()
    steady = dict[int, Array]()
    for at, (array, valid) in found.items():
        is_float = isinstance(trace.values[at], float)
        if (array.dtype == np.float64) is not is_float or not np.all(valid | ~holds):
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
