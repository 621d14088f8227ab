"""Where the largest elements of windows stand, elements put back there, and Einstein's convention."""

from __future__ import annotations

from onert.frontend.onnx.building import ints, joined
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType
from onert.ir.ops.contraction.einsum import Einsum, spelled
from onert.ir.ops.data_movement.columns import PooledPlaces
from onert.ir.ops.data_movement.element_indices import ScatterElements
from onert.ir.ops.data_movement.fill import Fill
from onert.ir.ops.data_movement.slicing import Pad
from onert.ir.ops.reduction.determinant import Determinant

from .windows import Windows, windows


def places(node: Node, over: Windows, margins: list[tuple[int, int]]) -> int:
    """The output Indices of MaxPool: numbers of elements in the whole tensor."""
    pads = (*(a for a, _ in margins), *(b for _, b in margins))
    first = node.integer("storage_order") == 1
    op = PooledPlaces(over.kernel, over.strides, over.dilations, pads, columns_first=first)
    return node.draft.add(op, node.input(0))


def _unpooled(node: Node) -> int:
    """Each element at its place in zeros of the shape before the pool, or of a given larger one.

    Places are counted in the shape that the windows give, whatever shape is asked for.
    """
    d = node.draft
    x, at = operand(node, 0), operand(node, 1)
    over = windows(node, (), x.shape[2:])
    sizes = [x.size(0), x.size(1)]
    for axis, (kernel, stride, (before, after)) in enumerate(
        zip(over.kernel, over.strides, over.margins, strict=True), 2
    ):
        sizes.append((x.size(axis) - 1) * stride + (kernel - before - after))
    shape = x.of(joined(d, [s.operand for s in sizes]))
    zeros = x.of(d.add(Fill(), _product(sizes).operand, x.like(0).operand))
    flat = d.add(ScatterElements(), zeros.operand, at.reshape(None).operand, x.reshape(None).operand)
    found = x.of(flat).reshaped(*sizes)
    if not node.has(2):
        return found.operand
    wanted = operand(node, 2).cast(DType.INT64)
    starts = x.of(ints(d, [0] * x.rank))
    return _cornered(found, shape, wanted, starts).operand


def _product(sizes: list[Expression]) -> Expression:
    total = sizes[0]
    for size in sizes[1:]:
        total = total * size
    return total


def _cornered(x: Expression, shape: Expression, wanted: Expression, starts: Expression) -> Expression:
    """The tensor with zeros behind it along each axis, in a shape that is not smaller."""
    margins = starts.expand(1).joined([(wanted - shape).expand(1)], 1)
    return x.of(x.draft.add(Pad(), x.operand, margins.operand, x.like(0).operand))


def _einsum(node: Node) -> int:
    given, arrow, result = node.text("equation").replace(" ", "").partition("->")
    operands = node.operands()
    ranks = [Expression(node.draft, operand).rank for operand in operands]
    return node.draft.add(Einsum(spelled(given, arrow, result, ranks)), *operands)


_IMPORTERS: dict[str, Importer] = {
    "Det": lambda node: node.draft.add(Determinant(), node.input(0)),
    "Einsum": _einsum,
    "MaxUnpool": _unpooled,
}
TABLE = {("", name): importer for name, importer in _IMPORTERS.items()}
