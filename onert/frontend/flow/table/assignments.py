"""Operations that assign to their first operand: rules for its new value."""

from __future__ import annotations

from collections.abc import Mapping

from onert.frontend.flow.emitter import Emitter, Node, Rule
from onert.ir.ops.data_movement.element_indices import Combination, ScatterSlices
from onert.ir.ops.elementwise.binary import BinaryKind

from .gathers import scatter_rows
from .products import product


def _assign(e: Emitter, node: Node) -> int:
    node.require_inputs(2)
    return node.inputs[1]


def _assign_add(e: Emitter, node: Node) -> int:
    node.require_inputs(2)
    return e.binary(BinaryKind.ADD, *node.inputs)


def _assign_add_matmul(e: Emitter, node: Node) -> int:
    """`x + y · z`."""
    node.require_inputs(3)
    return e.binary(BinaryKind.ADD, node.inputs[0], product(e, node.without_first()))


def _assign_add_scatter(e: Emitter, node: Node) -> int:
    """Add rows at the given indices; other rows are unchanged."""
    node.require_inputs(3)
    target, indices, value = node.inputs
    return e.add(ScatterSlices(Combination.ADD), target, *scatter_rows(e, node, indices, value, e.shape(target)))


ASSIGNMENTS: Mapping[str, Rule] = {
    "Assign": _assign,
    "AssignAdd": _assign_add,
    "AssignAddMatMul": _assign_add_matmul,
    "AssignAddScatter": _assign_add_scatter,
}
"""Rules for the new value of the first operand; a result is a reference to it."""
