"""Floats that are stored as bytes, as exported by training frameworks."""

from __future__ import annotations

import numpy as np

from onert.ir import DType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind


def scalar(b: Builder, value: float, dtype: type = np.float32) -> int:
    return b.constant(np.array(value, dtype))


def quantized(b: Builder, x: int, scale: float, zero: int, dtype: DType) -> int:
    x = b.add(Unary(UnaryKind.ROUND), b.add(Binary(BinaryKind.DIV), x, scalar(b, scale)))
    low, high = dtype.limits
    x = b.add(Binary(BinaryKind.MAXIMUM), b.add(Binary(BinaryKind.ADD), x, scalar(b, zero)), scalar(b, low))
    return b.add(Cast(dtype), b.add(Binary(BinaryKind.MINIMUM), x, scalar(b, high)))
