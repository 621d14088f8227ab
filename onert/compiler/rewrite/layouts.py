"""Layout optimisation: the cost of transposes, and a search for axis orders that cost less.

A tensor is a root (an operation's result, an input or a constant) with its axes in some order; transposes only change
the order. An operation in the table can run with its blocks in any order, which determines the orders in which it needs
its operands' roots and produces its results. If a root is needed in another order than it is produced in, it is
transposed once for each such order. That costs its bytes, almost nothing if no element moves, nothing for a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from onert.ir import CallTypes, Operation, Subgraph, TensorType
from onert.ir.symbolic.sizes import are_ones, are_same
from onert.ir.symbolic.trace import hint
from onert.ir.value import Value

from .layout_table import Block, Order, Orders, Row, blocks_of, moved_operands, row_of

UNKNOWN = 32
"""The assumed size of an unknown dimension."""
_APART = 1
_MOVE = 1 << 4
_BYTE = 1 << 28
"""Costs: moved bytes count first, then the number of transposes, then how often one separates an operation from a
layer before it that it could be fused with."""
_SWEEPS = 8
"""The most iterations over all roots: real graphs settle in two or three."""


def identity(rank: int) -> Order:
    """The identity permutation."""
    return tuple(range(rank))


def composed(first: Order, then: Order) -> Order:
    """The composition of two transposes."""
    return tuple(first[axis] for axis in then)


def between(first: Order, second: Order) -> Order:
    """The transpose from one order to another."""
    return tuple(first.index(axis) for axis in second)


def moves_nothing(shape: tuple[int | None, ...], order: Order) -> bool:
    """Whether dimensions other than 1 keep their order, whatever the value of symbolic ones."""
    kept = [axis for axis in order if not are_same(shape[axis], 1)]
    return kept == sorted(kept)


@frozen
class Movable(Value):
    """An operation in the table: its blocks, and the operands whose axes move with them."""

    at: int
    operation: Operation
    types: CallTypes
    row: Row
    blocks: tuple[Block, ...]
    moved: tuple[int, ...]
    """Positions of operands of full rank."""
    narrow: tuple[int, ...]
    """Positions of lower-rank operands, which are broadcast and have more than one element."""

    @property
    def original(self) -> Order:
        return tuple(range(len(self.blocks)))

    def orders(self, layout: Order) -> Orders:
        """The orders of axes for an order of blocks."""
        return Orders(
            tuple(axis for b in layout for axis in self.blocks[b][0]),
            tuple(axis for b in layout for axis in self.blocks[b][1]),
        )

    def allows(self, layout: Order) -> bool:
        count = self.row.last
        return count == 0 or layout[-count:] == self.original[-count:]

    def layout_of(self, axes: Order, side: int) -> Order | None:
        """The order of blocks that puts the axes on a side (0: operands, 1: results) in this order; None if none does.

        Blocks without axes on that side stay behind the block that they follow.
        """
        starts = {block[side][0]: i for i, block in enumerate(self.blocks) if block[side]}
        found = [i for i, block in enumerate(self.blocks) if not self._before(i, side)]
        at = 0
        while at < len(axes):
            block = starts.get(axes[at])
            if block is None or axes[at : at + len(self.blocks[block][side])] != self.blocks[block][side]:
                return None
            at += len(self.blocks[block][side])
            found.append(block)
            follows = block + 1
            while follows < len(self.blocks) and not self.blocks[follows][side]:
                found.append(follows)
                follows += 1
        return tuple(found) if self.allows(tuple(found)) else None

    def _before(self, block: int, side: int) -> bool:
        """Whether a block, or one before it, has axes on a side."""
        return any(self.blocks[i][side] for i in range(block + 1))


@frozen
class Use(Value):
    """A use of a root: an operand of a movable operation (its index), or (None) of one that does not move."""

    movable: int | None
    position: int
    order: Order
    """The operand's axes in terms of its root's."""


@define(eq=False)
class Layouts:
    """A subgraph's roots and movable operations, and the order of blocks in which each operation runs."""

    subgraph: Subgraph
    root: dict[int, tuple[int, Order]]
    """For each operand: its root, and its axes in terms of the root's."""
    movable: dict[int, Movable]
    uses: dict[int, list[Use]]
    producer: dict[int, int]
    """The movable operation that produces each root."""
    layout: dict[int, Order] = field(factory=dict)
    """The order of blocks of each operation that does not run in its original order."""
    _orders: dict[tuple[int, Order], Orders] = field(factory=dict)
    """The orders of axes of operations, by the order of their blocks: a search needs few of them, many times each."""
    _roots: dict[int, tuple[int, ...]] = field(factory=dict)
    """What `roots_of` found."""
    _moves: dict[tuple[int, Order, Order], int] = field(factory=dict)
    """The costs of transposes of roots."""

    def type(self, root: int) -> TensorType:
        return self.subgraph.type(root)

    def running(self, at: int) -> Order:
        """The order of blocks in which a movable operation runs."""
        return self.layout.get(at) or self.movable[at].original

    def produced_order(self, root: int, layouts: Mapping[int, Order]) -> Order:
        """The order in which a root is produced."""
        at = self.producer.get(root)
        if at is None:
            return self.root[root][1]
        return self._orders_of(at, layouts).result

    def required_order(self, use: Use, layouts: Mapping[int, Order]) -> Order:
        """The order in which a use needs its root."""
        if use.movable is None:
            return use.order
        return composed(use.order, self._orders_of(use.movable, layouts).operand)

    def _orders_of(self, at: int, layouts: Mapping[int, Order]) -> Orders:
        chosen = layouts.get(at) or self.running(at)
        found = self._orders.get((at, chosen))
        if found is None:
            found = self._orders[at, chosen] = self.movable[at].orders(chosen)
        return found

    def free(self, root: int, first: Order, then: Order) -> bool:
        """Whether a root in one order is available in another without an operation."""
        return first == then or self.subgraph.operands[root].is_constant

    def cost(self, root: int, layouts: Mapping[int, Order]) -> int:
        """The cost of all transposes of a root."""
        uses = self.uses.get(root)
        if uses is None or self.subgraph.operands[root].is_constant:
            return 0
        first = self.produced_order(root, layouts)
        required = {self.required_order(use, layouts) for use in uses}
        moves = sum(self._move(root, first, then) for then in required if not self.free(root, first, then))
        return moves + _APART if moves and self._is_followed(root, uses) else moves

    def _is_followed(self, root: int, uses: list[Use]) -> bool:
        """Whether a layer's result is read only by operations that could be fused with it."""
        layer = root in self.subgraph.definitions and root not in self.producer
        return layer and all(use.movable is not None for use in uses)

    def _move(self, root: int, first: Order, then: Order) -> int:
        """The cost of a transpose, or of a reshape if no element moves."""
        found = self._moves.get((root, first, then))
        if found is None:
            shape = self.type(root).shape
            moves_none = moves_nothing(tuple(shape[a] for a in first), between(first, then))
            found = _MOVE if moves_none else size(self.type(root)) * _BYTE + _MOVE
            self._moves[root, first, then] = found
        return found

    def own_cost(self, at: int, layouts: Mapping[int, Order]) -> int:
        """The cost of transposing an operation's operands of lower rank."""
        each, total = self.movable[at], 0
        order = self._orders_of(at, layouts).operand
        if order == identity(len(order)):
            return 0
        for position in each.narrow:
            type_ = each.types.input(position)
            shape = (*(1,) * (len(order) - type_.rank), *type_.shape)
            operand = each.operation.inputs[position]
            if (
                operand is not None
                and not self.subgraph.operands[operand].is_constant
                and not moves_nothing(shape, order)
            ):
                total += size(type_) * _BYTE + _MOVE
        return total

    def roots_of(self, at: int) -> tuple[int, ...]:
        """The roots that an operation reads and produces."""
        if at not in self._roots:
            operation = self.movable[at].operation
            operands = [operation.inputs[i] for i in self.movable[at].moved]
            found = [self.root[i][0] for i in operands if i is not None] + list(operation.outputs)
            self._roots[at] = tuple(dict.fromkeys(found))
        return self._roots[at]

    def difference(self, changes: Mapping[int, Order]) -> int:
        """The additional cost if these operations run in these orders."""
        return self.cost_around(changes, changes) - self.cost_around(changes, {})

    def cost_around(self, operations: Iterable[int], layouts: Mapping[int, Order]) -> int:
        """The cost of moving the roots that some operations read and produce, including their own cost."""
        operations = tuple(operations)
        roots = dict.fromkeys(root for at in operations for root in self.roots_of(at))
        return sum(self.cost(root, layouts) for root in roots) + sum(self.own_cost(at, layouts) for at in operations)

    def layout_for(self, at: int, root: int, use: Use | None, order: Order) -> Order | None:
        """The order of blocks with which an operation produces (or for a `use`, needs) a root in `order`, or None."""
        each = self.movable[at]
        if use is None:
            return each.layout_of(order, 1)
        return each.layout_of(between(use.order, order), 0)


