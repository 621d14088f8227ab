"""Cases of functions of one, two and three elements, and of conversions."""

from __future__ import annotations

import math

import numpy as np

from onert.ir import Array, DType, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.binary import AddN, Binary, BinaryKind, PRelu
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Bitcast, Cast, Dequantize, FakeQuant, Quantize
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind, ZerosLike

from .case import Case


def _f(*values: float) -> Array:
    return np.array(values, np.float32)


def _i(*values: int, dtype: type = np.int32) -> Array:
    return np.array(values, dtype)


def _unary(kind: UnaryKind, x: Array, *expected: float | bool | complex, tolerance: float = 1e-6) -> Case:
    to = x.dtype if kind not in _REAL_PARTS else np.float32
    return Case(kind.name, Unary(kind), (x,), (np.array(expected, to),), tolerance=tolerance)


_REAL_PARTS = (UnaryKind.COMPLEX_ABS, UnaryKind.REAL, UnaryKind.IMAG)
_COMPLEX = np.array([3 - 4j, -1 + 0j], np.complex64)

_FUNCTIONS = [
    _unary(UnaryKind.ABS, _f(-2, 0, 1.5), 2, 0, 1.5),
    _unary(UnaryKind.ABS, _i(-7, 7, 0), 7, 7, 0),
    _unary(UnaryKind.NEG, _f(-2, 0.5), 2, -0.5),
    _unary(UnaryKind.SQUARE, _i(-3, 4), 9, 16),
    _unary(UnaryKind.SIGN, _f(-2, 0, 9), -1, 0, 1),
    _unary(UnaryKind.EXP, _f(0, 1, -1), 1, math.e, 1 / math.e),
    _unary(UnaryKind.LOG, _f(1, math.e, 0), 0, 1, -math.inf),
    _unary(UnaryKind.SQRT, _f(0, 9, 2), 0, 3, math.sqrt(2)),
    _unary(UnaryKind.RSQRT, _f(4, 0.25), 0.5, 2),
    _unary(UnaryKind.CBRT, _f(27, -8), 3, -2),
    _unary(UnaryKind.SIN, _f(0, math.pi / 2), 0, 1),
    _unary(UnaryKind.COS, _f(0, math.pi), 1, -1),
    _unary(UnaryKind.TAN, _f(0, math.pi / 4, -1), 0, 1, math.tan(-1)),
    _unary(UnaryKind.ASIN, _f(0, 1, -0.5, 2), 0, math.pi / 2, -math.pi / 6, math.nan),
    _unary(UnaryKind.ACOS, _f(1, -1, 0.5, 2), 0, math.pi, math.pi / 3, math.nan),
    _unary(UnaryKind.ATAN, _f(0, 1, -1e30), 0, math.pi / 4, -math.pi / 2),
    _unary(UnaryKind.SINH, _f(0, 1, -2), 0, math.sinh(1), math.sinh(-2)),
    _unary(UnaryKind.COSH, _f(0, 1, -2), 1, math.cosh(1), math.cosh(2)),
    _unary(UnaryKind.TANH, _f(0, 1, -100), 0, math.tanh(1), -1),
    _unary(UnaryKind.ASINH, _f(0, 1, -100), 0, math.asinh(1), math.asinh(-100)),
    _unary(UnaryKind.ACOSH, _f(1, 2, 0.5), 0, math.acosh(2), math.nan),
    _unary(UnaryKind.ATANH, _f(0, 0.5, -1, 2), 0, math.atanh(0.5), -math.inf, math.nan),
    _unary(UnaryKind.LOGISTIC, _f(0, 1, -200, 200), 0.5, 1 / (1 + math.exp(-1)), 0, 1),
    _unary(UnaryKind.ELU, _f(2, -1), 2, math.exp(-1) - 1),
    _unary(UnaryKind.GELU, _f(0, 1, -1), 0, 0.841344746, -0.158655254),
    _unary(UnaryKind.GELU_TANH, _f(0, 1, -1), 0, 0.841191991, -0.158808009),
    _unary(UnaryKind.HARD_SWISH, _f(-4, -1, 0, 1, 4), 0, -1 / 3, 0, 2 / 3, 4),
    _unary(UnaryKind.RELU, _f(-1, 0, 7), 0, 0, 7),
    _unary(UnaryKind.RELU6, _f(-1, 3, 7), 0, 3, 6),
    _unary(UnaryKind.RELU_N1_TO_1, _f(-3, 0.5, 7), -1, 0.5, 1),
    _unary(UnaryKind.RELU_0_TO_1, _f(-3, 0.5, 7), 0, 0.5, 1),
    _unary(UnaryKind.FLOOR, _f(-1.5, 1.5), -2, 1),
    _unary(UnaryKind.CEIL, _f(-1.5, 1.5), -1, 2),
    _unary(UnaryKind.TRUNC, _f(-1.5, 1.5, -0.5), -1, 1, -0.0),
    _unary(UnaryKind.ROUND, _f(0.5, 1.5, -2.5, 2.6), 0, 2, -2, 3),
    _unary(UnaryKind.LOGICAL_NOT, np.array([True, False]), False, True),
    _unary(UnaryKind.COMPLEX_ABS, _COMPLEX, 5, 1),
    _unary(UnaryKind.REAL, _COMPLEX, 3, -1),
    _unary(UnaryKind.IMAG, _COMPLEX, -4, 0),
    Case("with a slope", LeakyRelu(0.25), (_f(-4, 0, 3),), (_f(-1, 0, 3),)),
    Case("of floats", ZerosLike(), (_f(1, 2),), (_f(0, 0),)),
]


