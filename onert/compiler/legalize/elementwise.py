"""Element-wise functions as simpler ones, and activations split off the operations that they are fused into."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from attrs import evolve

from onert.ir import CallTypes, DType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind, PRelu
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind
from onert.ir.ops.reduction.pool import Pool2D

from .decomposition import Decomposition, moves, only_float32, only_floats
from .draft import Draft
from .quantized_products import REAL_SUMS
from .windows import BY_CHANNELS, CONVOLUTION, GROUPS, POOL

WithActivation = Conv2D | DepthwiseConv2D | Pool2D | Binary
"""Operations whose activation is their last step."""


def _why_not_unfused(op: WithActivation, types: CallTypes) -> str | None:
    if op.activation in (Activation.NONE, Activation.SIGN_BIT):
        return "it has no activation that could be split off"
    present = [t for t in (*types.inputs, *types.outputs) if t is not None]
    return "a tensor has no elements" if any(0 in t.shape for t in present) else only_floats(op, types)


def _unfused(d: Draft, op: WithActivation, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """Minimum(Maximum(Op(x), low), high)"""
    return [d.bounded(d.add(evolve(op, activation=Activation.NONE), *operands), op.activation)]


# ---- unary functions


def _polynomial(d: Draft, x: int, coefficients: Sequence[float]) -> int:
    """A polynomial of `x`; the coefficient of the highest power comes first."""
    first, *rest = coefficients
    found = d.real(first)
    for coefficient in rest:
        found = d.sum(d.product(found, x), d.real(coefficient))
    return found


_RATIONAL = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0)
_SERIES = (-1 / 1320, 1 / 216, -1 / 42, 1 / 10, -1 / 3, 1)


def _erf(d: Draft, x: int) -> int:
    """The error function: its series below 0.5, otherwise an approximation with an error of at most 1.5e-7.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.5 and 7.1.26.
    """
    size, square = d.unary(UnaryKind.ABS, x), d.unary(UnaryKind.SQUARE, x)
    t = d.binary(BinaryKind.DIV, d.real(1), d.sum(d.product(size, d.real(0.3275911)), d.real(1)))
    power = d.unary(UnaryKind.EXP, d.unary(UnaryKind.NEG, square))
    found = d.difference(d.real(1), d.product(_polynomial(d, t, _RATIONAL), power))
    found = d.chosen(d.compared(ComparisonKind.LESS, x, d.real(0)), d.unary(UnaryKind.NEG, found), found)
    series = d.product(d.product(x, d.real(2 / math.sqrt(math.pi))), _polynomial(d, square, _SERIES))
    return d.chosen(d.compared(ComparisonKind.LESS, size, d.real(0.5)), series, found)


def _gelu(d: Draft, x: int) -> int:
    """`x / 2 * (1 + erf(x / sqrt(2)))`."""
    factor = d.sum(d.unary(UnaryKind.ERF, d.product(x, d.like(x, math.sqrt(0.5)))), d.like(x, 1))
    return d.product(x, d.product(factor, d.like(x, 0.5)))


def _gelu_tanh(d: Draft, x: int) -> int:
    """`x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`."""
    cube = d.product(d.product(d.unary(UnaryKind.SQUARE, x), x), d.like(x, 0.044715))
    tanh = d.tanh(d.product(d.sum(x, cube), d.like(x, math.sqrt(2 / math.pi))))
    return d.product(x, d.product(d.sum(tanh, d.like(x, 1)), d.like(x, 0.5)))


def _hard_swish(d: Draft, x: int) -> int:
    """`x * clamp(x + 3, 0, 6) / 6`."""
    return d.product(d.product(x, d.bounded(d.sum(x, d.like(x, 3)), Activation.RELU6)), d.like(x, 1 / 6))


_FUNCTIONS: dict[UnaryKind, Callable[[Draft, int], int]] = {
    UnaryKind.ABS: lambda d, x: d.binary(BinaryKind.MAXIMUM, x, d.unary(UnaryKind.NEG, x)),
    UnaryKind.NEG: lambda d, x: d.product(x, d.like(x, -1)),
    UnaryKind.SQUARE: lambda d, x: d.product(x, x),
    UnaryKind.RSQRT: lambda d, x: d.binary(BinaryKind.DIV, d.like(x, 1), d.unary(UnaryKind.SQRT, x)),
    UnaryKind.RELU: lambda d, x: d.bounded(x, Activation.RELU),
    UnaryKind.RELU6: lambda d, x: d.bounded(x, Activation.RELU6),
    UnaryKind.RELU_N1_TO_1: lambda d, x: d.bounded(x, Activation.RELU_N1_TO_1),
    UnaryKind.ERF: _erf,
    UnaryKind.GELU: _gelu,
    UnaryKind.GELU_TANH: _gelu_tanh,
    UnaryKind.HARD_SWISH: _hard_swish,
}


def _why_no_function(op: Unary, types: CallTypes) -> str | None:
    if op.kind not in _FUNCTIONS:
        return f"{op.kind.name} is not made of others"
    return only_float32(op, types) if op.kind is UnaryKind.ERF else only_floats(op, types)


# ---- binary functions


def _prelu(d: Draft, op: PRelu, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Select(GreaterEqual(x, 0), x, Mul(x, alpha))"""
    x, alpha = operands
    return [d.chosen(d.compared(ComparisonKind.GREATER_EQUAL, x, d.like(x, 0)), x, d.product(x, alpha))]


