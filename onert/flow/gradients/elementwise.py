"""Derivatives of elementwise operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from onert.flow.graph import Operation, Variable

from .accumulation import GradientRule, Gradients

Derivative = Callable[[Gradients, Variable, Variable, Variable], Variable]
"""For `y = f(x)`: computes the adjoint of `x` from `x`, `y` and the adjoint of `y`."""
_LN2 = math.log(2)
_GELU, _CUBIC = math.sqrt(2 / math.pi), 0.044715


def _of_one(derivative: Derivative, g: Gradients, operation: Operation) -> list[Callable[[], Variable]]:
    (x,), (y,) = operation.inputs, operation.outputs
    return [lambda: derivative(g, x, y, g.adjoint(y))]


def _one_minus(g: Gradients, x: Variable) -> Variable:
    return g.sub(1.0, g.square(x))


def _one_plus(g: Gradients, x: Variable) -> Variable:
    return g.add(g.square(x), 1.0)


def _gelu(g: Gradients, x: Variable, y: Variable, d: Variable) -> Variable:
    """For `x/2 · (1 + t)`, `t = tanh(k · (x + c·x³))`."""
    square = g.square(x)
    t = g.tanh(g.mul(g.mul(x, _GELU), g.add(g.mul(square, _CUBIC), 1.0)))
    inner = g.mul(g.add(g.mul(square, 3 * _CUBIC), 1.0), _GELU)
    slope = g.add(g.add(t, 1.0), g.mul(g.mul(x, _one_minus(g, t)), inner))
    return g.mul(d, g.mul(slope, 0.5))


_OF_ONE: Mapping[str, Derivative] = {
    "Identity": lambda g, x, y, d: d,
    "Abs": lambda g, x, y, d: g.mul(d, g.sign(x)),
    "Neg": lambda g, x, y, d: g.neg(d),
    "Square": lambda g, x, y, d: g.mul(d, g.mul(x, 2.0)),
    "Sqrt": lambda g, x, y, d: g.div(g.mul(d, 0.5), y),
    "Rsqrt": lambda g, x, y, d: g.mul(d, g.mul(g.mul(y, g.square(y)), -0.5)),
    "Reciprocal": lambda g, x, y, d: g.mul(d, g.neg(g.square(y))),
    "Exp": lambda g, x, y, d: g.mul(d, y),
    "Exp2": lambda g, x, y, d: g.mul(d, g.mul(y, _LN2)),
    "Log": lambda g, x, y, d: g.div(d, x),
    "Log2": lambda g, x, y, d: g.div(d, g.mul(x, _LN2)),
    "Erf": lambda g, x, y, d: g.mul(d, g.mul(g.exp(g.neg(g.square(x))), 2 / math.sqrt(math.pi))),
    "Sigmoid": lambda g, x, y, d: g.mul(d, g.mul(y, g.sub(1.0, y))),
    "Relu": lambda g, x, y, d: g.select(g.greater(y, 0.0), d),
    "Gelu": _gelu,
    "Softsign": lambda g, x, y, d: g.div(d, g.square(g.add(g.abs(x), 1.0))),
    "Softplus": lambda g, x, y, d: g.mul(d, g.sigmoid(x)),
    "LogSigmoid": lambda g, x, y, d: g.mul(d, g.sigmoid(g.neg(x))),
    "Sin": lambda g, x, y, d: g.mul(d, g.cos(x)),
    "Cos": lambda g, x, y, d: g.mul(d, g.neg(g.sin(x))),
    "Tan": lambda g, x, y, d: g.mul(d, _one_plus(g, y)),
    "Cot": lambda g, x, y, d: g.neg(g.mul(d, _one_plus(g, y))),
    "Sec": lambda g, x, y, d: g.mul(d, g.mul(y, g.tan(x))),
    "Csc": lambda g, x, y, d: g.neg(g.mul(d, g.mul(y, g.cot(x)))),
    "Asin": lambda g, x, y, d: g.mul(d, g.rsqrt(_one_minus(g, x))),
    "Acos": lambda g, x, y, d: g.neg(g.mul(d, g.rsqrt(_one_minus(g, x)))),
    "Atan": lambda g, x, y, d: g.div(d, _one_plus(g, x)),
    "Acot": lambda g, x, y, d: g.neg(g.div(d, _one_plus(g, x))),
    "Asec": lambda g, x, y, d: g.div(g.mul(d, g.rsqrt(g.sub(g.square(x), 1.0))), g.abs(x)),
    "Acsc": lambda g, x, y, d: g.neg(g.div(g.mul(d, g.rsqrt(g.sub(g.square(x), 1.0))), g.abs(x))),
    "Sinh": lambda g, x, y, d: g.mul(d, g.cosh(x)),
    "Cosh": lambda g, x, y, d: g.mul(d, g.sinh(x)),
    "Tanh": lambda g, x, y, d: g.mul(d, _one_minus(g, y)),
    "Coth": lambda g, x, y, d: g.mul(d, _one_minus(g, y)),
    "Sech": lambda g, x, y, d: g.neg(g.mul(d, g.mul(y, g.tanh(x)))),
    "Csch": lambda g, x, y, d: g.neg(g.mul(d, g.mul(y, g.coth(x)))),
    "Asinh": lambda g, x, y, d: g.mul(d, g.rsqrt(_one_plus(g, x))),
    "Acosh": lambda g, x, y, d: g.mul(d, g.rsqrt(g.sub(g.square(x), 1.0))),
    "Atanh": lambda g, x, y, d: g.div(d, _one_minus(g, x)),
    "Acoth": lambda g, x, y, d: g.div(d, _one_minus(g, x)),
    "Asech": lambda g, x, y, d: g.neg(g.div(g.mul(d, g.rsqrt(_one_minus(g, x))), x)),
    "Acsch": lambda g, x, y, d: g.neg(g.div(g.mul(d, g.rsqrt(_one_plus(g, x))), g.abs(x))),
}
_OF_ONE_CAST = ("Cast", "CastFloat", "CastDouble", "CastHalf")


def _cast(g: Gradients, operation: Operation) -> list[Callable[[], Variable]]:
    (x,), (y,) = operation.inputs, operation.outputs
    return [lambda: g.cast(g.adjoint(y), x.type.removeprefix("&"))]


OfTwo = Callable[[Gradients, Variable, Variable, Variable, Variable], Variable]
"""For `z = f(x, y)`: computes the adjoint of one operand from `x`, `y`, `z` and the adjoint of `z`."""


def _of_two(first: OfTwo, second: OfTwo, g: Gradients, operation: Operation) -> list[Callable[[], Variable]]:
    (x, y), (z,) = operation.inputs, operation.outputs
    return [lambda: first(g, x, y, z, g.adjoint(z)), lambda: second(g, x, y, z, g.adjoint(z))]


_OF_TWO: Mapping[str, tuple[OfTwo, OfTwo]] = {
    "Add": (lambda g, x, y, z, d: d, lambda g, x, y, z, d: d),
    "Sub": (lambda g, x, y, z, d: d, lambda g, x, y, z, d: g.neg(d)),
    "Mul": (lambda g, x, y, z, d: g.mul(d, y), lambda g, x, y, z, d: g.mul(d, x)),
    "Div": (lambda g, x, y, z, d: g.div(d, y), lambda g, x, y, z, d: g.neg(g.div(g.mul(d, z), y))),
    "Mod": (lambda g, x, y, z, d: d, lambda g, x, y, z, d: g.neg(g.mul(d, g.trunc(g.div(x, y))))),
    "Minimum": (
        lambda g, x, y, z, d: g.select(g.less_equal(x, y), d),
        lambda g, x, y, z, d: g.select(g.greater(x, y), d),
    ),
    "Maximum": (
        lambda g, x, y, z, d: g.select(g.greater_equal(x, y), d),
        lambda g, x, y, z, d: g.select(g.less(x, y), d),
    ),
    "Pow": (
        lambda g, x, y, z, d: g.mul(d, g.mul(y, g.pow(x, g.sub(y, 1.0)))),
        lambda g, x, y, z, d: g.select(g.greater(x, 0.0), g.mul(d, g.mul(z, g.log(x)))),
    ),
}
"""If two elements are equal, the first counts as both the smaller and the larger one."""


def _cond(g: Gradients, operation: Operation) -> list[Callable[[], Variable] | None]:
    (c, _, _), (z,) = operation.inputs, operation.outputs
    return [None, lambda: g.select(c, g.adjoint(z)), lambda: g.cond(c, 0.0, g.adjoint(z))]


def _select(g: Gradients, operation: Operation) -> list[Callable[[], Variable] | None]:
    (c, _), (z,) = operation.inputs, operation.outputs
    return [None, lambda: g.select(c, g.adjoint(z))]


RULES: Mapping[str, GradientRule] = {
    **{name: partial(_of_one, derivative) for name, derivative in _OF_ONE.items()},
    **{name: partial(_of_two, *derivatives) for name, derivatives in _OF_TWO.items()},
    **dict.fromkeys(_OF_ONE_CAST, _cast),
    "Cond": _cond,
    "Select": _select,
}
