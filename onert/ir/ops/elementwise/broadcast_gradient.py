"""The axes over which gradients of broadcast operands are summed."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import OnStored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.types import TensorType


@frozen
class BroadcastGradientArgs(OnStored):
    """The axes over which the gradients of two broadcast operands are summed; one vector for each operand.

    - `x`, `y`: the operands' shapes, int32 or int64 of rank 1

    Source: TensorFlow's BroadcastGradientArgs.
    """

    def infer(self, x: TensorType, y: TensorType) -> tuple[TensorType, TensorType]:
        for operand, name in ((x, "the first shape"), (y, "the second shape")):
            sv.integers(operand, name)
            require(operand.rank == 1, f"{name} is {operand}, expected 1 dimension")
            require(operand.dtype in (DType.INT32, DType.INT64), f"{name} is {operand}, expected i32 or i64")
        require(x.dtype is y.dtype, f"shapes are {x} and {y}, expected one type")
        if x.value is None or y.value is None:
            return x.result((None,)), x.result((None,))
        first, second = self._axes(x.value, y.value)
        return x.result((len(first),)), x.result((len(second),))

    @staticmethod
    def _axes(x: Array, y: Array) -> tuple[list[int], list[int]]:
        rank = max(len(x), len(y))
        require(rank <= shapes.MAX_RANK, f"a shape has {rank} dimensions, more than {shapes.MAX_RANK}")
        a, b = ([1] * (rank - len(s)) + [int(d) for d in s] for s in (x, y))
        for mine, theirs in zip(a, b, strict=True):
            require(mine == theirs or 1 in (mine, theirs), f"shapes {x.tolist()} and {y.tolist()} do not broadcast")
        first = [at for at in range(rank) if a[at] == 1]
        second = [at for at in range(rank) if b[at] == 1]
        if list(a) == list(b) and len(x) == len(y):
            return [], []
        return first, second

    def evaluate(self, x: Array, y: Array) -> tuple[Array, Array]:
        first, second = self._axes(x, y)
        return np.array(first, x.dtype), np.array(second, x.dtype)
