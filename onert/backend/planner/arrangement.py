"""Where tensors lie in one memory: an arena, that of a bundle's callers, the scratch memory of a loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.backend.planner import PLANNERS
from onert.ir.symbolic.trace import largest
from onert.ir.value import Told

from .antichain import MOST, heaviest_antichain
from .claims import Claims, height, neighbours
from .liveness import Lifetimes, PartialOrder

MOST_PAIRS = 1 << 21
"""How many pairs of tensors alive at a time a plan is made for; with more, every tensor has memory of its own."""


@frozen(eq=False)
class Arrangement(Told):
    """An offset for each tensor, the bytes that this takes, those that no plan can beat, and the planner it is by."""

    offsets: Sequence[int]
    size: int
    bound: int
    planner: str


def arranged(
    nbytes: Sequence[int],
    alive: Lifetimes,
    alignment: int,
    planner: str = "Best",
    order: Lifetimes | PartialOrder | None = None,
) -> Arrangement:
    """Tensors of so many bytes in one memory, those that may be alive at a time in different places.

    Offsets are multiples of `alignment`, a power of two. `order` says which may be alive at a time where steps keep no
    fixed order; None for a model too large to say. Symbolic sizes are planned for the largest that they may be.
    """
    nbytes = [largest(n) for n in nbytes]
    sizes = (np.array(nbytes, np.int64) + (alignment - 1)) & -alignment
    near = None if order is None else neighbours(sizes, order.overlaps, MOST_PAIRS)
    planner = "Bump" if near is None else planner
    if isinstance(order, PartialOrder) and len(sizes) <= MOST:
        bound = heaviest_antichain(sizes, order.before)
    else:
        bound = alive.peak(sizes)  # in another order there may be more: still a bound
    claims = Claims(sizes.tolist(), alignment, alive.first, alive.last, near or (), bound)
    offsets = PLANNERS[planner](claims)
    return Arrangement(offsets, height(claims, offsets), bound, planner)
