"""tanh as computed by TFLite's kernels with 8-bit weights; used to decompose recurrent layers."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.types import TensorType

from .recurrent_functions import APPROXIMATE


@frozen
class TanhOfSum(Op):
    """`tanh(x + y)` of two float32 tensors of one shape, by the rational approximation of TFLite's kernels.

    Used in recurrent layers with 8-bit weights: their next step quantises the result, so one different bit could change
    it by a whole step (`recurrent_functions.APPROXIMATE`).
    """

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        require(x.dtype is DType.FLOAT32 and y.dtype is DType.FLOAT32, f"the operands are {x} and {y}, expected f32")
        require(x.shape == y.shape, f"the operands have shapes {x.shape} and {y.shape}, expected the same")
        return x.result(x.shape)

    def evaluate(self, x: Array, y: Array) -> Array:
        return APPROXIMATE.tanh(np.add(x, y))
