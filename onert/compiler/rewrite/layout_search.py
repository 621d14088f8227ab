"""A search for the orders in which operations run that leave the fewest bytes to transpose."""

from __future__ import annotations

from collections.abc import Iterable

from .layout_table import Order
from .layouts import Layouts, Use

_SWEEPS = 8
"""The most iterations over all roots: real graphs settle in two or three."""
Failed = dict[tuple[int, Order], frozenset[int]]
"""Seeds that saved nothing, and the operations on whose orders that depends."""


def improve(layouts: Layouts, steps: int = 1 << 16) -> bool:
    """Choose orders that cost less, until none is found or `steps` are used up. Returns whether any was found."""
    improved = False
    failed: Failed = {}
    for _ in range(_SWEEPS):
        before = dict(layouts.layout)
        for root in layouts.uses:
            changes, used = _better(layouts, root, steps, failed)
            steps -= used
            if changes:
                layouts.choose(changes)
                for seed in [seed for seed, near in failed.items() if not near.isdisjoint(changes)]:
                    del failed[seed]
        if layouts.layout == before:
            break
        improved = True
    return improved


def _better(layouts: Layouts, root: int, steps: int, failed: Failed) -> tuple[dict[int, Order], int]:
    """The first orders found that lower the cost at a root (empty if there are none), and the steps used. Seeds that
    `failed` are not tried again, and added to."""
    if steps <= 0 or not layouts.cost(root, {}):
        return {}, 0
    used = 0
    for at, order in _seeds(layouts, root):
        if (at, order) in failed:
            continue
        region, near, more = _spread(layouts, at, order, steps - used)
        used += more + 1
        changes, gain = _trimmed(layouts, region)
        if gain < 0:
            return changes, used
        # Seeds inside of the region nearly always lead to the same one: large models have a hundred seeds for each.
        failed.update(dict.fromkeys(region.items(), near))
    return {}, used


def _seeds(layouts: Layouts, root: int) -> Iterable[tuple[int, Order]]:
    """Operations, with orders, that would avoid a transpose of a root."""
    first = layouts.produced_order(root, {})
    for use in tuple(layouts.uses[root]):
        then = layouts.required_order(use.movable, use.order, {})
        if layouts.free(root, first, then):
            continue
        if use.movable is not None:
            order = layouts.layout_for(use.movable, use, first)
            if order is not None:
                yield use.movable, order
        if root in layouts.producer:
            order = layouts.layout_for(layouts.producer[root], None, then)
            if order is not None:
                yield layouts.producer[root], order


def _spread(layouts: Layouts, at: int, order: Order, steps: int) -> tuple[dict[int, Order], frozenset[int], int]:
    """The order of one operation and of all surrounding operations that can follow it, the operations that share roots
    with these, and the steps used."""
    changes, near, pending, used = {at: order}, {at}, [at], 0
    while pending and used < steps:
        now = pending.pop()
        for root in layouts.roots_of(now):
            if layouts.subgraph.operands[root].is_constant:
                continue
            uses, producer = layouts.uses.get(root, ()), layouts.producer.get(root)
            if producer == now:
                new = layouts.produced_order(root, changes)
            else:
                read = next(use for use in uses if use.movable == now)
                new = layouts.required_order(now, read.order, changes)
            neighbours: list[tuple[int, Use | None]] = [(u.movable, u) for u in uses if u.movable is not None]
            if producer is not None:
                neighbours.append((producer, None))
            used += len(neighbours)
            for other, use in neighbours:
                near.add(other)
                if other in changes:
                    continue
                if use is None:
                    current = layouts.produced_order(root, changes)
                else:
                    current = layouts.required_order(other, use.order, changes)
                if current == new:
                    continue
                layout = layouts.layout_for(other, use, new)
                if layout is not None:
                    changes[other] = layout
                    pending.append(other)
    return changes, frozenset(near), used


def _trimmed(layouts: Layouts, changes: dict[int, Order]) -> tuple[dict[int, Order], int]:
    """The changes without those that cost more than they save, and the additional cost of the rest."""
    kept = dict(changes)
    count = len(kept)
    for at, order in reversed(changes.items()):
        if count > 1:
            kept[at] = ()  # the operation runs as before
            fewer = layouts.cost_around((at,), kept)
            kept[at] = order
            if fewer < layouts.cost_around((at,), kept):
                kept[at] = ()
                count -= 1
    kept = {at: order for at, order in kept.items() if order}
    return kept, layouts.difference(kept)
