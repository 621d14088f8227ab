"""Layers on stored integers, whose result is rounded to the integers of a scale of its own."""

from __future__ import annotations

from attrs import evolve

from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.quantization import saturated
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind

from .integers import TABLE as CONVOLUTIONS
from .products import TABLE as PRODUCTS


def requantized(x: Expression, multiplier: Expression, zero: Expression) -> Expression:
    """`saturate(round(x * multiplier) + zero)` of int32 sums, halves to even, as elements of the zero point's type."""
    real = x.cast(DType.FLOAT32) * multiplier.cast(DType.FLOAT32)
    whole = real.unary(UnaryKind.ROUND) + zero.cast(DType.FLOAT32)
    return x.of(saturated(x.draft, whole.operand, zero.dtype))


def _alone(x: Expression) -> Expression:
    """A vector of one element as a scalar."""
    return x.reshape() if x.rank == 1 and x.shape[0] == 1 else x


def _operand(node: Node, importer: Importer, *inputs: int | None) -> Expression:
    """The only result of another operator with this node's attributes."""
    found = importer(evolve(node, inputs=tuple(inputs), outputs=("sums",)))
    if not isinstance(found, int):
        raise ModelError("the product is no tensor")
    return Expression(node.draft, found)


def _matmul(node: Node) -> int:
    """Inputs: a, its scale and zero point, b likewise, the result's scale and zero point.

    Those of a may be given for each row, those of b for each column.
    """
    sums = _operand(node, PRODUCTS["", "MatMulInteger"], node.input(0), node.input(3), node.input(2), node.input(5))
    left, right, scale = (_alone(operand(node, at)).cast(DType.FLOAT32) for at in (1, 4, 6))
    left = left.reshape(None, 1) if left.rank == 1 else left
    return requantized(sums, left * right / scale, _alone(operand(node, 7))).operand


def _convolution(node: Node) -> int:
    """Inputs: x, its scale and zero point, the filters likewise, the result's scale and zero point, a bias of int32.

    The filters' scale may be given for each of them.
    """
    sums = _operand(node, CONVOLUTIONS["", "ConvInteger"], node.input(0), node.input(3), node.input(2), node.input(5))
    each = (None, *(1,) * (sums.rank - 2))
    if node.has(8):
        sums = sums + operand(node, 8).reshape(*each)
    own, filters, scale = (_alone(operand(node, at)).cast(DType.FLOAT32) for at in (1, 4, 6))
    filters = filters.reshape(*each) if filters.rank == 1 else filters
    return requantized(sums, own * filters / scale, _alone(operand(node, 7))).operand


_IMPORTERS: dict[str, Importer] = {"QLinearConv": _convolution, "QLinearMatMul": _matmul}
TABLE = {("", name): importer for name, importer in _IMPORTERS.items()}
