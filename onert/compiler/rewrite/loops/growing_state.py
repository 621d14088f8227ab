"""Loops whose state grows: the room it needs, and whether the loop fills it."""

from __future__ import annotations

from collections.abc import Sequence

from onert.compiler.rewrite.counts.counted_types import CountedType, common_type
from onert.ir import Subgraph
from onert.ir.shape import static

from .trip_counts import exact_trips, growth


def filled(
    condition: Subgraph, body: Subgraph, starts: Sequence[CountedType], state: Sequence[CountedType]
) -> frozenset[int]:
    """The positions in the state that grow by the same amount in each round of a loop with a known number of rounds:
    at the end their room is filled completely."""
    rounds = exact_trips(condition, body, [each.type for each in starts])
    if rounds is None:
        return frozenset()
    counted = [(at, axis) for at, type_ in enumerate(state) for axis in type_.axes]
    found, partly_filled = set[int](), set[int]()
    for count_position, (at, axis) in enumerate(counted, len(state)):
        start, step = starts[at], growth(body, count_position)
        most_entries = None if step is None else (start.type.shape[axis] or 0) + rounds * step
        (partly_filled if start.axes or most_entries != state[at].type.shape[axis] else found).add(at)
    return frozenset(found - partly_filled)


def widened(first: CountedType, before: CountedType, after: CountedType, rounds: int | None) -> CountedType | None:
    """Room for a loop's state, of which one round turns `before` into `after`; None if it grows in an unknown number of
    rounds, or too much.

    The room along an axis is that of `first`, plus what one round adds times the number of rounds.
    """
    found = common_type(before, after)
    sizes = list(static(before.type.shape))
    for axis in () if found is None else found.axes:
        size_before, size_after = before.type.shape[axis] or 0, after.type.shape[axis] or 0
        if size_after > size_before:
            if rounds is None:
                return None
            sizes[axis] = max(size_before, (first.type.shape[axis] or 0) + rounds * (size_after - size_before))
    return None if found is None else found.sized(sizes)