def size(type_: TensorType) -> int:
    """The bytes of a tensor, with unknown dimensions as `UNKNOWN`."""
    count = 1
    for dim in type_.shape:
        count *= UNKNOWN if dim is None else dim
    return count * type_.dtype.itemsize


def layouts_of(subgraph: Subgraph, orders: Mapping[int, Order]) -> Layouts:
    """The roots of a subgraph with the given transposes: their orders by operation."""
    root: dict[int, tuple[int, Order]] = {}
    movable: dict[int, Movable] = {}
    uses: dict[int, list[Use]] = {}
    producer: dict[int, int] = {}
    for operand in range(len(subgraph.operands)):
        if operand not in subgraph.definitions:
            root[operand] = operand, identity(subgraph.type(operand).rank if subgraph.type(operand).ranked else 0)
    for at, operation in enumerate(subgraph.operations):
        if at in orders:
            source, first = root[operation.used[0]]
            root[operation.outputs[0]] = source, composed(first, orders[at])
            continue
        each = _movable(subgraph, at, operation)
        for output in operation.outputs:
            root[output] = output, identity(subgraph.type(output).rank if subgraph.type(output).ranked else 0)
        if each is not None:
            movable[at] = each
            producer.update(dict.fromkeys(operation.outputs, at))
        for position, operand_ in enumerate(operation.inputs):
            if operand_ is not None:
                source, order = root[operand_]
                moves = each is not None and position in each.moved
                uses.setdefault(source, []).append(Use(at if moves else None, position, order))
    for output_ in sorted(subgraph.kept):
        source, order = root[output_]
        uses.setdefault(source, []).append(Use(None, -1, order))
    return Layouts(subgraph, root, movable, uses, producer)


