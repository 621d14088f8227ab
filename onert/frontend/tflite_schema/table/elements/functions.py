"""Elementwise operators with one operand."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Importer, Table, fixed, read
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind, ZerosLike, unary_kinds


def _unary(kind: UnaryKind) -> Importer:
    return fixed(Unary(kind))


_UNARY = unary_kinds(
    "ABS NEG SQUARE SIGN EXP LOG SQRT RSQRT SIN COS TANH LOGISTIC ELU HARD_SWISH RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 "
    "FLOOR CEIL ROUND LOGICAL_NOT COMPLEX_ABS REAL IMAG"
)
"""Operators whose name is that of the unary function."""

TABLE: Table = {
    **{name: _unary(kind) for name, kind in _UNARY.items()},
    "GELU": lambda operator: Unary(UnaryKind.GELU_TANH if operator.flag("approximate") else UnaryKind.GELU),
    "LEAKY_RELU": read(LeakyRelu),
    "ZEROS_LIKE": fixed(ZerosLike()),
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
}
CUSTOM: Table = {}
