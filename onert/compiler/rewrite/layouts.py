"""Layout optimisation: the orders in which operations can run, and the cost of the transposes between them.

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
    layout: dict[int, Order] = field(factory=dict, init=False)
    """The order of blocks of each operation that does not run in its original order."""
    _running: dict[int, Orders] = field(factory=dict, init=False)
    """The orders of axes in which operations run."""
    _orders: dict[tuple[int, Order], Orders] = field(factory=dict, init=False)
    """The orders of axes of operations, by the order of their blocks. Like the following, a search needs few of them,
    many times each."""
    _composed: dict[tuple[Order, Order], Order] = field(factory=dict, init=False)
    _roots: dict[int, tuple[int, ...]] = field(factory=dict, init=False)
    """What `roots_of` found."""
    _needs: dict[int, tuple[tuple[int | None, Order], ...]] = field(factory=dict, init=False)
    """The different uses of each root: the movable operation, and the order."""
    _moves: dict[tuple[int, Order, Order], int] = field(factory=dict, init=False)
    """The costs of transposes of roots."""
    _fitting: dict[tuple[int, int, Order], Order | None] = field(factory=dict, init=False)
    """The orders of blocks that `Movable.layout_of` found."""

    def type(self, root: int) -> TensorType:
        return self.subgraph.type(root)

    def choose(self, changes: Mapping[int, Order]) -> None:
        """Let operations run with other orders of blocks."""
        self.layout.update(changes)
        for at in changes:
            self._running.pop(at, None)

    def produced_order(self, root: int, layouts: Mapping[int, Order]) -> Order:
        """The order in which a root is produced."""
        at = self.producer.get(root)
        if at is None:
            return self.root[root][1]
        return self._orders_of(at, layouts).result

    def required_order(self, movable: int | None, order: Order, layouts: Mapping[int, Order]) -> Order:
        """The order in which a use, with its operation and the order of its operand, needs the root."""
        if movable is None:
            return order
        axes = self._orders_of(movable, layouts).operand
        found = self._composed.get((order, axes))
        if found is None:
            found = self._composed[order, axes] = composed(order, axes)
        return found

    def _orders_of(self, at: int, layouts: Mapping[int, Order]) -> Orders:
        chosen = layouts.get(at)
        if chosen:
            return self._orders_with(at, chosen)
        found = self._running.get(at)
        if found is None:
            layout = self.layout.get(at) or self.movable[at].original
            found = self._running[at] = self._orders_with(at, layout)
        return found

    def _orders_with(self, at: int, layout: Order) -> Orders:
        found = self._orders.get((at, layout))
        if found is None:
            found = self._orders[at, layout] = self.movable[at].orders(layout)
        return found

    def free(self, root: int, first: Order, then: Order) -> bool:
        """Whether a root in one order is available in another without an operation."""
        return first == then or self.subgraph.operands[root].is_constant

    def cost(self, root: int, layouts: Mapping[int, Order]) -> int:
        """The cost of all transposes of a root."""
        needs = self._needs_of(root)
        if not needs:
            return 0
        first = self.produced_order(root, layouts)
        required = {self.required_order(movable, order, layouts) for movable, order in needs}
        required.discard(first)
        if not required:
            return 0
        moves = sum(self._move(root, first, then) for then in required)
        return moves + _APART if self._is_followed(root, self.uses[root]) else moves

    def _needs_of(self, root: int) -> tuple[tuple[int | None, Order], ...]:
        """The different uses of a root; none of a constant."""
        found = self._needs.get(root)
        if found is None:
            uses = () if self.subgraph.operands[root].is_constant else self.uses.get(root, ())
            found = self._needs[root] = tuple(dict.fromkeys((use.movable, use.order) for use in uses))
        return found

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
        if not each.narrow:
            return 0
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

    def layout_for(self, at: int, use: Use | None, order: Order) -> Order | None:
        """The order of blocks with which an operation produces (or for a `use`, needs) a root in `order`, or None."""
        side, axes = (1, order) if use is None else (0, between(use.order, order))
        if (at, side, axes) not in self._fitting:
            self._fitting[at, side, axes] = self.movable[at].layout_of(axes, side)
        return self._fitting[at, side, axes]


def size(type_: TensorType) -> int:
    """The bytes of a tensor, with unknown dimensions as `UNKNOWN`, and symbolic ones as they are for the current
    lengths: results are the same for any orders."""
    count = 1
    for dim in type_.shape:
        count *= UNKNOWN if dim is None else hint(dim)
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