def _pair(kind: BinaryKind, x: Array, y: Array, *expected: float | bool) -> Case:
    return Case(kind.name, Binary(kind), (x, y), (np.array(expected, x.dtype),), tolerance=1e-6)


_BOOLS = (np.array([True, True, False, False]), np.array([True, False, True, False]))

_PAIRS = [
    _pair(BinaryKind.ADD, _f(1, 2), _f(10), 11, 12),
    _pair(BinaryKind.ADD, _i(127, -128, dtype=np.int8), _i(1, -1, dtype=np.int8), -128, 127),
    _pair(BinaryKind.SUB, _i(1, 2), _i(5, -5), -4, 7),
    _pair(BinaryKind.MUL, _f(3, -2), _f(0.5, 4), 1.5, -8),
    _pair(BinaryKind.DIV, _f(1, -3), _f(4, 2), 0.25, -1.5),
    _pair(BinaryKind.DIV, _i(7, -7, 7, -7), _i(2, 2, -2, -2), 3, -3, -3, 3),
    _pair(BinaryKind.FLOOR_DIV, _i(7, -7, 7), _i(2, 2, -2), 3, -4, -4),
    _pair(BinaryKind.FLOOR_DIV, _f(7, -7), _f(2, 2), 3, -4),
    _pair(BinaryKind.FLOOR_MOD, _i(7, -7, 7), _i(3, 3, -3), 1, 2, -2),
    _pair(BinaryKind.FLOOR_MOD, _f(7.5, -7.5), _f(3, 3), 1.5, 1.5),
    _pair(BinaryKind.REMAINDER, _i(7, -7, 7), _i(3, 3, -3), 1, -1, 1),
    _pair(BinaryKind.POW, _f(2, 9), _f(10, 0.5), 1024, 3),
    _pair(BinaryKind.POW, _i(2, -3), _i(10, 3), 1024, -27),
    _pair(BinaryKind.MAXIMUM, _f(1, -2), _f(0, 0), 1, 0),
    _pair(BinaryKind.MINIMUM, _f(1, -2), _f(0, 0), 0, -2),
    _pair(BinaryKind.SQUARED_DIFFERENCE, _f(1, -2), _f(4, 4), 9, 36),
    _pair(BinaryKind.ATAN2, _f(1, -1), _f(0, -1), math.pi / 2, -3 * math.pi / 4),
    _pair(BinaryKind.LOGICAL_AND, *_BOOLS, True, False, False, False),
    _pair(BinaryKind.LOGICAL_OR, *_BOOLS, True, True, True, False),
    _pair(BinaryKind.BITWISE_AND, _i(12), _i(10), 8),
    _pair(BinaryKind.BITWISE_OR, _i(12), _i(10), 14),
    _pair(BinaryKind.BITWISE_XOR, _i(12), _i(10), 6),
    _pair(BinaryKind.SHIFT_LEFT, _i(1, 1, 1), _i(3, 31, 32), 8, -(2**31), 0),
    _pair(BinaryKind.SHIFT_RIGHT, _i(-8, 8, -8), _i(1, 3, 40), -4, 1, -1),
    Case(
        "broadcast over both",
        Binary(BinaryKind.ADD),
        (_f(1, 2, 3).reshape(3, 1), _f(10, 20).reshape(1, 2)),
        (np.float32([[11, 21], [12, 22], [13, 23]]),),
    ),
    Case("then relu6", Binary(BinaryKind.SUB, Activation.RELU6), (_f(1, 9, 20), _f(2, 4, 2)), (_f(0, 5, 6),)),
    Case(
        "int8 on three scales",  # (2 - 1) * 0.5 + (40 + 4) * 0.25 = 11.5 = (43 + 3) * 0.25
        Binary(BinaryKind.ADD),
        (_i(2, dtype=np.int8), _i(40, dtype=np.int8)),
        (_i(43, dtype=np.int8),),
        (Quantization((0.5,), (1,)), Quantization((0.25,), (-4,))),
        (Quantization((0.25,), (-3,)),),
    ),
    Case(
        "uint8 product",  # (130 - 128) * 0.5 * (6 - 2) * 0.25 = 1 = (11 - 1) * 0.1
        Binary(BinaryKind.MUL),
        (_i(130, dtype=np.uint8), _i(6, dtype=np.uint8)),
        (_i(11, dtype=np.uint8),),
        (Quantization((0.5,), (128,)), Quantization((0.25,), (2,))),
        (Quantization((0.1,), (1,)),),
    ),
    Case(
        "int16 far apart",  # (20 - -10) ** 2 = 900 = 18000 * 0.05
        Binary(BinaryKind.SQUARED_DIFFERENCE),
        (_i(20000, dtype=np.int16), _i(-10000, dtype=np.int16)),
        (_i(18000, dtype=np.int16),),
        (Quantization((0.001,), (0,)), Quantization((0.001,), (0,))),
        (Quantization((0.05,), (0,)),),
    ),
    Case("of three", AddN(), (_f(1, 2), _f(3, 4), _f(5, 6)), (_f(9, 12),)),
    Case(
        "a slope for each channel",
        PRelu(),
        (_f(-4, 4, -2, -1).reshape(2, 2), _f(0.5, 2)),
        (_f(-2, 4, -1, -2).reshape(2, 2),),
    ),
]


