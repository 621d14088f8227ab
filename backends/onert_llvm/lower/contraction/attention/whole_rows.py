"""Matrices whose rows are whole in memory, read and written through transposes that are not computed."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from attrs import frozen

from onert.ir import Subgraph
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.symbolic.sizes import are_same


@frozen(eq=False)
class Rows:
    """Matrices whose rows are whole in memory: a tensor, in another order of its axes if a transpose of it is not
    computed but read through."""

    operand: int
    order: tuple[int, ...]
    transpose: int | None = None

    def shape(self, own: Sequence[int]) -> tuple[int, ...]:
        """The shape in this order."""
        return tuple(own[axis] for axis in self.order)

    def strides(self, own: Sequence[int]) -> tuple[int, ...]:
        """How many elements apart neighbours are along each axis; 0 for axes of size 1."""
        apart = [0 if are_same(size, 1) else math.prod(own[axis + 1 :]) for axis, size in enumerate(own)]
        return tuple(apart[axis] for axis in self.order)


def rows_of(subgraph: Subgraph, operand: int, among: Collection[int]) -> Rows:
    """An operand, read through the transpose that makes it if this moves whole rows and nothing else reads them."""
    found = transposed(subgraph, operand, among)
    if found is not None and found.order[-1] == len(found.order) - 1:
        return found
    return Rows(operand, tuple(range(subgraph.type(operand).rank)))


def stored(subgraph: Subgraph, operand: int, among: Collection[int]) -> Rows:
    """Where the result goes: through the transpose that alone reads it, if this moves whole rows."""
    at = only_use(subgraph, operand, among)
    order = None if at is None else _order(subgraph, at)
    if at is None or not order or order[-1] != len(order) - 1:
        return Rows(operand, tuple(range(subgraph.type(operand).rank)))
    back = tuple(order.index(axis) for axis in range(len(order)))
    return Rows(subgraph.operations[at].outputs[0], back, at)


def transposed(subgraph: Subgraph, operand: int, among: Collection[int]) -> Rows | None:
    """The transpose that makes an operand for a single reader; None if there is none."""
    at = made_for(subgraph, operand, among)
    order = None if at is None else _order(subgraph, at)
    return None if at is None or not order else Rows(subgraph.operations[at].used[0], order, at)


def made_for(subgraph: Subgraph, operand: int, among: Collection[int]) -> int | None:
    """The operation that computes an operand with a single use."""
    at = subgraph.definitions.get(operand)
    return at if at in among and only_use(subgraph, operand, among) is not None else None


def only_use(subgraph: Subgraph, operand: int, among: Collection[int]) -> int | None:
    uses = subgraph.uses.get(operand, ())
    return uses[0] if len(uses) == 1 and operand not in subgraph.kept and uses[0] in among else None


def _order(subgraph: Subgraph, at: int) -> tuple[int, ...] | None:
    """The order in which a transpose puts axes; None for other operations, and if only the run knows it."""
    operation = subgraph.operations[at]
    if not isinstance(operation.op, Transpose):
        return None
    rank, axes = subgraph.type(operation.outputs[0]).rank, subgraph.operands[operation.used[1]].known.value
    return None if axes is None else tuple(int(axis) % rank for axis in axes.reshape(-1))
