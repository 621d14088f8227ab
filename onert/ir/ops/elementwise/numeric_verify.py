"""The error of quantised numbers with respect to the floats that they represent."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.recurrent.recurrent import require_per_tensor
from onert.ir.quant import dequantize
from onert.ir.shape import compatible
from onert.ir.types import CallTypes, TensorType

_STORED = (DType.INT8, DType.UINT8, DType.INT16)
_LEAST_TOLERANCE = 0.1


@frozen
class NumericVerify(Op):
    """The difference between quantised numbers and the floats that they represent.

    Operands: `x`, int8, uint8 or int16 with a scale, or float16; `reference`, float32 of the same shape. Result:
    float32, the real value of `x` minus `reference`. With `fail` and a `tolerance` of at least 0.1, a difference of
    more than `tolerance` times the scale raises RuleError.

    Source: TFLite's custom operation NumericVerify, kernels/numeric_verify.cc.
    """

    tolerance: float = 0.0
    fail: bool = False

    def infer(self, x: TensorType, reference: TensorType) -> TensorType:
        allowed = x.dtype in _STORED or x.dtype is DType.FLOAT16
        require(allowed, f"x holds {x.dtype.text}, expected i8, u8, i16 or f16")
        if x.dtype in _STORED:
            require_per_tensor(x, "x")
        require(reference.dtype is DType.FLOAT32, f"reference holds {reference.dtype.text}, expected f32")
        require(compatible(x.shape, reference.shape), f"x is {x} and its reference {reference}, expected one shape")
        return reference.result(x.shape)

    def evaluate(self, x: Array, reference: Array) -> Array:
        return self._difference(x.astype(np.float32), reference, 0.0)

    def evaluate_quantized(self, types: CallTypes, x: Array, reference: Array) -> Array:
        quantization = types.input(0).quantization
        if quantization is None:
            return self.evaluate(x, reference)
        return self._difference(dequantize(x, quantization), reference, quantization.scale)

    def _difference(self, real: Array, reference: Array, scale: float) -> Array:
        out: Array = real - reference
        if self.fail and self.tolerance >= _LEAST_TOLERANCE:
            largest = float(np.abs(out).max(initial=0.0))
            allowed = float(np.float32(self.tolerance) * np.float32(scale))
            require(not largest > allowed, f"a value is {largest} from its reference, expected at most {allowed}")
        return out
