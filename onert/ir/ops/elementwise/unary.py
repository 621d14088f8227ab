"""Functions of one operand, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic import unary_int16 as int16
from onert.ir.ops.arithmetic import unary_quantized as exact
from onert.ir.ops.arithmetic.activation import bounded
from onert.ir.types import CallTypes, TensorType
from onert.ir.value import NamedKind, Value


@frozen
class Scalar(Value):
    """A function of one element: its meaning in NumPy, and the element types besides floats for which it is defined."""

    numpy: Callable[[Array], Any]
    integers: bool = False
    booleans: bool = False
    complex: bool = False


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _logistic(x: Array) -> Array:
    """1 / (1 + e^-x), without overflow for either sign."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


def _gelu(x: Array) -> Array:
    wide = x.astype(np.float64)
    out: Array = (0.5 * wide * (1 + _erf(wide / math.sqrt(2)))).astype(x.dtype)
    return out


def _gelu_tanh(x: Array) -> Array:
    wide = x.astype(np.float64)
    out: Array = (0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))).astype(x.dtype)
    return out


def _stored_exp(x: Array) -> Array:
    """The exponential, rounded once: NumPy's own in float32 is often off by one unit in the last place."""
    return np.exp(x.astype(np.float64)).astype(x.dtype)


def _stored_gelu(x: Array) -> Array:
    """GELU in LiteRT's order of float32 operations, which decides where a result is midway between stored numbers."""
    complement = 1 + _erf(-(x * x.dtype.type(-math.sqrt(0.5))).astype(np.float64))
    out: Array = x.dtype.type(0.5) * x * complement.astype(x.dtype)
    return out


def _hard_swish(x: Array) -> Array:
    out: Array = x * np.clip(x + x.dtype.type(3), 0, 6) / x.dtype.type(6)
    return out


def _clip(low: float, high: float | None) -> Callable[[Array], Array]:
    def apply(x: Array) -> Array:
        least = 0 if x.dtype.kind == "u" else low  # unsigned types cannot represent a negative bound
        return bounded(x, least, high)

    return apply


class UnaryKind(NamedKind):
    """The functions, named after TFLite's operators, otherwise ONNX's, otherwise C's functions."""

    ABS = Scalar(np.abs, integers=True)
    NEG = Scalar(np.negative, integers=True, complex=True)
    SQUARE = Scalar(np.square, integers=True, complex=True)
    SIGN = Scalar(np.sign, integers=True)
    EXP = Scalar(np.exp, complex=True)
    LOG = Scalar(np.log, complex=True)
    SQRT = Scalar(np.sqrt, complex=True)
    RSQRT = Scalar(lambda x: 1 / np.sqrt(x), complex=True)
    CBRT = Scalar(np.cbrt)
    SIN = Scalar(np.sin, complex=True)
    COS = Scalar(np.cos, complex=True)
    TAN = Scalar(np.tan, complex=True)
    ASIN = Scalar(np.arcsin)
    ACOS = Scalar(np.arccos)
    ATAN = Scalar(np.arctan)
    SINH = Scalar(np.sinh)
    COSH = Scalar(np.cosh)
    TANH = Scalar(np.tanh, complex=True)
    ASINH = Scalar(np.arcsinh)
    ACOSH = Scalar(np.arccosh)
    ATANH = Scalar(np.arctanh)
    SOFTPLUS = Scalar(lambda x: np.logaddexp(x, x.dtype.type(0)))
    LOGISTIC = Scalar(_logistic)
    ELU = Scalar(lambda x: np.where(x < 0, np.expm1(x), x))
    ERF = Scalar(lambda x: _erf(x).astype(x.dtype))
    GELU = Scalar(_gelu)
    GELU_TANH = Scalar(_gelu_tanh)
    HARD_SWISH = Scalar(_hard_swish)
    RELU = Scalar(_clip(0, None), integers=True)
    RELU6 = Scalar(_clip(0, 6), integers=True)
    RELU_N1_TO_1 = Scalar(_clip(-1, 1), integers=True)
    RELU_0_TO_1 = Scalar(_clip(0, 1), integers=True)
    FLOOR = Scalar(np.floor)
    CEIL = Scalar(np.ceil)
    TRUNC = Scalar(np.trunc)
    ROUND = Scalar(np.rint)  # halves to even
    LOGICAL_NOT = Scalar(np.logical_not, booleans=True)
    COMPLEX_ABS = Scalar(np.abs, complex=True)
    REAL = Scalar(np.real, complex=True)
    IMAG = Scalar(np.imag, complex=True)


def unary_kinds(names: str) -> dict[str, UnaryKind]:
    """Kinds by a format's names for them, separated by spaces; these differ only in letter case, such as `Abs`."""
    return {name: UnaryKind[name.upper()] for name in names.split()}


