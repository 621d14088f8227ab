"""Matrix products, alone or fused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from onert.frontend.flow.emitter import Emitter, Node, Rule
from onert.ir import Array, DType, RuleError
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import UnaryKind

_NARROW = (DType.INT8, DType.INT16, DType.UINT8, DType.UINT16)
"""Integers that wrap: their products are computed in int32, which has the same low bits."""


def _last_two(e: Emitter, x: int) -> int:
    """Transpose the last two dimensions."""
    order = list(range(e.rank(x)))
    if len(order) < 2:
        raise RuleError(f"transposes a tensor of rank {len(order)}, expected at least 2")
    order[-2:] = order[:-3:-1]
    return e.add(Transpose(), x, e.indices(order))


def product(e: Emitter, node: Node) -> int:
    """`x · y` of the first two operands; each of them, and the result, is transposed if an attribute says so."""
    x, y = node.input(0), node.input(1)
    op, dtype = BatchMatMul(node.boolean("transpose_a"), node.boolean("transpose_b")), e.dtype(x)
    if dtype in _NARROW and e.dtype(y) is dtype:
        found = e.cast(e.add(op, e.cast(x, DType.INT32), e.cast(y, DType.INT32)), dtype)
    else:
        found = e.add(op, x, y)
    return _last_two(e, found) if node.boolean("transpose_c") else found


def _matmul(e: Emitter, node: Node) -> int:
    node.require_inputs(2)
    return product(e, node)


def _fused(e: Emitter, node: Node, *, bias: bool, relu: bool) -> int:
    """A product with an optional bias and ReLU."""
    node.require_inputs(3 if bias else 2)
    activation = Activation.RELU if relu else Activation.NONE
    if _is_layer(e, node, bias):
        weight = e.constant(np.ascontiguousarray(_weight(e, node)))
        given = [e.reshape(node.inputs[2], (-1,))] if bias else []
        return e.add(FullyConnected(activation, keep_dims=True), node.inputs[0], weight, *given)
    found = product(e, node)
    if bias:
        return e.add(Binary(BinaryKind.ADD, activation), found, node.inputs[2])
    return e.unary(UnaryKind.RELU, found) if relu else found


def _is_layer(e: Emitter, node: Node, bias: bool) -> bool:
    """Whether the product is a fully connected layer: constant weights, and a bias for each output."""
    x, weight = e.type(node.inputs[0]), e.type(node.inputs[1])
    if weight.data is None or weight.rank != 2 or x.rank < 2 or x.dtype not in (DType.FLOAT32, DType.FLOAT16):
        return False
    if node.boolean("transpose_a") or node.boolean("transpose_c"):
        return False
    outputs = weight.shape[0 if node.boolean("transpose_b") else 1]
    if not bias:
        return True
    shape = e.type(node.inputs[2]).shape
    return shape[-1:] == (outputs,) and all(d == 1 for d in shape[:-1])


def _weight(e: Emitter, node: Node) -> Array:
    elements = e.elements(node.inputs[1], "the weight")
    return elements if node.boolean("transpose_b") else elements.T


def _linear(e: Emitter, node: Node) -> int:
    """`x · wᵀ + b`."""
    node.require_inputs(2, 3)
    found = e.add(BatchMatMul(adjoint_y=True), node.inputs[0], node.inputs[1])
    return e.binary(BinaryKind.ADD, found, node.inputs[2]) if len(node.inputs) == 3 else found


RULES: Mapping[str, Rule] = {
    "MatMul": _matmul,
    "MatMulAdd": partial(_fused, bias=True, relu=False),
    "MatMulRelu": partial(_fused, bias=False, relu=True),
    "MatMulAddRelu": partial(_fused, bias=True, relu=True),
    "Linear": _linear,
}
