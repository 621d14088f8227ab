"""Elementwise functions of one, two or many operands; comparisons and selection."""

from __future__ import annotations

from functools import reduce

import numpy as np

from onert.frontend.onnx.building import binary, cast, like, require_rank, reshape
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.node import Importer, Node
from onert.ir import ModelError
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Bitcast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind, unary_kinds
from onert.ir.shape import normalize_axis


def unary_importer(kind: UnaryKind) -> Importer:
    return lambda node: node.draft.add(Unary(kind), node.input(0))


def _pair(node: Node) -> tuple[int, int]:
    """Both operands. Before opset 7, the second is aligned by attributes, if at all."""
    x, y = node.input(0), node.input(1)
    if node.version >= 7 or not node.flag("broadcast"):
        return x, y
    d = node.draft
    rank, shape = require_rank(d, x), d.type(y).shape
    axis = normalize_axis(node.integer("axis"), rank) if node.has_attribute("axis") else rank - len(shape)
    if len(shape) == 0 or axis + len(shape) > rank:
        return x, y
    return x, reshape(d, y, (*shape, *(1,) * (rank - axis - len(shape))))


def binary_importer(kind: BinaryKind) -> Importer:
    return lambda node: binary(node.draft, kind, *_pair(node))


def comparison_importer(kind: ComparisonKind) -> Importer:
    return lambda node: node.draft.add(Comparison(kind), *_pair(node))


def variadic_importer(kind: BinaryKind) -> Importer:
    """A left-associative function of any number of operands."""
    return lambda node: chain(node.draft, kind, node.operands())


def chain(d: Draft, kind: BinaryKind, operands: tuple[int, ...]) -> int:
    if not operands:
        raise ModelError("has no inputs, expected at least 1")
    return reduce(lambda x, y: binary(d, kind, x, y), operands)


def _mean(node: Node) -> int:
    d, operands = node.draft, node.operands()
    total = chain(d, BinaryKind.ADD, operands)
    return binary(d, BinaryKind.DIV, total, like(d, total, len(operands)))


def _power(node: Node) -> int:
    """The result has the base's type. An integer raised to a float is computed in the float's type."""
    d = node.draft
    x, y = _pair(node)
    base, power = d.type(x).dtype, d.type(y).dtype
    if base.is_integer and power.is_float:
        return cast(d, binary(d, BinaryKind.POW, cast(d, x, power), y), base)
    exponent = d.value(y)
    if base.is_float and exponent is not None and exponent.size == 1 and d.type(y).rank <= d.type(x).rank:
        value = float(exponent.reshape(-1)[0])
        if value == 2:
            return d.add(Unary(UnaryKind.SQUARE), x)
    return binary(d, BinaryKind.POW, x, cast(d, y, base))


def _modulo(node: Node) -> int:
    return binary(node.draft, BinaryKind.REMAINDER if node.flag("fmod") else BinaryKind.FLOOR_MOD, *_pair(node))


def _reciprocal(node: Node) -> int:
    x = node.input(0)
    return binary(node.draft, BinaryKind.DIV, like(node.draft, x, 1), x)


def _shift(node: Node) -> int:
    left = node.choice("direction", ("LEFT", "RIGHT")) == "LEFT"
    kind = BinaryKind.SHIFT_LEFT if left else BinaryKind.SHIFT_RIGHT
    return binary(node.draft, kind, node.input(0), node.input(1))


def _bitwise_not(node: Node) -> int:
    d, x = node.draft, node.input(0)
    low, high = d.type(x).dtype.limits
    return binary(d, BinaryKind.BITWISE_XOR, x, like(d, x, -1 if low < 0 else high))


def _is_nan(node: Node) -> int:
    x = node.input(0)
    return node.draft.add(Comparison(ComparisonKind.NOT_EQUAL), x, x)


