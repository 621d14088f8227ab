"""Functions of one element in terms of others: tangents, hyperbolic functions, and their inverses.

Those in which terms nearly cancel, or which round several times, are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from onert_llvm.kernels.arithmetic.expression import Apply, Const, Expr, Fn, Kind

_HUGE = 2.0**28
"""From here on, the square of a number plus 1 equals the square in float64."""


def number(x: Expr, value: float) -> Const:
    """A number of the kind of `x`."""
    return Const(value, x.kind)


def call(fn: Fn, *args: Expr) -> Expr:
    """A function whose result has the kind of its first argument."""
    return Apply(fn, args, args[0].kind)


def less(x: Expr, y: Expr) -> Expr:
    return Apply(Fn.LT, (x, y), Kind.BOOL)


def chosen(condition: Expr, x: Expr, y: Expr) -> Expr:
    return Apply(Fn.SELECT, (condition, x, y), x.kind)


def _in_float64(function: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    def found(x: Expr) -> Expr:
        if x.kind is Kind.F64:
            return function(x)
        return Apply(Fn.CAST, (function(Apply(Fn.CAST, (x,), Kind.F64)),), x.kind)

    return found


def _odd(function: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """An odd function, from one of the magnitude; zeros are returned as they are."""

    def found(x: Expr) -> Expr:
        size = function(call(Fn.ABS, x))
        signed = chosen(less(x, number(x, 0.0)), call(Fn.NEG, size), size)
        return chosen(Apply(Fn.EQ, (x, number(x, 0.0)), Kind.BOOL), x, signed)

    return found


def log1p(x: Expr) -> Expr:
    """`log(1 + x)`: what rounding loses in the sum is added to its logarithm."""
    one = number(x, 1.0)
    total = call(Fn.ADD, x, one)
    lost = call(Fn.DIV, call(Fn.SUB, x, call(Fn.SUB, total, one)), total)
    finite = Apply(Fn.AND, (less(number(x, 0.0), total), less(total, number(x, math.inf))), Kind.BOOL)
    return call(Fn.ADD, call(Fn.LOG, total), chosen(finite, lost, number(x, 0.0)))


def tan(x: Expr) -> Expr:
    return call(Fn.DIV, call(Fn.SIN, x), call(Fn.COS, x))


def _complement(x: Expr) -> Expr:
    """`sqrt(1 - x²)`, from factors that are exact where they nearly vanish."""
    one = number(x, 1.0)
    return call(Fn.SQRT, call(Fn.MUL, call(Fn.SUB, one, x), call(Fn.ADD, one, x)))


def asin(x: Expr) -> Expr:
    return call(Fn.ATAN2, x, _complement(x)) if x.kind is Kind.F64 else call(Fn.ASIN, x)


def acos(x: Expr) -> Expr:
    return call(Fn.ATAN2, _complement(x), x) if x.kind is Kind.F64 else call(Fn.ACOS, x)


def atan(x: Expr) -> Expr:
    return call(Fn.ATAN2, x, number(x, 1.0)) if x.kind is Kind.F64 else call(Fn.ATAN, x)


def _cosh(x: Expr) -> Expr:
    """`h²/2 + 1/(2h²)` with `h = exp(|x|/2)`, which is infinite only if the result is."""
    h = call(Fn.EXP, call(Fn.MUL, call(Fn.ABS, x), number(x, 0.5)))
    half = call(Fn.MUL, call(Fn.MUL, h, number(x, 0.5)), h)
    return call(Fn.ADD, half, call(Fn.DIV, number(x, 0.5), call(Fn.MUL, h, h)))


def _asinh(x: Expr) -> Expr:
    """`log(x + sqrt(x² + 1))` of a non-negative number."""
    one, square = number(x, 1.0), call(Fn.MUL, x, x)
    root = call(Fn.SQRT, call(Fn.ADD, square, one))
    near = log1p(call(Fn.ADD, x, call(Fn.DIV, square, call(Fn.ADD, root, one))))
    return chosen(less(x, number(x, _HUGE)), near, _log_of_twice(x))


def _acosh(x: Expr) -> Expr:
    """`log(x + sqrt(x² - 1))`; both factors have their own root, which is NaN for x below 1."""
    above = call(Fn.SUB, x, number(x, 1.0))
    root = call(Fn.MUL, call(Fn.SQRT, above), call(Fn.SQRT, call(Fn.ADD, above, number(x, 2.0))))
    return chosen(less(number(x, _HUGE), x), _log_of_twice(x), log1p(call(Fn.ADD, above, root)))


def _log_of_twice(x: Expr) -> Expr:
    return call(Fn.ADD, call(Fn.LOG, x), number(x, math.log(2)))


def _atanh(x: Expr) -> Expr:
    """`log((1 + x) / (1 - x)) / 2` of a non-negative number."""
    ratio = call(Fn.DIV, call(Fn.ADD, x, x), call(Fn.SUB, number(x, 1.0), x))
    return call(Fn.MUL, log1p(ratio), number(x, 0.5))


cosh = _in_float64(_cosh)
sinh = _in_float64(lambda x: call(Fn.MUL, call(Fn.TANH, x), _cosh(x)))
asinh = _in_float64(_odd(_asinh))
acosh = _in_float64(_acosh)
atanh = _in_float64(_odd(_atanh))


def softplus(x: Expr) -> Expr:
    """`max(x, 0) + log(1 + exp(-|x|))`, which does not overflow."""
    if x.kind is Kind.F32:
        return call(Fn.SOFTPLUS, x)
    rest = log1p(call(Fn.EXP, call(Fn.NEG, call(Fn.ABS, x))))
    return call(Fn.ADD, call(Fn.MAXIMUM, x, number(x, 0.0)), rest)


def tanh(x: Expr) -> Expr:
    """tanh(x); of a softplus (Mish), it is a quotient of polynomials of its exponential."""
    if isinstance(x, Apply) and x.fn is Fn.SOFTPLUS:
        return call(Fn.MISH_FACTOR, *x.args)
    return call(Fn.TANH, x)


def trunc(x: Expr) -> Expr:
    return chosen(less(x, number(x, 0.0)), call(Fn.CEIL, x), call(Fn.FLOOR, x))


def erf(x: Expr) -> Expr:
    """erf(x); if `x` is a quotient with a constant divisor (GELU), it is multiplied by the reciprocal, which is faster.

    The argument's error is then at most 1.5 ulp, and that of erf no more, as x erf'(x) / erf(x) is at most 1.
    """
    if (
        isinstance(x, Apply)
        and x.fn is Fn.DIV
        and isinstance(x.args[1], Const)
        and _HUGE > abs(x.args[1].value) > 1 / _HUGE
    ):
        x = call(Fn.MUL, x.args[0], number(x, 1 / x.args[1].value))
    return call(Fn.ERF, x)


def gelu(x: Expr) -> Expr:
    """x / 2 · (1 + erf(x / √2))."""
    if x.kind is Kind.F32:
        return call(Fn.GELU, x)
    inside = call(Fn.ERF, call(Fn.MUL, x, number(x, math.sqrt(0.5))))
    return call(Fn.MUL, call(Fn.MUL, x, number(x, 0.5)), call(Fn.ADD, inside, number(x, 1.0)))


def gelu_tanh(x: Expr) -> Expr:
    """x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), computed as x times a logistic function."""
    scale = 2 * math.sqrt(2 / math.pi)
    bent = call(Fn.ADD, call(Fn.MUL, call(Fn.MUL, x, x), number(x, 0.044715 * scale)), number(x, scale))
    return call(Fn.MUL, x, call(Fn.LOGISTIC, call(Fn.MUL, x, bent)))
