"""Operators that work element by element."""

from __future__ import annotations

from onert.ir import DType, ModelError, Op
from onert.ir.ops.binary import AddN, Binary, BinaryKind, PRelu
from onert.ir.ops.comparison import Comparison, ComparisonKind
from onert.ir.ops.convert import Bitcast, Cast, Dequantize, FakeQuant, Quantize
from onert.ir.ops.select import Select
from onert.ir.ops.unary import LeakyRelu, Unary, UnaryKind, ZerosLike

from .importer import Importer, Operator, Table, activation, fixed


def _unary(kind: UnaryKind) -> Importer:
    return fixed(Unary(kind))


def _binary(kind: BinaryKind) -> Importer:
    return fixed(Binary(kind))


def _arithmetic(kind: BinaryKind) -> Importer:
    def build(operator: Operator) -> Op:
        return Binary(kind, activation(operator), operator.flag("pot_scale_int16"))

    return build


def _result_dtype(operator: Operator) -> DType:
    """The element type that the file declares for the result."""
    if not operator.outputs:
        raise ModelError("has no outputs, expected 1")
    return operator.outputs[0].dtype


_COMPARE = (
    ComparisonKind.EQUAL,
    ComparisonKind.NOT_EQUAL,
    ComparisonKind.GREATER_EQUAL,
    ComparisonKind.GREATER,
    ComparisonKind.LESS_EQUAL,
    ComparisonKind.LESS,
)


def _stablehlo_compare(operator: Operator) -> Op:
    direction = operator.integer("comparison_direction")
    if not 0 <= direction < len(_COMPARE):
        raise ModelError(f"comparison_direction is {direction}, expected 0 to {len(_COMPARE) - 1}")
    return Comparison(_COMPARE[direction])


def _bitwise_or_logical(logical: BinaryKind, bitwise: BinaryKind) -> Importer:
    def build(operator: Operator) -> Op:
        return Binary(logical if _result_dtype(operator) is DType.BOOL else bitwise)

    return build


_UNARY = (
    "ABS",
    "NEG",
    "SQUARE",
    "SIGN",
    "EXP",
    "LOG",
    "SQRT",
    "RSQRT",
    "SIN",
    "COS",
    "TANH",
    "LOGISTIC",
    "ELU",
    "HARD_SWISH",
    "RELU",
    "RELU6",
    "RELU_N1_TO_1",
    "RELU_0_TO_1",
    "FLOOR",
    "CEIL",
    "ROUND",
    "LOGICAL_NOT",
    "COMPLEX_ABS",
    "REAL",
    "IMAG",
)
_BINARY = (
    "FLOOR_DIV",
    "FLOOR_MOD",
    "POW",
    "MAXIMUM",
    "MINIMUM",
    "SQUARED_DIFFERENCE",
    "ATAN2",
    "LOGICAL_AND",
    "LOGICAL_OR",
    "BITWISE_XOR",
)
"""Operators that are called as the functions are."""

TABLE: Table = {
    **{name: _unary(UnaryKind[name]) for name in _UNARY},
    "GELU": lambda operator: Unary(UnaryKind.GELU_TANH if operator.flag("approximate") else UnaryKind.GELU),
    "LEAKY_RELU": lambda operator: LeakyRelu(operator.number("alpha")),
    "ZEROS_LIKE": fixed(ZerosLike()),
    **{name: _arithmetic(BinaryKind[name]) for name in ("ADD", "SUB", "MUL", "DIV")},
    **{name: _binary(BinaryKind[name]) for name in _BINARY},
    "RIGHT_SHIFT": _binary(BinaryKind.SHIFT_RIGHT),
    "ADD_N": fixed(AddN()),
    "PRELU": fixed(PRelu()),
    **{kind.name: fixed(Comparison(kind)) for kind in ComparisonKind},
    "SELECT": fixed(Select(rows=True)),
    "SELECT_V2": fixed(Select()),
    "CAST": lambda operator: Cast(_result_dtype(operator)),
    "QUANTIZE": lambda operator: Quantize(_result_dtype(operator)),
    "DEQUANTIZE": lambda operator: Dequantize(_result_dtype(operator)),
    "BITCAST": lambda operator: Bitcast(_result_dtype(operator)),
    "FAKE_QUANT": lambda operator: FakeQuant(
        operator.number("min"), operator.number("max"), operator.integer("num_bits"), operator.flag("narrow_range")
    ),
    "STABLEHLO_ADD": _binary(BinaryKind.ADD),
    "STABLEHLO_SUBTRACT": _binary(BinaryKind.SUB),
    "STABLEHLO_MULTIPLY": _binary(BinaryKind.MUL),
    "STABLEHLO_DIVIDE": _binary(BinaryKind.DIV),
    "STABLEHLO_MAXIMUM": _binary(BinaryKind.MAXIMUM),
    "STABLEHLO_MINIMUM": _binary(BinaryKind.MINIMUM),
    "STABLEHLO_POWER": _binary(BinaryKind.POW),
    "STABLEHLO_REMAINDER": _binary(BinaryKind.REMAINDER),
    "STABLEHLO_SHIFT_LEFT": _binary(BinaryKind.SHIFT_LEFT),
    "STABLEHLO_AND": _bitwise_or_logical(BinaryKind.LOGICAL_AND, BinaryKind.BITWISE_AND),
    "STABLEHLO_OR": _bitwise_or_logical(BinaryKind.LOGICAL_OR, BinaryKind.BITWISE_OR),
    "STABLEHLO_ABS": _unary(UnaryKind.ABS),
    "STABLEHLO_NEGATE": _unary(UnaryKind.NEG),
    "STABLEHLO_EXPONENTIAL": _unary(UnaryKind.EXP),
    "STABLEHLO_LOG": _unary(UnaryKind.LOG),
    "STABLEHLO_RSQRT": _unary(UnaryKind.RSQRT),
    "STABLEHLO_CBRT": _unary(UnaryKind.CBRT),
    "STABLEHLO_TANH": _unary(UnaryKind.TANH),
    "STABLEHLO_LOGISTIC": _unary(UnaryKind.LOGISTIC),
    "STABLEHLO_FLOOR": _unary(UnaryKind.FLOOR),
    "STABLEHLO_COSINE": _unary(UnaryKind.COS),
    "STABLEHLO_COMPARE": _stablehlo_compare,
    "STABLEHLO_SELECT": fixed(Select()),
    "STABLEHLO_CONVERT": lambda operator: Cast(_result_dtype(operator)),
}
CUSTOM: Table = {}
