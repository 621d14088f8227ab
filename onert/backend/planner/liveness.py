"""Liveness: which tensors may be alive at the same time."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from attrs import frozen

from onert.ir import Subgraph
from onert.ir.value import ByIdentity

from .problem import Integers, Mask

MOST_STEPS = 1 << 11  # beyond these limits concurrency is not analysed: the matrices would be too large
MOST_TENSORS = 1 << 12


@frozen(eq=False)
class Lifetimes(ByIdentity):
    """First and last moment of each tensor on the timeline, both included."""

    first: Integers
    last: Integers

    def overlaps(self, index: int) -> Mask:
        """The tensors alive at some moment at which tensor `index` is alive."""
        mask: Mask = (self.first <= self.last[index]) & (self.last >= self.first[index])
        return mask

    def peak(self, sizes: Integers) -> int:
        """The largest total size alive at one moment."""
        if not len(sizes):
            return 0
        change = np.zeros(int(self.last.max()) + 2, np.int64)
        np.add.at(change, self.first, sizes)
        np.subtract.at(change, self.last + 1, sizes)
        return int(np.cumsum(change).max())


def lifetimes(
    subgraph: Subgraph, tensors: Sequence[Sequence[int]], when: Sequence[int], given: Collection[int] = ()
) -> Lifetimes:
    """The lifetimes of tensors, each given as the operands that share it; `when` maps operations to moments.

    A tensor lives from its definition to its last use. A tensor that updates state lives to the end of the run, and one
    with an operand in `given` from the beginning.
    """
    spans = [_span(subgraph, operands, when, given) for operands in tensors]
    return Lifetimes(np.array([s[0] for s in spans], np.int64), np.array([s[1] for s in spans], np.int64))


def _span(subgraph: Subgraph, operands: Sequence[int], when: Sequence[int], given: Collection[int]) -> tuple[int, int]:
    moments = [when[at] for at in _touching(subgraph, operands)]
    first = 0 if any(operand in given for operand in operands) else min(moments)
    lasts = any(operand in subgraph.kept for operand in operands)
    return first, max(when if lasts else moments, default=0)


def _touching(subgraph: Subgraph, operands: Sequence[int]) -> set[int]:
    """The operations that define or read one of the operands."""
    found = {subgraph.definitions[operand] for operand in operands if operand in subgraph.definitions}
    for operand in operands:
        found.update(subgraph.uses.get(operand, ()))
    return found


@frozen(eq=False)
class PartialOrder(ByIdentity):
    """`before[a, b]`: whether all uses of tensor `a` precede the definition of tensor `b` in every valid order."""

    before: Mask

    def overlaps(self, index: int) -> Mask:
        """The tensors that may be alive at the same time as tensor `index`."""
        mask: Mask = ~(self.before[index] | self.before[:, index])
        return mask


def in_any_order(
    subgraph: Subgraph,
    tensors: Sequence[Sequence[int]],
    when: Sequence[int],
    steps: Sequence[int],
    dependencies: Sequence[Sequence[int]],
) -> PartialOrder | None:
    """The order of tensors if steps may run in any order that their dependencies allow, or concurrently; `steps` maps
    moments to steps.

    Two tensors may share memory only if every step that touches one must have run before the step that defines the
    other; within one step, moments decide. None if the model is too large for this analysis.
    """
    if len(dependencies) > MOST_STEPS or len(tensors) > MOST_TENSORS:
        return None
    return PartialOrder(_done_before(subgraph, tensors, when, np.array(steps, np.int64), reachability(dependencies)))


def reachability(dependencies: Sequence[Sequence[int]]) -> Mask:
    """`[a, b]`: whether step `a` must have run before step `b`."""
    before = np.zeros((len(dependencies), len(dependencies)), np.bool_)
    for step, needed in enumerate(dependencies):
        for other in needed:
            before[:, step] |= before[:, other]
            before[other, step] = True
    return before


def _done_before(
    subgraph: Subgraph, tensors: Sequence[Sequence[int]], when: Sequence[int], steps: Integers, before: Mask
) -> Mask:
    """`[a, b]`: whether all uses of tensor `a` precede the definition of tensor `b` in every valid order."""
    touches = np.zeros((len(tensors), len(before)), np.bool_)
    last = np.full((len(tensors), len(before)), -1, np.int64)  # the last moment within each step
    start = np.zeros(len(tensors), np.int64)
    forever = np.zeros(len(tensors), np.bool_)
    for index, operands in enumerate(tensors):
        for at in _touching(subgraph, operands):
            moment = when[at]
            step = steps[moment]
            touches[index, step] = True
            last[index, step] = max(last[index, step], moment)
        start[index] = _span(subgraph, operands, when, ())[0]
        forever[index] = any(o in subgraph.kept for o in operands)
    makers = steps[start]
    # Count the steps that touch `a` and need not precede the step that defines `b`, with a matrix product.
    late = touches.astype(np.float32) @ (~before).astype(np.float32)
    own = touches[:, makers]  # whether the step that defines `b` also touches `a`
    earlier = last[:, makers] < start[np.newaxis, :]
    done: Mask = ((late[:, makers] == 0) | ((late[:, makers] == 1) & own & earlier)) & ~forever[:, np.newaxis]
    return done