def _relation(kind: ComparisonKind, *expected: bool) -> Case:
    return Case(kind.name, Comparison(kind), (_f(1, 2, 3), _f(2, 2, 2)), (np.array(expected),))


_CHOICES = [
    _relation(ComparisonKind.EQUAL, False, True, False),
    _relation(ComparisonKind.NOT_EQUAL, True, False, True),
    _relation(ComparisonKind.LESS, True, False, False),
    _relation(ComparisonKind.LESS_EQUAL, True, True, False),
    _relation(ComparisonKind.GREATER, False, False, True),
    _relation(ComparisonKind.GREATER_EQUAL, False, True, True),
    Case(
        "int8 on two scales",  # 4 * 0.5 = 2 = (9 - 1) * 0.25
        Comparison(ComparisonKind.EQUAL),
        (_i(4, dtype=np.int8), _i(9, dtype=np.int8)),
        (np.array([True]),),
        (Quantization((0.5,), (0,)), Quantization((0.25,), (1,))),
    ),
    Case(
        "broadcast",
        Select(),
        (np.array([[True], [False]]), _f(1, 2), _f(3, 4)),
        (np.float32([[1, 2], [3, 4]]),),
    ),
    Case(
        "rows",
        Select(rows=True),
        (np.array([True, False]), _i(1, 2, 3, 4).reshape(2, 2), _i(5, 6, 7, 8).reshape(2, 2)),
        (_i(1, 2, 7, 8).reshape(2, 2),),
    ),
]