def _why_no_two_operands(op: Binary, types: CallTypes) -> str | None:
    if op.kind not in (BinaryKind.SQUARED_DIFFERENCE, BinaryKind.LOGICAL_AND, BinaryKind.LOGICAL_OR):
        return f"{op.kind.name} is not made of others"
    if op.activation is not Activation.NONE:
        return "it has an activation"
    quantized = any(t is not None and t.quantization is not None for t in (*types.inputs, *types.outputs))
    return "a tensor is quantised" if quantized else None


def _two_operands(d: Draft, op: Binary, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Mul(Sub(x, y), Sub(x, y)); for booleans Select(x, y, x) and Select(x, x, y)"""
    x, y = operands
    if op.kind is BinaryKind.SQUARED_DIFFERENCE:
        difference = d.difference(x, y)
        return [d.product(difference, difference)]
    return [d.chosen(x, y, x) if op.kind is BinaryKind.LOGICAL_AND else d.chosen(x, x, y)]


def _why_not_boolean(op: Cast, types: CallTypes) -> str | None:
    source = types.input(0)
    if (source.dtype is DType.BOOL) is (op.to is DType.BOOL):
        return "it does not convert between booleans and numbers"
    if source.dtype.is_complex or op.to.is_complex:
        return "complex numbers are not compared"
    return "a tensor is quantised" if source.quantization is not None else None


def _boolean(d: Draft, op: Cast, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """NotEqual(x, 0), or Select(x, 1, 0)"""
    (x,) = operands
    if op.to is DType.BOOL:
        return [d.compared(ComparisonKind.NOT_EQUAL, x, d.like(x, 0))]
    one, zero = (d.constant(number, dtype=op.to) for number in (1, 0))
    return [d.chosen(x, one, zero)]


_HALVES = (DType.FLOAT16, DType.BFLOAT16)
_EXACT_IN_FLOAT32 = (*_HALVES, DType.FLOAT32, DType.BOOL, DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)


def _why_not_through_float32(op: Cast, types: CallTypes) -> str | None:
    source = types.input(0)
    if source.quantization is not None or DType.FLOAT32 in (source.dtype, op.to):
        return "a side is already float32, or quantised"
    if source.dtype in _HALVES:
        return None
    if op.to not in _HALVES:
        return "neither side is a 16-bit float"
    exact = source.dtype in _EXACT_IN_FLOAT32 or (op.to is DType.FLOAT16 and source.dtype.is_integer)
    return None if exact else "it would be rounded twice"


def _through_float32(d: Draft, op: Cast, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Cast(Cast(x)): integers that float32 rounds overflow float16 anyway."""
    return [d.cast(d.cast(operands[0], DType.FLOAT32), op.to)]


def _why_no_rows(op: Select, types: CallTypes) -> str | None:
    if not op.rows:
        return "its condition already selects single elements"
    return moves(op, CallTypes(types.inputs[1:], types.outputs))


def _rows(d: Draft, op: Select, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Select(Reshape(condition), x, y)"""
    condition, x, y = operands
    rank = len(d.shape(x))
    if len(d.shape(condition)) == 1 and rank > 1:
        condition = d.reshaped(condition, d.shape(condition)[0], *(1,) * (rank - 1))
    return [d.chosen(condition, x, y)]


def _leaky_relu(d: Draft, op: LeakyRelu, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Select(Less(x, 0), Mul(x, alpha), x)"""
    (x,) = operands
    return [d.chosen(d.compared(ComparisonKind.LESS, x, d.like(x, 0)), d.product(x, d.like(x, op.alpha)), x)]


DECOMPOSITIONS = {
    LeakyRelu: (Decomposition(only_floats, _leaky_relu),),
    Conv2D: (Decomposition(_why_not_unfused, _unfused), REAL_SUMS, CONVOLUTION, GROUPS),
    DepthwiseConv2D: (Decomposition(_why_not_unfused, _unfused), BY_CHANNELS),
    Pool2D: (Decomposition(_why_not_unfused, _unfused), POOL),
    Binary: (Decomposition(_why_not_unfused, _unfused), Decomposition(_why_no_two_operands, _two_operands)),
    PRelu: (Decomposition(only_floats, _prelu),),
    Unary: (Decomposition(_why_no_function, lambda d, op, types, operands: [_FUNCTIONS[op.kind](d, operands[0])]),),
    Cast: (Decomposition(_why_not_boolean, _boolean), Decomposition(_why_not_through_float32, _through_float32)),
    Select: (Decomposition(_why_no_rows, _rows),),
}
