"""Fused activations: functions applied to the result of another operation."""

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
    """A fused activation: real bounds, or a function if it is not a clamp."""

    low: float | None = None
    high: float | None = None
    function: Callable[[Array], Array] | None = None


def bounded(x: Array, low: float | None, high: float | None) -> Array:
    """Clamp `x` to optional bounds, converted to its dtype. NaN and -0 are preserved."""
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
        """Apply the activation to real numbers (or plain integers), in the dtype of `x`. NaN stays NaN."""
        clamp = self.value
        if clamp.function is not None:
            return clamp.function(x).astype(x.dtype, copy=False)
        low = 0 if clamp.low is not None and x.dtype.kind == "u" else clamp.low
        return bounded(x, low, clamp.high)

    def bounds(self, output: TensorType) -> tuple[int, int]:
        """The stored values between which a result with the quantisation of `output` is clamped.

        Raises RuleError if the activation is not a clamp (TFLite's integer kernels do not implement those).
        """
        from_real = self.value
        if from_real.function is not None:
            raise RuleError(f"activation {self.name} has no integer form")
        return activation_range(from_real.low, from_real.high, output.scale, output.zero_point, output.dtype.limits)
