"""Activation functions, composed of elementwise operations if the IR has no equivalent one."""

from __future__ import annotations

import math
from collections.abc import Callable

from onert.frontend.onnx.building import (
    axis_last,
    binary,
    cast,
    dimension,
    like,
    require_rank,
    reshape,
    times,
    transpose,
)
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.gather import OneHot
from onert.ir.ops.elementwise.binary import BinaryKind, PRelu
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.shape import normalize_axis

from .elementwise import unary_importer
from .randomness import dropout

ADD, SUB, MUL, DIV = BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.DIV


def _prelu(node: Node) -> int:
    """The slope broadcasts to x. Before opset 7, a slope of rank 1 has one element per channel."""
    d, x, slope = node.draft, node.input(0), node.input(1)
    rank, shape = require_rank(d, x), d.type(slope).shape
    if node.version < 7 and len(shape) == 1 and shape[0] != 1 and rank > 2:
        slope = reshape(d, slope, (*shape, *(1,) * (rank - 2)))
    if d.type(x).dtype.is_float:
        return d.add(PRelu(), x, slope)
    negative = d.add(Comparison(ComparisonKind.LESS), x, like(d, x, 0))
    return d.add(Select(), negative, binary(d, MUL, x, slope), x)


def _below(d: Draft, x: int) -> int:
    """min(x, 0)."""
    return binary(d, BinaryKind.MINIMUM, x, like(d, x, 0))


def _elu(node: Node) -> int:
    d, x, alpha = node.draft, node.input(0), node.number("alpha", 1.0)
    if alpha == 1:
        return d.add(Unary(UnaryKind.ELU), x)
    return binary(d, ADD, d.add(Unary(UnaryKind.RELU), x), times(d, d.add(Unary(UnaryKind.ELU), _below(d, x)), alpha))


def _selu(node: Node) -> int:
    d, x = node.draft, node.input(0)
    alpha, gamma = node.number("alpha", _SELU_ALPHA), node.number("gamma", _SELU_GAMMA)
    if node.version < 6:
        alpha, gamma = node.number("alpha", 1.6732), node.number("gamma", 1.0507)
    curve = times(d, d.add(Unary(UnaryKind.ELU), _below(d, x)), alpha)
    return times(d, binary(d, ADD, d.add(Unary(UnaryKind.RELU), x), curve), gamma)


_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def _celu(node: Node) -> int:
    """`max(0, x) + min(0, alpha * (e^(x / alpha) - 1))`."""
    d, x, alpha = node.draft, node.input(0), node.number("alpha", 1.0)
    if alpha == 0:
        raise ModelError("alpha is 0, expected a nonzero divisor")
    scaled = binary(d, DIV, _below(d, x) if alpha > 0 else x, like(d, x, alpha))
    curve = times(d, d.add(Unary(UnaryKind.ELU), scaled), alpha)
    if alpha < 0:
        one_less = binary(d, SUB, d.add(Unary(UnaryKind.EXP), scaled), like(d, x, 1))
        curve = _below(d, times(d, one_less, alpha))
    return binary(d, ADD, d.add(Unary(UnaryKind.RELU), x), curve)


def _hard_sigmoid(node: Node) -> int:
    d, x = node.draft, node.input(0)
    line = binary(d, ADD, times(d, x, node.number("alpha", 0.2)), like(d, x, node.number("beta", 0.5)))
    return d.add(Unary(UnaryKind.RELU_0_TO_1), line)


def _softsign(node: Node) -> int:
    d, x = node.draft, node.input(0)
    return binary(d, DIV, x, binary(d, ADD, d.add(Unary(UnaryKind.ABS), x), like(d, x, 1)))


def _mish(node: Node) -> int:
    d, x = node.draft, node.input(0)
    return binary(d, MUL, x, d.add(Unary(UnaryKind.TANH), d.add(Unary(UnaryKind.SOFTPLUS), x)))


def _swish(node: Node) -> int:
    d, x = node.draft, node.input(0)
    return binary(d, MUL, x, d.add(Unary(UnaryKind.LOGISTIC), times(d, x, node.number("alpha", 1.0))))


def _gelu(node: Node) -> int:
    exact = node.choice("approximate", ("none", "tanh"), "none") == "none"
    kind = UnaryKind.GELU if exact else UnaryKind.GELU_TANH
    return node.draft.add(Unary(kind), node.input(0))


def _thresholded(node: Node) -> int:
    d, x = node.draft, node.input(0)
    above = d.add(Comparison(ComparisonKind.GREATER), x, like(d, x, node.number("alpha", 1.0)))
    return d.add(Select(), above, x, like(d, x, 0))