_CONVERSIONS = [
    Case("floats truncate", Cast(DType.INT32), (_f(-1.7, 1.7, 3e10, math.nan),), (_i(-1, 1, 2**31 - 1, 2**31 - 1),)),
    Case("integers wrap", Cast(DType.UINT8), (_i(-1, 256, 7),), (_i(255, 0, 7, dtype=np.uint8),)),
    Case("not 0 is true", Cast(DType.BOOL), (_f(0, 0.5),), (np.array([False, True]),)),
    Case(
        "to even, below the normal range, beyond the range",
        Cast(DType.FLOAT16),
        (_f(1 + 2**-11, 1 + 3 * 2**-11, 2**-25, 3 * 2**-25, 65519, 65520, -math.inf),),
        (np.float16([1, 1 + 2**-9, 0, 2**-23, 65504, math.inf, -math.inf]),),
    ),
    Case(
        "to even",
        Cast(DType.BFLOAT16),
        (_f(1 + 2**-8, 1 + 3 * 2**-8, -3.4e38, 3.4e38),),
        (np.array([1, 1 + 2**-6, -math.inf, math.inf]).astype(DType.BFLOAT16.numpy),),
    ),
    Case(
        "integers as halves",
        Cast(DType.FLOAT16),
        (np.array([2049, 2051, 65519, 65520, -(2**62)]),),
        (np.float16([2048, 2052, 65504, math.inf, -math.inf]),),
    ),
    Case("halves as integers", Cast(DType.INT64), (np.float16([-1.7, 65504]),), (np.array([-1, 65504]),)),
    Case(
        "halves away from zero, saturated",  # 0.25 / 0.5 = 0.5 -> 1
        Quantize(DType.INT8),
        (_f(0.25, -0.25, 100),),
        (_i(4, 2, 127, dtype=np.int8),),
        result_quantization=(Quantization((0.5,), (3,)),),
    ),
    Case(
        "another scale",
        Quantize(DType.UINT8),
        (_i(-128, 0, 127, dtype=np.int8),),
        (_i(0, 128, 255, dtype=np.uint8),),
        (Quantization((0.5,), (0,)),),
        (Quantization((0.5,), (128,)),),
    ),
    Case(
        "for each channel",
        Dequantize(),
        (np.int8([[1, 2], [3, 4]]),),
        (np.float32([[0.5, 4], [1.5, 8]]),),
        (Quantization((0.5, 2.0), (0, 0), 1),),
    ),
    Case("halves", Dequantize(), (np.float16([1.5, -2]),), (_f(1.5, -2),)),
    Case("in eighths", FakeQuant(0.0, 31.875, 8), (_f(-1, 0.1, 1.3, 40),), (_f(0, 0.125, 1.25, 31.875),)),
    Case("one float", Bitcast(DType.INT32), (_f(1.0),), (_i(0x3F800000),)),
    Case("four bytes", Bitcast(DType.UINT8), (_i(0x04030201),), (_i(1, 2, 3, 4, dtype=np.uint8).reshape(1, 4),)),
]

CASES = [*_FUNCTIONS, *_PAIRS, *_CHOICES, *_CONVERSIONS]
