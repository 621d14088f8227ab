"""Quantised integers of different scales as integers of one scale, as TFLite compares them
(`onert.ir.ops.arithmetic.binary_quantized.comparable`)."""

from __future__ import annotations

from onert.ir import CallTypes, DType, TensorType
from onert.ir.ops.arithmetic.fixed_point import quantize_multiplier
from onert_llvm.kernels.arithmetic.expression import Apply, Const, Expr, Fn, Kind

_STORED = (DType.INT8, DType.UINT8, DType.INT16)
"""Integers whose products with a multiplier fit in 64 bits."""


def differ(types: CallTypes) -> bool:
    """Whether both sides have scales, and these are not the same."""
    x, y = (types.input(i).quantization for i in (0, 1))
    return x is not None and y is not None and x != y


def supported(types: CallTypes) -> bool:
    """Whether both sides have one scale each, and elements of 8 or 16 bits."""
    sides = (types.input(i) for i in (0, 1))
    return all(t.dtype in _STORED and t.quantization is not None and t.quantization.per_tensor for t in sides)


def comparable(x: Expr, type_: TensorType) -> Expr:
    """The elements times 256 and times their scale as a fixed-point number, in 64 bits."""
    multiplier = quantize_multiplier(type_.scale)
    left, right = max(multiplier.shift, 0), max(-multiplier.shift, 0)
    x = _with(Fn.SUB, _cast(x, Kind.I64), type_.zero_point)
    x = _with(Fn.MUL, x, 256 << left)
    if left:
        x = _cast(_cast(x, Kind.I32), Kind.I64)  # wraps
    x = _with(Fn.SHR, _with(Fn.ADD, _with(Fn.MUL, x, multiplier.mantissa), 1 << 30), 31)
    if not right:
        return x
    away = Apply(Fn.ADD, (x, _with(Fn.SHR, x, 63)), Kind.I64)
    return _with(Fn.SHR, _with(Fn.ADD, away, 1 << right - 1), right)


def _with(fn: Fn, x: Expr, number: int) -> Expr:
    return Apply(fn, (x, Const(number, Kind.I64)), Kind.I64)


def _cast(x: Expr, kind: Kind) -> Expr:
    return Apply(Fn.CAST, (x,), kind)
