"""Indices of max pooling, max unpooling, and Einsum."""

from __future__ import annotations

import math

from onert.frontend.onnx.building import concat, ints
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType
from onert.ir.ops.contraction.einsum import Einsum, spelled
from onert.ir.ops.data_movement.columns import PooledPlaces
from onert.ir.ops.data_movement.element_indices import ScatterElements
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.slicing import Pad
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.reduction.determinant import Determinant

from .windows import Windows, windows


def pooled_indices(node: Node, over: Windows, more: tuple[tuple[int, int], ...]) -> int:
    """The output Indices of MaxPool: flat indices into the whole tensor. `more` is added to the margins at the end."""
    if over.dynamic:
        return _dynamic_indices(node, over)
    pads = (*(a for a, _ in over.margins), *(b + c for (_, b), (_, c) in zip(over.margins, more, strict=True)))
    first = node.integer("storage_order") == 1
    op = PooledPlaces(over.kernel, over.strides, over.dilations, pads, columns_first=first)
    return node.draft.add(op, node.input(0))


def _dynamic_indices(node: Node, over: Windows) -> int:
    """The same for margins known only at run time: indices in the padded tensor minus the margins in front."""
    x = operand(node, 0)
    low = -math.inf if x.dtype.is_float else x.dtype.limits[0]
    full = over.pad(x, 2, x.like(low).operand)
    pads = (0,) * (2 * len(over.kernel))
    at = x.of(node.draft.add(PooledPlaces(over.kernel, over.strides, over.dilations, pads), full.operand))
    before, _ = over.same_margins(x, 2)
    coordinates: dict[int, Expression] = {}
    for axis in reversed(range(x.rank)):
        coordinates[axis] = at.binary(BinaryKind.FLOOR_MOD, full.size(axis)) - before.take([axis], 0)
        at = at.binary(BinaryKind.FLOOR_DIV, full.size(axis))
    order = range(2, x.rank) if node.integer("storage_order") != 1 else reversed(range(2, x.rank))
    found = coordinates[0]
    for axis in (1, *order):
        found = found * x.size(axis) + coordinates[axis]
    return found.operand


def _unpooled(node: Node) -> int:
    """Scatter elements by index into zeros of the shape before pooling, or of a given larger shape.

    Indices refer to the shape inferred from the windows, even if a shape is given.
    """
    d = node.draft
    x, at = operand(node, 0), operand(node, 1)
    over = windows(node, (), x.shape[2:])
    sizes = [x.size(0), x.size(1)]
    for axis, (kernel, stride, (before, after)) in enumerate(
        zip(over.kernel, over.strides, over.margins, strict=True), 2
    ):
        sizes.append((x.size(axis) - 1) * stride + (kernel - before - after))
    shape = x.of(concat(d, [s.operand for s in sizes]))
    zeros = x.of(d.add(Fill(), _product(sizes).operand, x.like(0).operand))
    flat = d.add(ScatterElements(), zeros.operand, at.reshape(None).operand, x.reshape(None).operand)
    found = x.of(flat).reshape_by(*sizes)
    if not node.has(2):
        return found.operand
    wanted = operand(node, 2).cast(DType.INT64)
    starts = x.of(ints(d, [0] * x.rank))
    return _padded_to(found, shape, wanted, starts).operand


def _product(sizes: list[Expression]) -> Expression:
    total = sizes[0]
    for size in sizes[1:]:
        total = total * size
    return total


def _padded_to(x: Expression, shape: Expression, wanted: Expression, starts: Expression) -> Expression:
    """Pad the tensor with zeros at the end of each axis to a shape that is not smaller."""
    margins = starts.unsqueeze(1).concat([(wanted - shape).unsqueeze(1)], 1)
    return x.of(x.draft.add(Pad(), x.operand, margins.operand, x.like(0).operand))


def _einsum(node: Node) -> int:
    """A dimension of 1 that broadcasts to another operand's of the same letter is squeezed."""
    given, arrow, result = node.text("equation").replace(" ", "").partition("->")
    operands = [Expression(node.draft, each) for each in node.operands()]
    inputs, _, out = spelled(given, arrow, result, [x.rank for x in operands]).partition("->")
    groups = inputs.split(",")
    if any(x.rank != len(group) for x, group in zip(operands, groups, strict=True)):
        return node.draft.add(Einsum(f"{inputs}->{out}"), *(x.operand for x in operands))  # reports the error
    wide = {c for x, group in zip(operands, groups, strict=True) for c, n in zip(group, x.shape, strict=True) if n != 1}
    for at, (x, group) in enumerate(zip(operands, groups, strict=True)):
        gone = [a for a, c in enumerate(group) if x.shape[a] == 1 and c in wide and group.count(c) == 1]
        if gone:
            operands[at] = x.squeeze(*gone)
            groups[at] = "".join(c for a, c in enumerate(group) if a not in gone)
    return node.draft.add(Einsum(f"{','.join(groups)}->{out}"), *(x.operand for x in operands))


TABLE: dict[str, Importer] = {
    "Det": lambda node: node.draft.add(Determinant(), node.input(0)),
    "Einsum": _einsum,
    "MaxUnpool": _unpooled,
}