_PARTS = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}
_INT16 = {UnaryKind.LOGISTIC: int16.logistic, UnaryKind.TANH: int16.tanh}
_INTERPOLATED = (UnaryKind.EXP, UnaryKind.LOG, UnaryKind.GELU, UnaryKind.GELU_TANH, UnaryKind.RSQRT)
_STORED = {
    UnaryKind.EXP: _stored_exp,
    UnaryKind.LOG: exact.log,
    UnaryKind.RSQRT: exact.inverse_root,
    UnaryKind.GELU: _stored_gelu,
}
"""Variants for quantised elements. Those outside of a function's domain map to the limits of the result."""
_ONLY_COMPLEX = (UnaryKind.COMPLEX_ABS, UnaryKind.REAL, UnaryKind.IMAG)


@frozen
class Unary(Op):
    """A function of one operand, element by element.

    `kind` is one of ABS NEG SQUARE SIGN EXP LOG SQRT RSQRT CBRT SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH
    ATANH SOFTPLUS (log(1 + e^x)) LOGISTIC ELU ERF GELU GELU_TANH HARD_SWISH RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 FLOOR
    CEIL TRUNC ROUND (halves to even) LOGICAL_NOT; COMPLEX_ABS, REAL and IMAG map complex numbers to real ones.

    - `x`: any shape. Floats; plain integers for ABS, NEG, SQUARE, SIGN and RELUs; quantised integers; booleans for
      LOGICAL_NOT; complex numbers for NEG, SQUARE, EXP, LOG, SQRT, RSQRT, SIN, COS, TAN and TANH

    Quantised elements are computed as in LiteRT's reference kernels: with a table of 256 float results where LiteRT
    has one, by interpolation in a table for int16, and with fixed-point multipliers for ABS, RELUs, HARD_SWISH and
    RSQRT. SQRT is rounded down. NEG negates the stored integers.
    """

    kind: UnaryKind

    def infer(self, x: TensorType) -> TensorType:
        scalar, dtype = self.kind.value, x.dtype
        quantized = dtype.is_integer and x.quantization is not None
        known = (
            (dtype.is_float and not scalar.booleans and self.kind not in _ONLY_COMPLEX)
            or (dtype.is_integer and (scalar.integers or (quantized and not scalar.booleans)))
            or (dtype is DType.BOOL and scalar.booleans)
            or (dtype.is_complex and scalar.complex)
        )
        require(known, f"{self.kind.name} is not defined on elements of type {dtype.text}")
        return TensorType(_PARTS[dtype], x.shape) if self.kind in _ONLY_COMPLEX else x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        out: Array = np.asarray(self.kind.value.numpy(x))
        return out if out.dtype == x.dtype or self.kind in _ONLY_COMPLEX else out.astype(x.dtype)

    def evaluate_quantized(self, types: CallTypes, x: Array) -> Array:
        source, result = types.input(0), types.output
        if source.quantization is None or result.quantization is None:
            return self.evaluate(x)
        if self.kind is UnaryKind.NEG:
            return self.evaluate(x)
        fixed = exact.FIXED.get(self.kind.name)
        if fixed is not None:
            return fixed(x, source, result)
        if source.dtype is DType.INT8 and self.kind is UnaryKind.RSQRT:
            return exact.rsqrt(x, source, result)
        if source.dtype is DType.INT16 and self.kind in _INT16:
            return _INT16[self.kind](x, source, result)
        function = _STORED.get(self.kind, self.evaluate)
        if source.dtype is DType.INT16 and self.kind in _INTERPOLATED:
            pole = self.kind is UnaryKind.RSQRT
            return int16.through_interpolation(function, x, source, result, pole=pole)
        return exact.through_table(function, x, source, result)


@frozen
class LeakyRelu(Op):
    """`x` where it is not negative, else `alpha * x`.

    - `x`: floats, or quantised integers, which are computed with two fixed-point multipliers
    """

    alpha: float = 0.0

    def infer(self, x: TensorType) -> TensorType:
        require(
            x.dtype.is_float or x.quantization is not None,
            f"LeakyRelu is not defined on elements of type {x.dtype.text} without quantisation",
        )
        return x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        out: Array = np.where(x < 0, x * x.dtype.type(self.alpha), x)
        return out

    def evaluate_quantized(self, types: CallTypes, x: Array) -> Array:
        return exact.leaky_relu(x, self.alpha, types.input(0), types.output)


@frozen
class ZerosLike(Op):
    """Zeros of the type and shape of `x`; reads no element of it."""

    def infer(self, x: TensorType) -> TensorType:
        require(
            x.dtype.is_numeric or x.dtype is DType.BOOL, f"ZerosLike is not defined on elements of type {x.dtype.text}"
        )
        return x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        return np.zeros_like(x)
