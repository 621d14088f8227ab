"""Activations that other operations end with."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.errors import RuleError
from onert.ir.types import TensorType
from onert.ir.value import Value

from .fixed_point import activation_range


@frozen
class Clamp(Value):
    """A fused activation: real bounds, or a function where bounds do not say it."""

    low: float | None = None
    high: float | None = None
    function: Callable[[Array], Array] | None = None


def bounded(x: Array, low: float | None, high: float | None) -> Array:
    """`x` between two bounds of its own type, either of which may be missing: NaN stays NaN, and -0 stays -0."""
    if low is not None:
        least = x.dtype.type(low)
        x = np.where(x < least, least, x)
    if high is not None:
        most = x.dtype.type(high)
        x = np.where(x > most, most, x)
    return x


def _sign_bit(x: Array) -> Array:
    out: Array = np.signbit(x).astype(x.dtype)
    return out


class Activation(Enum):
    """The fused activation functions of the TFLite schema (ActivationFunctionType)."""

    NONE = Clamp()
    RELU = Clamp(low=0.0)
    RELU_N1_TO_1 = Clamp(low=-1.0, high=1.0)
    RELU6 = Clamp(low=0.0, high=6.0)
    TANH = Clamp(function=np.tanh)
    SIGN_BIT = Clamp(function=_sign_bit)

    def apply(self, x: Array) -> Array:
        """The activation on real numbers (or plain integers), in x's own type; NaN stays NaN."""
        clamp = self.value
        if clamp.function is not None:
            return clamp.function(x).astype(x.dtype, copy=False)
        low = 0 if clamp.low is not None and x.dtype.kind == "u" else clamp.low
        return bounded(x, low, clamp.high)

    def bounds(self, output: TensorType) -> tuple[int, int]:
        """The stored values between which a result quantised as `output` is clamped.

        RuleError if the activation is no clamp (TFLite's integer kernels have none of those).
        """
        from_real = self.value
        if from_real.function is not None:
            raise RuleError(f"activation {self.name} has no integer form")
        return activation_range(from_real.low, from_real.high, output.scale, output.zero_point, output.dtype.limits)
