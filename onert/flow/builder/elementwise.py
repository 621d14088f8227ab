"""Elementwise operations: unary, binary with broadcasting, selection, and casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onert.flow.graph import DT_BOOL, Variable
from onert.ir import ModelError

from .core import Core

_CASTS = {
    "float32": "CastFloat",
    "float64": "CastDouble",
    "int8": "CastByte",
    "int16": "CastShort",
    "int32": "CastInt",
    "int64": "CastLong",
}
"""Operations that cast elements, by the source type."""


def _unary(optype: str, meaning: str) -> Callable[..., Variable]:
    def method(self: Core, x: Any, name: str | None = None) -> Variable:
        return self.op(optype, [x], name)

    method.__doc__ = f"{meaning}, elementwise."
    return method


def _binary(optype: str, meaning: str) -> Callable[..., Variable]:
    def method(self: Core, x: Any, y: Any, name: str | None = None) -> Variable:
        return self.op(optype, [x, y], name)

    method.__doc__ = f"{meaning}; shapes broadcast."
    return method


class Elementwise(Core):
    """Elementwise operations. Comparisons and logic return 1 or 0 in the type of their operands."""

    log = _unary("Log", "The natural logarithm")
    exp = _unary("Exp", "`e^x`")
    erf = _unary("Erf", "The error function")
    sigmoid = _unary("Sigmoid", "`1 / (1 + e^-x)`")
    relu = _unary("Relu", "`max(x, 0)`")
    gelu = _unary("Gelu", "The Gaussian error linear unit in its tanh approximation")
    softsign = _unary("Softsign", "`x / (1 + |x|)`")
    softplus = _unary("Softplus", "`log(1 + e^x)`")
    logsigmoid = _unary("LogSigmoid", "The logarithm of the sigmoid")
    sin = _unary("Sin", "The sine")
    cos = _unary("Cos", "The cosine")
    tan = _unary("Tan", "The tangent")
    cot = _unary("Cot", "The cotangent")
    sec = _unary("Sec", "The secant")
    csc = _unary("Csc", "The cosecant")
    asin = _unary("Asin", "The inverse sine")
    acos = _unary("Acos", "The inverse cosine")
    atan = _unary("Atan", "The inverse tangent")
    acot = _unary("Acot", "The inverse cotangent")
    asec = _unary("Asec", "The inverse secant")
    acsc = _unary("Acsc", "The inverse cosecant")
    sinh = _unary("Sinh", "The hyperbolic sine")
    cosh = _unary("Cosh", "The hyperbolic cosine")
    tanh = _unary("Tanh", "The hyperbolic tangent")
    coth = _unary("Coth", "The hyperbolic cotangent")
    sech = _unary("Sech", "The hyperbolic secant")
    csch = _unary("Csch", "The hyperbolic cosecant")
    asinh = _unary("Asinh", "The inverse hyperbolic sine")
    acosh = _unary("Acosh", "The inverse hyperbolic cosine")
    atanh = _unary("Atanh", "The inverse hyperbolic tangent")
    acoth = _unary("Acoth", "The inverse hyperbolic cotangent")
    asech = _unary("Asech", "The inverse hyperbolic secant")
    acsch = _unary("Acsch", "The inverse hyperbolic cosecant")
    square = _unary("Square", "`x²`")
    sqrt = _unary("Sqrt", "The square root")
    rsqrt = _unary("Rsqrt", "The reciprocal of the square root")
    neg = _unary("Neg", "`-x`")
    abs = _unary("Abs", "The magnitude")
    sign = _unary("Sign", "-1, 0 or 1")
    rcp = _unary("Reciprocal", "`1 / x`")
    floor = _unary("Floor", "The largest integer not above `x`")
    ceil = _unary("Ceil", "The smallest integer not below `x`")
    round = _unary("Round", "The nearest integer, ties to even")
    trunc = _unary("Trunc", "The integer part")
    identity = _unary("Identity", "`x`")
    logical_not = _unary("Not", "1 if `x` is 0, else 0")

    add = _binary("Add", "`x + y`")
    sub = _binary("Sub", "`x - y`")
    mul = _binary("Mul", "`x · y`")
    div = _binary("Div", "`x / y`; integers are truncated towards zero")
    mod = _binary("Mod", "The remainder of `x / y`, with the sign of `x`")
    minimum = _binary("Minimum", "The smaller one")
    maximum = _binary("Maximum", "The larger one")
    pow = _binary("Pow", "`x^y`")
    equal = _binary("Equal", "Whether `x = y`")
    not_equal = _binary("NotEqual", "Whether `x ≠ y`")
    less = _binary("Less", "Whether `x < y`")
    less_equal = _binary("LessEqual", "Whether `x ≤ y`")
    greater = _binary("Greater", "Whether `x > y`")
    greater_equal = _binary("GreaterEqual", "Whether `x ≥ y`")
    logical_and = _binary("And", "Whether neither is 0")
    logical_or = _binary("Or", "Whether at least one of them is not 0")
    logical_xor = _binary("Xor", "Whether exactly one of them is not 0")
    logical_and_not = _binary("AndNot", "Whether `x` is 0 and `y` is not")

    def cond(self, c: Any, x: Any, y: Any, name: str | None = None) -> Variable:
        """`x` where `c` is not 0, else `y`; shapes broadcast. The result has the type of `x`."""
        like = next((arg.type for arg in (x, y) if isinstance(arg, Variable)), None)
        operation, operands = self.begun("Cond", [c, self.value(x, like), self.value(y, like)], name)
        return self.result(operation, operands[1].type, self.broadcasting(operation, operands))

    def select(self, c: Any, x: Any, name: str | None = None) -> Variable:
        """`x` where `c` is not 0, else 0; shapes broadcast. The result has the type of `x`."""
        operation, operands = self.begun("Select", [c, self.value(x)], name)
        return self.result(operation, operands[1].type, self.broadcasting(operation, operands))

    def clip(self, x: Any, low: Any, high: Any, name: str | None = None) -> Variable:
        """`x` clamped to the range from `low` to `high`."""
        return self.minimum(self.maximum(x, low), high, name)

    def cast(self, x: Any, dtype: str, name: str | None = None) -> Variable:
        """The elements in another type. Raises ModelError if the type of `x` cannot be cast."""
        x = self.value(x)
        optype = "Cast" if x.type == DT_BOOL else _CASTS.get(x.type)
        if optype is None:
            raise ModelError(f"'{x.name}' is of type '{x.type}', expected one of {', '.join(_CASTS)}")
        return self.made(optype, [x], name, x.shape, dtype)