def _is_infinite(node: Node) -> int:
    d, x = node.draft, node.input(0)
    positive, negative = node.flag("detect_positive", default=True), node.flag("detect_negative", default=True)
    if positive and negative:
        return d.add(Comparison(ComparisonKind.EQUAL), d.add(Unary(UnaryKind.ABS), x), like(d, x, np.inf))
    if not positive and not negative:
        return d.add(Comparison(ComparisonKind.LESS), x, like(d, x, -np.inf))
    return d.add(Comparison(ComparisonKind.EQUAL), x, like(d, x, np.inf if positive else -np.inf))


def _scalar(d: Draft, operand: int | None) -> float | None:
    value = None if operand is None else d.value(operand)
    return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None


def _clip(node: Node) -> int:
    """A missing bound means no bound; the upper bound wins if they cross."""
    d, x = node.draft, node.input(0)
    if node.version < 11:
        low = like(d, x, node.number("min")) if node.has_attribute("min") else None
        high = like(d, x, node.number("max")) if node.has_attribute("max") else None
    else:
        low, high = node.optional(1), node.optional(2)
    bounds = (_scalar(d, low), _scalar(d, high))
    floats = d.type(x).dtype.is_float
    if floats and bounds[0] == 0 and (high is None or bounds[1] == np.inf):
        return d.add(Unary(UnaryKind.RELU), x)
    kind = _BOUNDED.get(bounds) if floats else None
    if kind is not None:
        return d.add(Unary(kind), x)
    if low is not None:
        x = binary(d, BinaryKind.MAXIMUM, x, reshape(d, low, ()))
    return x if high is None else binary(d, BinaryKind.MINIMUM, x, reshape(d, high, ()))


_BOUNDED: dict[tuple[float | None, float | None], UnaryKind] = {
    (0.0, 6.0): UnaryKind.RELU6,
    (0.0, 1.0): UnaryKind.RELU_0_TO_1,
    (-1.0, 1.0): UnaryKind.RELU_N1_TO_1,
}


_UNARY = {
    **unary_kinds(
        "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Relu Round Sign Sin Sinh "
        "Sqrt Tan Tanh"
    ),
    "Not": UnaryKind.LOGICAL_NOT,
    "Sigmoid": UnaryKind.LOGISTIC,
}
_BINARY = {
    "Add": BinaryKind.ADD,
    "Sub": BinaryKind.SUB,
    "Mul": BinaryKind.MUL,
    "Div": BinaryKind.DIV,
    "And": BinaryKind.LOGICAL_AND,
    "Or": BinaryKind.LOGICAL_OR,
    "BitwiseAnd": BinaryKind.BITWISE_AND,
    "BitwiseOr": BinaryKind.BITWISE_OR,
    "BitwiseXor": BinaryKind.BITWISE_XOR,
    "Xor": BinaryKind.BITWISE_XOR,
}
_COMPARISONS = {
    "Equal": ComparisonKind.EQUAL,
    "Greater": ComparisonKind.GREATER,
    "GreaterOrEqual": ComparisonKind.GREATER_EQUAL,
    "Less": ComparisonKind.LESS,
    "LessOrEqual": ComparisonKind.LESS_EQUAL,
}
_VARIADIC = {"Max": BinaryKind.MAXIMUM, "Min": BinaryKind.MINIMUM, "Sum": BinaryKind.ADD}
_OTHERS: dict[str, Importer] = {
    "BitCast": lambda node: node.draft.add(Bitcast(node.element_type("to")), node.input(0)),
    "BitShift": _shift,
    "BitwiseNot": _bitwise_not,
    "Clip": _clip,
    "IsInf": _is_infinite,
    "IsNaN": _is_nan,
    "Mean": _mean,
    "Mod": _modulo,
    "Pow": _power,
    "Reciprocal": _reciprocal,
    "Where": lambda node: node.draft.add(Select(), node.input(0), node.input(1), node.input(2)),
}
TABLE = {
    **{name: unary_importer(kind) for name, kind in _UNARY.items()},
    **{name: binary_importer(kind) for name, kind in _BINARY.items()},
    **{name: comparison_importer(kind) for name, kind in _COMPARISONS.items()},
    **{name: variadic_importer(kind) for name, kind in _VARIADIC.items()},
    **_OTHERS,
}
