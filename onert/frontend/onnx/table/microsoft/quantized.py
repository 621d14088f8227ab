"""ONNX Runtime's operators on stored integers with scales as operands, and on weights of a few bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import evolve

from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.node import Importer, Node
from onert.frontend.onnx.table.elements.quantization import TABLE as QUANTIZATION
from onert.frontend.onnx.table.elements.quantization import saturated
from onert.frontend.onnx.table.layers.products import TABLE as PRODUCTS
from onert.frontend.onnx.table.layers.products import multiplied
from onert.ir import Array, DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction

from . import DOMAIN


def _operand(node: Node, index: int) -> Expression:
    found = Expression(node.draft, node.input(index))
    return found.reshape() if found.rank == 1 and found.shape[0] == 1 else found


def _real(node: Node, at: int) -> Expression:
    """The real numbers of an input, its scale and its zero point, which follow it."""
    x = Expression(node.draft, node.input(at)).cast(DType.FLOAT32)
    if node.has(at + 2):
        x = x - _operand(node, at + 2).cast(DType.FLOAT32)
    return x * _operand(node, at + 1)


def _stored(node: Node, x: Expression, at: int, dtype: DType) -> int:
    """Real numbers as integers of the scale and the zero point at these inputs."""
    whole = (x / _operand(node, at)).unary(UnaryKind.ROUND)
    if node.has(at + 1):
        zero = _operand(node, at + 1)
        return saturated(node.draft, (whole + zero.cast(DType.FLOAT32)).operand, zero.dtype)
    return saturated(node.draft, whole.operand, dtype)


def _one(function: Callable[[Node, Expression], Expression]) -> Importer:
    """A function of one tensor: x, its scale and zero point, the result's scale and zero point."""
    return lambda node: _stored(node, function(node, _real(node, 0)), 3, node.type(0).dtype)


def _two(function: Callable[[Expression, Expression], Expression]) -> Importer:
    """A function of two tensors: each with scale and zero point, then the result's."""
    return lambda node: _stored(node, function(_real(node, 0), _real(node, 3)), 6, node.type(0).dtype)


def _leaky(node: Node, x: Expression) -> Expression:
    return (x < 0).choose(x * node.number("alpha", 0.01), x)


def _plane_mean(node: Node, x: Expression) -> Expression:
    axes = range(1, x.rank - 1) if node.flag("channels_last") else range(2, x.rank)
    return x.reduce(Reduction.MEAN, axes)


def _joined(node: Node) -> int:
    """Tensors with scales of their own: the result's scale and zero point come first."""
    parts = [_real(node, at) for at in range(2, len(node.inputs), 3)]
    if not parts:
        raise ModelError("there is nothing to join")
    return _stored(node, parts[0].joined(parts[1:], node.integer("axis")), 0, node.type(2).dtype)


def _integers_to_float(node: Node) -> int:
    """MatMulInteger, times both scales, and a bias: a, b, their scales, their zero points, the bias."""
    given = (node.input(0), node.input(1), node.optional(4), node.optional(5))
    sums = PRODUCTS["", "MatMulInteger"](evolve(node, inputs=given, outputs=("sums",)))
    assert isinstance(sums, int)
    y = Expression(node.draft, sums).cast(DType.FLOAT32) * (_operand(node, 2) * _operand(node, 3))
    return (y + Expression(node.draft, node.input(6)) if node.has(6) else y).operand


def _dynamic(node: Node) -> int:
    """a is quantised by its own range: a, b, b's scale and zero point, the bias."""
    quantized = QUANTIZATION["", "DynamicQuantizeLinear"](evolve(node, inputs=(node.input(0),)))
    assert isinstance(quantized, tuple)
    x, scale, zero = quantized
    given = (x, node.input(1), scale, node.input(2), zero, node.optional(3), node.optional(4))
    return _integers_to_float(evolve(node, inputs=given))


def _few_bits(node: Node) -> int:
    """x times a matrix of 4 or 8 bits, quantised in blocks along each column: x, b, scales, zero points, -, bias.

    `b` is [N, blocks, bytes], its first element in the lowest bits; a zero point that is absent is the middle.
    """
    d = node.draft
    k, n, bits, block = node.integer("K"), node.integer("N"), node.integer("bits", 4), node.integer("block_size", 32)
    if bits not in (2, 4, 8) or block < 1 or n < 1 or k < 1 or node.has(4):
        raise ModelError(f"has {bits} bits in blocks of {block} for {k} x {n}, which is not supported")
    blocks = -(-k // block)
    packed = node.constant(1, "the weights").reshape(-1)
    if packed.size * 8 != n * blocks * block * bits:
        raise ModelError(f"the weights have {packed.size} bytes, expected {n * blocks * block * bits // 8}")
    d.memory.spend(n * blocks * block * 4, "unpacking weights")
    codes = _codes(packed, bits).reshape(n, blocks, block).astype(np.float32)
    scales = node.constant(2, "the scales").reshape(n, blocks, 1).astype(np.float32)
    if node.has(3):
        given = node.constant(3, "the zero points")
        rows = given if given.dtype.kind == "f" else _codes(given.reshape(n, -1), bits)
        zeros = rows.reshape(n, -1)[:, :blocks].astype(np.float32)[..., None]
    else:
        zeros = np.full((n, blocks, 1), 1 << (bits - 1), np.float32)
    weights = ((codes - zeros) * scales).reshape(n, -1)[:, :k]
    x = Expression(d, node.input(0))
    matrix = d.constant(np.ascontiguousarray(weights.T).astype(x.dtype.numpy), x.dtype)
    y = x.of(multiplied(d, x.operand, matrix))
    return (y + Expression(d, node.input(5)) if node.has(5) else y).operand


def _codes(octets: Array, bits: int) -> Array:
    """Elements of a few bits along the last axis, the first in the lowest ones."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts: Array = (octets[..., None].astype(np.uint8) >> shifts) & np.uint8((1 << bits) - 1)
    return parts.reshape(*octets.shape[:-1], -1)


_IMPORTERS: dict[str, Importer] = {
    "DynamicQuantizeMatMul": _dynamic,
    "MatMulIntegerToFloat": _integers_to_float,
    "MatMulNBits": _few_bits,
    "QLinearAdd": _two(lambda x, y: x + y),
    "QLinearConcat": _joined,
    "QLinearGlobalAveragePool": _one(_plane_mean),
    "QLinearLeakyRelu": _one(_leaky),
    "QLinearMul": _two(lambda x, y: x * y),
    "QLinearSigmoid": _one(lambda node, x: x.unary(UnaryKind.LOGISTIC)),
}
TABLE = {(DOMAIN, name): importer for name, importer in _IMPORTERS.items()}
