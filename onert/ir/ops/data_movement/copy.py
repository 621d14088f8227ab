"""Copies within a memory space."""

from __future__ import annotations

from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.op import OnStored
from onert.ir.types import TensorType


@frozen
class Copy(OnStored):
    """A copy of the operand in memory of its own.

    The compiler inserts it where a model returns an input, a constant, or one tensor twice, so that every output is
    defined by an operation.

    - `x`: any element type, any shape. The result has the same type and shape.
    """

    def infer(self, x: TensorType) -> TensorType:
        return x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        return x.copy()
