"""Activations that only clamp their operand, and the combination of two of them."""

from __future__ import annotations

import math

from attrs import frozen

from onert.ir import Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.value import Value


@frozen
class Bounds(Value):
    """The smallest and the largest result of an activation; infinite if unbounded."""

    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def of(cls, activation: Activation) -> Bounds | None:
        """The bounds of an activation; None if it does more than clamp."""
        clamp = activation.value
        if clamp.function is not None:
            return None
        return cls(-math.inf if clamp.low is None else clamp.low, math.inf if clamp.high is None else clamp.high)

    def within(self, other: Bounds) -> bool:
        """Whether every value within these bounds is within the others too."""
        return other.low <= self.low and self.high <= other.high


_UNARY = {
    UnaryKind.RELU: Bounds(0.0),
    UnaryKind.RELU6: Bounds(0.0, 6.0),
    UnaryKind.RELU_N1_TO_1: Bounds(-1.0, 1.0),
    UnaryKind.RELU_0_TO_1: Bounds(0.0, 1.0),
}


def as_clamp(op: Op) -> Bounds | None:
    """The bounds of an operation that is a clamping activation; None for any other."""
    return _UNARY.get(op.kind) if isinstance(op, Unary) else None


def activation_within(first: Bounds | None, then: Bounds) -> Activation | None:
    """The activation equivalent to the first clamp followed by the second; None if there is none."""
    if first is None or max(first.low, then.low) > min(first.high, then.high):
        return None
    both = Bounds(max(first.low, then.low), min(first.high, then.high))
    return next((activation for activation in Activation if Bounds.of(activation) == both), None)
