"""Elementwise operators with two operands."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Importer, Table, fixed, read, result_dtype
from onert.ir import DType
from onert.ir.ops.elementwise.binary import AddN, Binary, BinaryKind, PRelu


def _binary(kind: BinaryKind) -> Importer:
    return fixed(Binary(kind))


def _bitwise_or_logical(logical: BinaryKind, bitwise: BinaryKind) -> Importer:
    return lambda operator: Binary(logical if result_dtype(operator) is DType.BOOL else bitwise)


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
"""Operators whose name is that of the binary function."""

TABLE: Table = {
    **{name: read(Binary, BinaryKind[name], power_of_two="pot_scale_int16") for name in ("ADD", "SUB", "MUL", "DIV")},
    **{name: _binary(BinaryKind[name]) for name in _BINARY},
    "RIGHT_SHIFT": _binary(BinaryKind.SHIFT_RIGHT),
    "ADD_N": fixed(AddN()),
    "PRELU": fixed(PRelu()),
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
}
CUSTOM: Table = {}
