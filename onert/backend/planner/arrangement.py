"""The placement of tensors in one memory: an arena, a bundle's activations, or the scratch memory of a loop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.backend.planner import PLANNERS
from onert.ir.symbolic.trace import largest
from onert.ir.value import ByIdentity

from .antichain import MOST, heaviest_antichain
from .liveness import Lifetimes, PartialOrder
from .problem import PlanningProblem, height, neighbours

MOST_PAIRS = 1 << 21
"""The most pairs of simultaneously live tensors for which a plan is made; beyond it, tensors share no memory."""


@frozen(eq=False)
class Arrangement(ByIdentity):
    """Each tensor's offset, the total size, a lower bound for any plan's size, and the planner's name."""

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
    """Place tensors of these sizes in one memory so that no two that may be alive at the same time overlap.

    Offsets are multiples of `alignment`, a power of two. `order` says which tensors may be alive at the same time if
    steps have no fixed order; None if the model is too large to tell. Symbolic sizes are planned at their maximum.
    """
    nbytes = [largest(n) for n in nbytes]
    sizes = (np.array(nbytes, np.int64) + (alignment - 1)) & -alignment
    near = None if order is None else neighbours(sizes, order.overlaps, MOST_PAIRS)
    planner = "Bump" if near is None else planner
    if isinstance(order, PartialOrder) and len(sizes) <= MOST:
        bound = heaviest_antichain(sizes, order.before)
    else:
        bound = alive.peak(sizes)  # another order may need more, so this is still a lower bound
    problem = PlanningProblem(sizes.tolist(), alignment, alive.first, alive.last, near or (), bound)
    offsets = PLANNERS[planner](problem)
    return Arrangement(offsets, height(problem, offsets), bound, planner)
