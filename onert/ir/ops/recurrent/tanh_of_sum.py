"""tanh as TFLite's kernels with weights of bytes compute it: a part of layers that are decomposed."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.types import TensorType

from .recurrent_functions import APPROXIMATE


@frozen
class TanhOfSum(Op):
    """`tanh(x + y)` of two float32 tensors of one shape, with the rational function that TFLite's kernels use.

    It belongs to recurrent layers whose weights are bytes: their next step quantises the result, so a last bit could
    move it by a whole step (`recurrent_functions.APPROXIMATE`).
    """

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        require(x.dtype is DType.FLOAT32 and y.dtype is DType.FLOAT32, f"the operands are {x} and {y}, expected f32")
        require(x.shape == y.shape, f"the operands have shapes {x.shape} and {y.shape}, expected the same")
        return x.result(x.shape)

    def evaluate(self, x: Array, y: Array) -> Array:
        return APPROXIMATE.tanh(np.add(x, y))
