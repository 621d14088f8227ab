"""Numbers that a matrix as a whole has."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType


@frozen
class Determinant(Op):
    """The determinant of each matrix along the last two axes. Source: ONNX Det.

    - `x`: floats `[..., n, n]`
    """

    def infer(self, x: TensorType) -> TensorType:
        require(x.dtype.is_float and x.rank >= 2, f"x is {x}, expected floats of at least 2 dimensions")
        require(shapes.compatible(x.shape[-1:], x.shape[-2:-1]), f"x is {x}, expected square matrices")
        return x.result(x.shape[:-2])

    def flops(self, types: CallTypes) -> int:
        x = types.input(0).shape
        return (x[-1] or 0) * (shapes.num_elements(x) or 0)

    def evaluate(self, x: Array) -> Array:
        return np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype)
