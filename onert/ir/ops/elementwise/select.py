"""Selection between two tensors, element by element."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import OnStored, require
from onert.ir.types import TensorType


@frozen
class Select(OnStored):
    """`x` where the condition is true, else `y`.

    - `condition`: booleans
    - `x`, `y`: of one element type, any

    With `rows`, a condition of rank 1 selects whole slices along the first axis (TFLite's SELECT); otherwise, and for
    a condition of another rank, all three shapes broadcast (SELECT_V2).
    """

    rows: bool = False

    def infer(self, condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
        require(condition.dtype is DType.BOOL, f"the condition is {condition.dtype.text}, expected bool")
        require(x.dtype is y.dtype, f"Select is given {x.dtype.text} and {y.dtype.text}, expected one type")
        if self._by_rows(condition.rank, x.rank):
            both = shapes.broadcast([x.shape, y.shape])
            require(
                shapes.compatible(condition.shape, x.shape[:1]),
                f"the condition has shape {shapes.text(condition.shape)}, expected {shapes.text(x.shape[:1])}",
            )
            return x.result(both)
        return x.result(shapes.broadcast([condition.shape, x.shape, y.shape]))

    def _by_rows(self, condition_rank: int, rank: int) -> bool:
        return self.rows and condition_rank == 1 and rank > 1

    def evaluate(self, condition: Array, x: Array, y: Array) -> Array:
        if self._by_rows(condition.ndim, x.ndim):
            condition = condition.reshape(-1, *(1,) * (x.ndim - 1))
        return np.where(condition, x, y)