def _movable(subgraph: Subgraph, at: int, operation: Operation) -> Movable | None:
    types = subgraph.types(operation)
    row = row_of(operation.op, types)
    blocks = None if row is None else blocks_of(operation.op, types, row)
    if row is None or blocks is None or not operation.outputs:
        return None
    positions = moved_operands(row, types)
    rank = sum(len(b) for b, _ in blocks)
    full = tuple(i for i in positions if types.input(i).rank == rank)
    narrow = tuple(i for i in positions if types.input(i).rank < rank and not are_ones(types.input(i).shape))
    if not full or any(not types.input(i).is_static for i in narrow):
        return None
    return Movable(at, operation, types, row, blocks, full, narrow)


def improve(layouts: Layouts, steps: int = 1 << 16) -> bool:
    """Choose orders that cost less, until none is found or `steps` are used up. Returns whether any was found.

    If sizes are symbolic, the costs of their current lengths decide: results are the same for any orders.
    """
    improved = False
    failed: set[tuple[int, Order]] = set()
    for _ in range(_SWEEPS):
        before = dict(layouts.layout)
        for root in layouts.uses:  # not sorted by cost, which may depend on lengths
            changes, used = _better(layouts, root, steps, failed)
            steps -= used
            if changes:
                layouts.layout.update(changes)
                failed.clear()
        if layouts.layout == before:
            break
        improved = True
    return improved


def _better(layouts: Layouts, root: int, steps: int, failed: set[tuple[int, Order]]) -> tuple[dict[int, Order], int]:
    """The first orders found that lower the cost at a root (empty if there are none), and the steps used. Seeds that
    `failed` are not tried again, and added to."""
    if steps <= 0 or not hint(layouts.cost(root, {})):
        return {}, 0
    used = 0
    for at, order in _seeds(layouts, root):
        if (at, order) in failed:
            continue
        changes, more = _spread(layouts, at, order, steps - used)
        used += more + 1
        changes, gain = _trimmed(layouts, changes)
        if hint(gain) < 0:
            return changes, used
        failed.add((at, order))
    return {}, used


def _seeds(layouts: Layouts, root: int) -> Iterable[tuple[int, Order]]:
    """Operations, with orders, that would avoid a transpose of a root."""
    first = layouts.produced_order(root, {})
    for use in tuple(layouts.uses[root]):
        then = layouts.required_order(use, {})
        if layouts.free(root, first, then):
            continue
        if use.movable is not None:
            order = layouts.layout_for(use.movable, root, use, first)
            if order is not None:
                yield use.movable, order
        if root in layouts.producer:
            order = layouts.layout_for(layouts.producer[root], root, None, then)
            if order is not None:
                yield layouts.producer[root], order


def _spread(layouts: Layouts, at: int, order: Order, steps: int) -> tuple[dict[int, Order], int]:
    """The order of one operation, the orders of all surrounding operations that can follow it, and the steps used."""
    changes, pending, used = {at: order}, [at], 0
    while pending and used < steps:
        now = pending.pop()
        for root in layouts.roots_of(now):
            if layouts.subgraph.operands[root].is_constant:
                continue
            reads = [use for use in layouts.uses.get(root, ()) if use.movable == now]
            new = (
                layouts.produced_order(root, changes)
                if layouts.producer.get(root) == now
                else layouts.required_order(reads[0], changes)
            )
            neighbours: list[tuple[int, Use | None]] = [
                (use.movable, use) for use in layouts.uses.get(root, ()) if use.movable is not None
            ]
            if root in layouts.producer:
                neighbours.append((layouts.producer[root], None))
            for other, use in neighbours:
                used += 1
                if other in changes:
                    continue
                current = layouts.produced_order(root, changes) if use is None else layouts.required_order(use, changes)
                if layouts.free(root, new, current):
                    continue
                new_layout = layouts.layout_for(other, root, use, new)
                if new_layout is not None:
                    changes[other] = new_layout
                    pending.append(other)
    return changes, used


def _trimmed(layouts: Layouts, changes: dict[int, Order]) -> tuple[dict[int, Order], int]:
    """The changes without those that cost more than they save, and the additional cost of the rest."""
    kept = dict(changes)
    count = len(kept)
    for at, order in reversed(changes.items()):
        if count > 1:
            kept[at] = ()  # the operation runs as before
            fewer = layouts.cost_around((at,), kept)
            kept[at] = order
            if hint(fewer) < hint(layouts.cost_around((at,), kept)):
                kept[at] = ()
                count -= 1
    kept = {at: order for at, order in kept.items() if order}
    return kept, layouts.difference(kept)