def _shrink(node: Node) -> int:
    """x + bias below -lambd, x - bias above lambd, 0 in between."""
    d, x, bound = node.draft, node.input(0), node.number("lambd", 0.5)
    dtype = d.type(x).dtype
    x = x if dtype.is_float else cast(d, x, DType.FLOAT64)  # so that the bias is not truncated
    bias = like(d, x, node.number("bias", 0.0))
    below = d.add(Comparison(ComparisonKind.LESS), x, like(d, x, -bound))
    above = d.add(Comparison(ComparisonKind.GREATER), x, like(d, x, bound))
    rest = d.add(Select(), above, binary(d, SUB, x, bias), like(d, x, 0))
    found = d.add(Select(), below, binary(d, ADD, x, bias), rest)
    if dtype.is_float or dtype.itemsize == 8:
        return cast(d, found, dtype)
    return cast(d, cast(d, found, DType.INT64), dtype)  # values out of range wrap


def along_axis(node: Node, x: int, apply: Callable[[Draft, int], int]) -> int:
    """Apply a function on the last axis along the node's axis.

    Before opset 13, all axes from the node's axis on are flattened, and the default is axis 1.
    """
    d = node.draft
    rank = require_rank(d, x)
    if not rank:
        return reshape(d, apply(d, reshape(d, x, (1,))), ())
    axis = normalize_axis(node.integer("axis", -1 if node.version >= 13 else min(1, rank - 1)), rank)
    if node.version >= 13 or axis == rank - 1:
        order = axis_last(rank, axis)
        return transpose(d, apply(d, transpose(d, x, order)), order)
    shape = d.type(x).shape
    rest = shape[axis:]
    if None not in rest and shape.count(None) <= 1:
        return reshape(d, apply(d, reshape(d, x, (*shape[:axis], math.prod(s or 0 for s in rest)))), shape)
    raise ModelError(f"has input {d.type(x)}, expected known dimensions from axis {axis} on")


def _hardmax(node: Node) -> int:
    def apply(d: Draft, x: int) -> int:
        where = d.add(ArgReduce(Extreme.MAX), x, d.constant(-1, DType.INT32))
        size = cast(d, reshape(d, dimension(d, x, d.type(x).rank - 1), ()), DType.INT32)
        return d.add(OneHot(), where, size, like(d, x, 1), like(d, x, 0))

    return along_axis(node, node.input(0), apply)


def _swiglu(node: Node) -> int:
    d, gate, x = node.draft, node.input(0), node.input(1)
    swish = binary(d, MUL, gate, d.add(Unary(UnaryKind.LOGISTIC), times(d, gate, node.number("alpha", 1.0))))
    return binary(d, MUL, swish, x)


def _dropout(node: Node) -> tuple[int, ...]:
    """The identity, except in training, which only input 2 can enable."""
    d, x = node.draft, node.input(0)
    training = node.value(2)
    if node.has(2) and (training is None or training.any()):
        ratio = operand(node, 1) if node.has(1) else Expression(d, d.constant(0.5, DType.FLOAT32))
        used, kept = dropout(node, Expression(d, x), ratio, operand(node, 2))
        return used.operand, kept.operand
    if not node.uses_output(1):
        return (x,)
    every = d.add(Comparison(ComparisonKind.EQUAL), x, x)
    found = d.add(Comparison(ComparisonKind.NOT_EQUAL), x, x)
    mask = binary(d, BinaryKind.LOGICAL_OR, every, found)  # NaN is not equal to itself
    return x, mask if node.version >= 10 else cast(d, mask, d.type(x).dtype)


TABLE: dict[str, Importer] = {
    "Celu": _celu,
    "Dropout": _dropout,
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": unary_importer(UnaryKind.HARD_SWISH),
    "Hardmax": _hardmax,
    "LeakyRelu": lambda node: node.draft.add(LeakyRelu(node.number("alpha", 0.01)), node.input(0)),
    "LogSoftmax": lambda node: along_axis(node, node.input(0), lambda d, x: d.add(LogSoftmax(), x)),
    "Mish": _mish,
    "PRelu": _prelu,
    "Selu": _selu,
    "Shrink": _shrink,
    "Softmax": lambda node: along_axis(node, node.input(0), lambda d, x: d.add(Softmax(), x)),
    "Softplus": unary_importer(UnaryKind.SOFTPLUS),
    "Softsign": _softsign,
    "SwiGLU": _swiglu,
    "Swish": _swish,
    "ThresholdedRelu": _thresholded,
}
