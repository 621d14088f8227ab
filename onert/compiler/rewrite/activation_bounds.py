"""Activations that only bound their operand, and what two of them in a row are."""

from __future__ import annotations

import math

from attrs import frozen

from onert.ir import Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.value import Value


@frozen
class Bounds(Value):
    """The smallest and the largest number that an activation gives; infinite where there is none."""

    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def of(cls, activation: Activation) -> Bounds | None:
        """The bounds of an activation; None if it does more than bound."""
        clamp = activation.value
        if clamp.function is not None:
            return None
        return cls(-math.inf if clamp.low is None else clamp.low, math.inf if clamp.high is None else clamp.high)

    def within(self, other: Bounds) -> bool:
        """Whether what these bounds let through is within the others already."""
        return other.low <= self.low and self.high <= other.high


_UNARY = {
    UnaryKind.RELU: Bounds(0.0),
    UnaryKind.RELU6: Bounds(0.0, 6.0),
    UnaryKind.RELU_N1_TO_1: Bounds(-1.0, 1.0),
    UnaryKind.RELU_0_TO_1: Bounds(0.0, 1.0),
}


def as_clamp(op: Op) -> Bounds | None:
    """The bounds of an operation that is nothing but an activation; None for any other."""
    return _UNARY.get(op.kind) if isinstance(op, Unary) else None


def activation_within(first: Bounds | None, then: Bounds) -> Activation | None:
    """The activation that is the first clamp and then the second; None if no activation is."""
    if first is None or max(first.low, then.low) > min(first.high, then.high):
        return None
    both = Bounds(max(first.low, then.low), min(first.high, then.high))
    return next((activation for activation in Activation if Bounds.of(activation) == both), None)
