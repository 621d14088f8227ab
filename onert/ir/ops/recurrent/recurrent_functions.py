"""The logistic function and tanh in float32, exact and as approximated by the kernels with integer weights.

Those kernels quantise the results, so one different bit may change a result by a whole step. Here they are reproduced
bit by bit. Sources: Eigen's Core/functors/UnaryFunctors.h (the logistic function, for whole vectors) and
Core/arch/Default/GenericPacketMathFunctions.h (tanh, a rational approximation of degrees 9 and 8), without fused
multiply-adds, as LiteRT is built for x86.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.value import Value

_F = np.float32


def _logistic(x: Array) -> Array:
    out: Array = 1 / (1 + np.exp(-x))
    return out


def _tanh(x: Array) -> Array:
    return np.tanh(x)


_UNIT = _F(16.6355324)
"""The argument from which the logistic function is 1."""


def _approximate_logistic(x: Array) -> Array:
    """exp(x) / (1 + exp(x)), where exp(x) is 2**(2 * m) * exp(r)**2."""
    half = np.minimum(x, _UNIT) * _F(0.5)
    m = np.floor(half * _F(1.44269504088896341) + _F(0.5))
    r = m * _F(-0.693359375) + half
    r = m * _F(2.12194440e-4) + r
    square = r * r
    even = square * _F(4.1898667812347412109375e-2) + _F(0.49999141693115234375)
    odd = square * _F(8.33471305668354034423828125e-3) + _F(0.16666877269744873046875)
    root = np.ldexp(square * (r * odd + even) + (r + _F(1)), np.nan_to_num(m).astype(np.int32))
    power = root * root
    return np.where(x < -104, _F(0), power / (_F(1) + power))


_SATURATED = _F(7.90738964080810547)
"""The argument from which tanh is 1."""
_NUMERATOR = (1.394553628e-8, 2.102733560e-5, 3.520756727e-3, 1.340216100e-1)
_DENOMINATOR = (8.015776984e-7, 3.326951409e-4, 2.597254514e-2, 4.673548340e-1, 1.0)


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    out: Array = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        out = out * x + _F(coefficient)
    return out


def _approximate_tanh(x: Array) -> Array:
    x = np.clip(x, -_SATURATED, _SATURATED)
    square = x * x
    out: Array = (square * x * _polynomial(square, _NUMERATOR) + x) / _polynomial(square, _DENOMINATOR)
    return out


@frozen
class Functions(Value):
    """The functions with which a layer computes its gates."""

    logistic: Callable[[Array], Array]
    tanh: Callable[[Array], Array]

    def activate(self, activation: Activation, x: Array) -> Array:
        return self.tanh(x) if activation is Activation.TANH else activation.apply(x)


EXACT = Functions(_logistic, _tanh)
APPROXIMATE = Functions(_approximate_logistic, _approximate_tanh)
