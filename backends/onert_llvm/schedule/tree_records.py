"""Decision trees as records of four numbers, which kernels descend without branches."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.ops.lookup.trees import Test
from onert_llvm.kernels.lookup.trees import CHILD, EXTRA, FEATURE, NUMBER, RECORD, TREES

MOST_STEPS = 1 << 9
"""The longest path, in nodes. Trained trees usually have about ten."""
_WORDS: dict[np.dtype[Any], type[np.int32 | np.int64]] = {
    np.dtype(np.float32): np.int32,
    np.dtype(np.float64): np.int64,
}
"""The integers of the size of a number."""


@frozen(eq=False)
class Records:
    """`nodes` int32 or int64 `[count, 4]`, `roots` as element offsets, and the most steps per tree and per `TREES`
    trees."""

    nodes: Array
    roots: Array
    steps: Array
    together: Array
    negated: bool


@frozen(eq=False)
class _Nodes:
    """Nodes that test whether a number, possibly negated, is at most another.

    NaN never is: it follows `second`. A child below 0 is leaf -1 - n.
    """

    features: Array
    numbers: Array
    negated: Array
    first: Array
    second: Array


def records(parts: dict[str, Array], votes: Array | None) -> Records | None:
    """The records of trees that an operation holds as lists; None if a path is circular or too long.

    Siblings are adjacent, and each tree is stored breadth-first. A subtree with several parents is stored once; the
    other parents lead to a record that redirects to it. `votes` are the values of leaves that have one each, otherwise
    leaves hold their numbers. Records have the precision of `parts["numbers"]`, and `votes` too.
    """
    nodes = _normalized_tests(parts)
    leaves = len(parts["starts"]) - 1
    table, roots = _laid_out(nodes, parts["roots"].astype(np.int64), np.arange(leaves) if votes is None else votes)
    heights = _heights(table)
    if heights is None:
        return None
    steps = heights[roots]
    together = [int(steps[at : at + TREES].max()) for at in range(0, len(steps), TREES)]
    negated = bool(nodes.negated.any())
    table[:, CHILD] *= RECORD
    return Records(table, (roots * RECORD).astype(np.int32), steps, np.array(together, np.int32), negated)


def _normalized_tests(parts: dict[str, Array]) -> _Nodes:
    """Convert every test to such nodes.

    "Less than t" is "at most the float before t". "Greater" is "at most" with both sides negated, so that NaN follows
    `second`, whichever branch that is. "Equal" takes two nodes, and a third if NaN passes.
    """
    tests, t = parts["tests"].astype(np.int64), parts["numbers"]
    yes, no, missing = parts["yes"].astype(np.int64), parts["no"].astype(np.int64), parts["missing"] != 0
    features, count = parts["features"].astype(np.int64), len(tests)
    equal, unequal = (tests == kind.value for kind in (Test.EQUAL, Test.NOT_EQUAL))
    yes, no = np.where(unequal, no, yes), np.where(unequal, yes, no)
    missing &= ~unequal  # NaN equals nothing, so it passes already
    below = _next_float(t, -np.inf)
    greater = np.isin(tests, (Test.GREATER.value, Test.GREATER_EQUAL.value))
    strict = np.isin(tests, (Test.LESS.value, Test.GREATER_EQUAL.value))
    at_most = np.where(strict, below, t)  # at most this, or greater than it
    one, other = np.where(greater, no, yes), np.where(greater, yes, no)
    last = np.where(missing == greater, other, one)  # where NaN goes
    less_last = last == one
    first, second = np.where(less_last, other, one), np.where(less_last, one, other)
    both = equal | unequal
    above = np.where(np.isnan(at_most), t.dtype.type(-np.inf), _next_float(at_most, np.inf))
    numbers = np.where(both, t, np.where(less_last, -above, at_most))
    negated = less_last & ~both
    exact, asked = np.flatnonzero(both), np.flatnonzero(both & missing)
    second_test = count + np.arange(len(exact))
    third_test = count + len(exact) + np.arange(len(asked))
    first = np.where(both, 0, first)
    second = np.where(both, no, second)
    first[exact] = second_test
    more = _Nodes(
        np.concatenate([features, features[exact], features[asked]]),
        np.concatenate([numbers, below[exact], numbers[asked]]),
        np.concatenate([negated, np.zeros(len(exact) + len(asked), np.bool_)]),
        np.concatenate([first, no[exact], first[asked]]),
        np.concatenate([second, yes[exact], second[asked]]),
    )
    more.numbers[asked], more.first[asked], more.second[asked] = np.inf, third_test, yes[asked]
    return more


def _next_float(numbers: Array, side: float) -> Array:
    """The next number towards a side; beyond infinity NaN, which nothing is at most."""
    real = numbers.dtype.type
    with np.errstate(over="ignore"):
        found: Array = np.where(numbers == side, real(np.nan), np.nextafter(numbers, real(side)))
    return found


def _laid_out(nodes: _Nodes, roots: Array, leaf_values: Array) -> tuple[Array, Array]:
    """The records and the positions of roots. `CHILD` counts records here; a leaf's is the one before it."""
    place = np.full(len(nodes.features), -1)
    tree, here = np.arange(len(roots)), roots
    levels: list[tuple[Array, Array, Array]] = []  # per record: its tree, its node, whether it redirects to another
    while len(here):
        inner = here >= 0
        new = np.zeros(len(here), np.bool_)
        if inner.any():
            found, at = np.unique(here[inner], return_index=True)
            fresh = place[found] < 0
            new[np.flatnonzero(inner)[at[fresh]]] = True
            place[found[fresh]] = 0
        levels.append((tree, here, inner & ~new))
        spread = here[new]
        here = np.stack([nodes.first[spread], nodes.second[spread]], 1).reshape(-1)
        tree = np.repeat(tree[new], 2)
    trees, which, leads_on = (np.concatenate([level[i] for level in levels]) for i in range(3))
    order = np.argsort(trees, kind="stable")
    slots = np.empty(len(order), np.int64)
    slots[order] = np.arange(len(order))
    own = (which >= 0) & ~leads_on
    place[which[own]] = slots[own]
    # The children of the expanded nodes follow the roots, in the order of expansion.
    children = slots[len(roots) :: 2]
    word = _WORDS[nodes.numbers.dtype]
    table: Array = np.zeros((len(order), RECORD), word)
    node = which[own]
    table[slots[own], FEATURE] = nodes.features[node]
    table[slots[own], NUMBER] = nodes.numbers[node].view(word)
    table[slots[own], CHILD] = children
    table[slots[own], EXTRA] = np.where(nodes.negated[node], np.iinfo(word).min, 0)
    table[slots[~own], NUMBER] = _nan(table)
    leaf = which < 0
    table[slots[leaf], CHILD] = slots[leaf] - 1
    found = leaf_values[-1 - which[leaf]]
    table[slots[leaf], EXTRA] = found.view(word) if leaf_values.dtype.kind == "f" else found
    table[slots[leads_on], CHILD] = place[which[leads_on]] - 1
    return table, slots[: len(roots)]


def _nan(table: Array) -> int:
    """The number of a record that is no test, as an integer of the table."""
    return int(np.array(np.nan, f"f{table.itemsize}").view(table.dtype))


def _heights(table: Array) -> Array | None:
    """The most steps below each record; None for a cycle and for too long paths.

    Computed from the leaves upwards: each round settles the records whose successors are all settled.
    """
    at = np.arange(len(table))
    second = table[:, CHILD].astype(np.int64) + 1
    alone = table[:, NUMBER] == _nan(table)
    first = np.where(alone, second, second - 1)
    settled = second == at
    heights: Array = np.zeros(len(table), np.int32)
    for length in range(1, MOST_STEPS + 2):
        if settled.all():
            return heights
        now = ~settled & settled[first] & settled[second]
        if not now.any():
            return None
        heights[now] = length
        settled |= now
    return None
