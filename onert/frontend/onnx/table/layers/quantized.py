"""Layers on stored integers whose result is requantised."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.quantization import saturate
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind

from .exact_convolution import MAX_EXACT_FLOAT32
from .integers import convolve_integers
from .products import TABLE as PRODUCTS


def requantize(x: Expression, multiplier: Expression, zero: Expression) -> Expression:
    """`saturate(round(x * multiplier) + zero)` of int32 sums, ties to even, with the zero point's element type."""
    real = x.cast(DType.FLOAT32) * multiplier.cast(DType.FLOAT32)
    whole = real.unary(UnaryKind.ROUND) + zero.cast(DType.FLOAT32)
    return x.of(saturate(x.draft, whole.operand, zero.dtype))


def _as_scalar(x: Expression) -> Expression:
    """Reshape a vector of one element to a scalar."""
    return x.reshape() if x.rank == 1 and x.shape[0] == 1 else x


def _integer_node(node: Node, *inputs: int) -> Node:
    """A node with the given inputs, one result and this node's attributes, for its integer product."""
    return evolve(node, inputs=tuple(node.input(at) for at in inputs), outputs=("sums",))


def _matmul(node: Node) -> int:
    """Inputs: a, its scale and zero point, the same for b, the result's scale and zero point.

    Scales and zero points of a may be per row, those of b per column.
    """
    found = PRODUCTS["MatMulInteger"](_integer_node(node, 0, 3, 2, 5))
    if not isinstance(found, int):
        raise ModelError("the product is not a tensor")
    sums = Expression(node.draft, found)
    left, right, scale = (_as_scalar(operand(node, at)).cast(DType.FLOAT32) for at in (1, 4, 6))
    left = left.reshape(None, 1) if left.rank == 1 else left
    return requantize(sums, left * right / scale, _as_scalar(operand(node, 7))).operand


def _convolution(node: Node) -> int:
    """Inputs: x, its scale and zero point, the same for the filters, the result's scale and zero point, an int32 bias.

    The filters' scale may be per filter.
    """
    found = convolve_integers(_integer_node(node, 0, 3, 2, 5))
    sums = Expression(node.draft, found.operand)
    each = (None, *(1,) * (sums.rank - 2))
    if node.has(8):
        bias = node.value(8)
        held = bias is not None and found.bound + int(np.abs(bias.astype(np.int64)).max(initial=0)) <= MAX_EXACT_FLOAT32
        dtype = sums.dtype if held else DType.INT32
        sums = sums.cast(dtype) + operand(node, 8).cast(dtype).reshape(*each)
    own, filters, scale = (_as_scalar(operand(node, at)).cast(DType.FLOAT32) for at in (1, 4, 6))
    filters = filters.reshape(*each) if filters.rank == 1 else filters
    return requantize(sums, own * filters / scale, _as_scalar(operand(node, 7))).operand


TABLE: dict[str, Importer] = {"QLinearConv": _convolution, "QLinearMatMul": _matmul}
