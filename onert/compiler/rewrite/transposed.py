"""Rewriting a subgraph so that operations run on transposed operands, for `passes.layout.move_transposes`.

This is a separate file so that models without transposes, the majority, do not import the table and its kinds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import evolve

from onert.ir import Operand, Operation, Subgraph, TensorType
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.shape import static

from .edit import Edit
from .layout_search import improve
from .layout_table import Order, rearranged
from .layouts import Layouts, Movable, between, composed, identity, layouts_of


def transposed(subgraph: Subgraph, orders: Mapping[int, Order]) -> Subgraph:
    """The subgraph in cheaper axis orders, given its transposes' orders by operation; the same object if none exist."""
    layouts = layouts_of(subgraph, orders)
    return _Rewriter(layouts).done() if improve(layouts) else subgraph


class _Rewriter:
    """Writes the subgraph with operations in the chosen orders."""

    def __init__(self, layouts: Layouts) -> None:
        self.layouts = layouts
        self.subgraph = layouts.subgraph
        self.edit = Edit(self.subgraph)
        self.available: dict[tuple[int, Order], int] = {}
        """The operand that holds a root in an order."""
        self.names: dict[tuple[int, Order], int] = {}
        """Original operands for a root in an order; kept operands take precedence, so that they keep their names."""
        orders = layouts.root.items()
        for operand, of in (*((o, r) for o, r in orders if o in self.subgraph.kept), *orders):
            self.names.setdefault(of, operand)
        self.operations: list[Operation] = []

    def done(self) -> Subgraph:
        for operand, (root, order) in self.layouts.root.items():
            if operand == root and operand not in self.subgraph.definitions:
                self.available[root, order] = operand
        for at, operation in enumerate(self.subgraph.operations):
            self.operations = []
            if operation.outputs[:1] and self.layouts.root[operation.outputs[0]][0] != operation.outputs[0]:
                self.edit.remove(at)  # a transpose, written again wherever it is needed
                continue
            self._write(at, operation)
            if set(self.operations) != {operation}:  # a set compares no symbolic size with another
                self.edit.replace(at, *self.operations)
        self.operations = []
        for kept in sorted(self.subgraph.kept):
            root, order = self.layouts.root[kept]
            if self._root(root, order, kept) != kept:
                self._transpose(root, order, kept)
        for operation in self.operations:
            self.edit.insert(len(self.subgraph.operations), operation)
        return self.edit.done()

    def _write(self, at: int, operation: Operation) -> None:
        each = self.layouts.movable.get(at)
        layout = self.layouts.layout.get(at)
        if each is None or layout is None:
            inputs = tuple(None if i is None else self._root(*self.layouts.root[i], i) for i in operation.inputs)
            for output in operation.outputs:
                self.available[self.layouts.root[output]] = output
            self.operations.append(operation if inputs == operation.inputs else evolve(operation, inputs=inputs))
            return
        orders = each.orders(layout)
        op, new_elements = rearranged(operation.op, each.types, each.row, orders)
        inputs = tuple(
            None if operand is None else self._operand(each, position, operand, orders.operand)
            for position, operand in enumerate(operation.inputs)
        )
        changed = [
            self.edit.constant(new_elements[i], each.types.input(i).dtype) if i in new_elements else operand
            for i, operand in enumerate(inputs)
        ]
        if isinstance(op, Reshape):
            changed = changed[:1]  # its shape is an attribute now
        outputs = tuple(self._result(output, orders.result) for output in operation.outputs)
        self.operations.append(evolve(operation, op=op, inputs=tuple(changed), outputs=outputs))

    def _operand(self, each: Movable, position: int, operand: int, order: Order) -> int:
        """The operand that a rearranged operation reads instead."""
        root, axes = self.layouts.root[operand]
        if position in each.moved:
            return self._root(root, composed(axes, order), operand)
        found = self._root(root, axes, operand)
        return self._widened(found, each.types.input(position), order) if position in each.narrow else found

    def _result(self, output: int, order: Order) -> int:
        """The operand for a result in an order."""
        if order == identity(len(order)):
            self.available[output, order] = output
            return output
        self.available[output, order] = self._name(output, order)
        return self.available[output, order]

    def _name(self, root: int, order: Order) -> int:
        """The operand for a root in an order: the original one if there is one, otherwise a new one."""
        if (root, order) in self.names:
            return self.names[root, order]
        return self.edit.operand(Operand(_ordered(self.layouts.type(root), order)))

    def _root(self, root: int, order: Order, operand: int) -> int:
        """The operand that holds a root in an order (originally `operand`), transposed first if it does not exist."""
        if (root, order) not in self.available:
            data = self.subgraph.operands[root].data
            if data is not None:
                elements = np.ascontiguousarray(data.array.transpose(order))
                type_ = self.layouts.type(root)
                self.available[root, order] = self.edit.constant(elements, type_.dtype, type_.quantization)
            else:
                self._transpose(root, order, self._name(root, order))
        return self.available[root, order]

    def _transpose(self, root: int, order: Order, result: int) -> None:
        produced = self.layouts.produced_order(root, {})
        axes = self.edit.constant(np.array(between(produced, order), np.int32))
        self.operations.append(Operation(Transpose(), (self.available[root, produced], axes), (result,)))
        self.available.setdefault((root, order), result)

    def _widened(self, operand: int, type_: TensorType, order: Order) -> int:
        """An operand of lower rank with leading dimensions of 1 added, its axes in an order."""
        wide = (*(1,) * (len(order) - type_.rank), *static(type_.shape))
        data = self.subgraph.operands[operand].data if operand < len(self.subgraph.operands) else None
        if data is not None:
            elements = np.ascontiguousarray(data.array.reshape(wide).transpose(order))
            return self.edit.constant(elements, type_.dtype, type_.quantization)
        shaped = self.edit.operand(Operand(TensorType(type_.dtype, wide, type_.quantization)))
        self.operations.append(Operation(Reshape(wide), (operand,), (shaped,)))
        transposed_ = self.edit.operand(
            Operand(TensorType(type_.dtype, tuple(wide[a] for a in order), type_.quantization))
        )
        axes = self.edit.constant(np.array(order, np.int32))
        self.operations.append(Operation(Transpose(), (shaped, axes), (transposed_,)))
        return transposed_


def _ordered(type_: TensorType, order: Order) -> TensorType:
    return evolve(type_, shape=tuple(type_.shape[a] for a in order), data=None)
