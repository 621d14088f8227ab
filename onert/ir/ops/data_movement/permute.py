"""Copies between memory spaces."""

from __future__ import annotations

from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.op import OnStored
from onert.ir.types import TensorType


@frozen
class Permute(OnStored):
    """A copy of the operand in another memory space.

    The compiler inserts it between backends that use different memory spaces; the backend `builtin` runs it.

    - `x`: any element type, any shape, in the memory space named `source`. The result has the same type and shape and
      is in `target`.
    """

    source: str = "host"
    target: str = "host"

    def infer(self, x: TensorType) -> TensorType:
        return x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        return x.copy()
