"""Determinants and inverses of square matrices."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType


def _square(x: TensorType) -> shapes.Shape:
    require(x.dtype.is_float and x.rank >= 2, f"x is {x}, expected floats of at least 2 dimensions")
    require(shapes.compatible(x.shape[-1:], x.shape[-2:-1]), f"x is {x}, expected square matrices")
    return x.shape


@frozen
class Determinant(Op):
    """The determinant of each matrix along the last two axes. Source: ONNX Det.

    - `x`: floats [..., n, n]
    """

    def infer(self, x: TensorType) -> TensorType:
        return x.result(_square(x)[:-2])

    def flops(self, types: CallTypes) -> int:
        x = types.input(0).shape
        return (x[-1] or 0) * (shapes.num_elements(x) or 0)

    def evaluate(self, x: Array) -> Array:
        return np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype)


@frozen
class Inverse(Op):
    """The inverse of each matrix along the last two axes; NaN if it is singular. Source: com.microsoft Inverse.

    - `x`: floats [..., n, n]
    """

    def infer(self, x: TensorType) -> TensorType:
        return x.result(_square(x))

    def flops(self, types: CallTypes) -> int:
        x = types.input(0).shape
        return 2 * (x[-1] or 0) * (shapes.num_elements(x) or 0)

    def evaluate(self, x: Array) -> Array:
        wide = x.astype(np.float64)
        try:
            return np.asarray(np.linalg.inv(wide)).astype(x.dtype)
        except np.linalg.LinAlgError:
            matrices = wide.reshape(-1, *x.shape[-2:])
            return np.stack([_inverted(matrix) for matrix in matrices]).reshape(x.shape).astype(x.dtype)


def _inverted(matrix: Array) -> Array:
    try:
        return np.asarray(np.linalg.inv(matrix))
    except np.linalg.LinAlgError:
        return np.full(matrix.shape, np.nan)
