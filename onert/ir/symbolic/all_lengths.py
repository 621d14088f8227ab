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
from onert.ir.process.digests import digest

from .trace import Trace
from .vectorized import Vectorized

MOST_LENGTHS = 1 << 16
"""The maximum number of lengths, or combinations of lengths, in a table."""
MOST_NUMBERS = 1 << 25
"""The maximum number of numbers that are computed for it: a tenth of a second."""
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
    - `steady`: other numbers that change less than `MOST_ROWS` times, by index: at which of the combinations that hold
      there is a new number, the first included, and its bits
    """

    lengths: tuple[int, ...]
    holds: Array
    conditions: frozenset[int]
    same: dict[int, int]
    known: dict[int, int | float]
    steady: dict[int, tuple[Array, Array]]

    def rows(self, numbers: Iterable[int]) -> tuple[list[int], Array, Array]:
        """The first of these steady numbers, by how often they change, that fit into rows; the row of each combination
        of lengths, -1 if it does not hold; and the rows, int64 [rows, numbers]."""
        chosen, starts = list[int](), np.zeros(1, np.int64)
        for at in sorted(numbers, key=lambda at: (len(self.steady[at][0]), at)):
            both = np.union1d(starts, self.steady[at][0])
            if len(both) > MOST_ROWS or len(both) * (len(chosen) + 1) > MOST_CELLS:
                break
            chosen.append(at)
            starts = both
        row = np.full(self.holds.shape, -1)
        row[self.holds] = np.searchsorted(starts, np.arange(np.count_nonzero(self.holds)), side="right") - 1
        cells = np.zeros((len(starts), len(chosen)), np.int64)
        for column, (own, bits) in enumerate(map(self.steady.__getitem__, chosen)):
            cells[:, column] = bits[np.searchsorted(own, starts, side="right") - 1]
        return chosen, row, cells


def all_lengths(trace: Trace, wanted: Iterable[int]) -> AllLengths | None:
    """Evaluates a trace for all of its lengths, as far as the wanted numbers need; None if these are too many."""
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
    combinations = math.prod(counts)
    if combinations > MOST_LENGTHS or combinations * len(trace.steps) > MOST_NUMBERS:
        return None
    places = np.indices(counts).reshape(len(lengths), -1)
    holds, conditions = np.ones(combinations, bool), set[int]()
    numbers = Vectorized(trace, [places[lengths.index(alike[at])] for at in range(count)])
    for at, (array, valid) in numbers.each(trace.conditions.keys() - pairs):
        holds &= (array == trace.conditions[at]) & valid
        conditions.add(at)
    if not holds.reshape(counts)[tuple(trace.values[at] for at in lengths)]:
        return None  # numbers are too large
    same, known, seen = dict[int, int](), dict[int, int | float](), dict[object, int]()
    steady = dict[int, tuple[Array, Array]]()
    places = places[:, holds]
    numbers = Vectorized(trace, [places[lengths.index(alike[at])] for at in range(count)])
    used = numbers.needed([*wanted, *(trace.conditions.keys() - conditions)])
    for at, (array, valid) in numbers.each((*range(count), *used.difference(pairs))):
        is_float = isinstance(trace.values[at], float)
        if not isinstance(array, np.ndarray) or (array.dtype == np.float64) is not is_float or not np.all(valid):
            continue
        bits = np.ascontiguousarray(array).view(np.int64)
        changes = np.flatnonzero(bits[1:] != bits[:-1]) + 1
        if not len(changes):
            known[at] = array[0].item()
            continue
        first = seen.setdefault((is_float, digest(bits).digest()), at)
        if first != at and at >= count:
            same[at] = first
        elif at >= count and len(changes) < MOST_ROWS:
            starts = np.concatenate([[0], changes])
            steady[at] = starts, bits[starts]
    return AllLengths(lengths, holds.reshape(counts), frozenset(conditions), same, known, steady)
