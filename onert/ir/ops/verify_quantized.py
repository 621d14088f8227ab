"""Operations that look at other operations' work: quantised numbers beside exact ones, shapes of gradients."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.quant import dequantize
from onert.ir.types import CallTypes, TensorType

from . import shape_values as sv


@frozen
class NumericVerify(Op):
    """How far quantised numbers lie from exact ones; float32.

    - `x`: quantised integers, or float16
    - `exact`: float32 of the same shape

    Unless `logs`, RuleError where a difference is more than `tolerance` times the scale. Source: LiteRT's custom
    operator NumericVerify.
    """

    tolerance: float = 5.0
    logs: bool = False

    def infer(self, x: TensorType, exact: TensorType) -> TensorType:
        known = x.dtype is DType.FLOAT16 or (x.dtype.is_integer and x.quantization is not None)
        require(known, f"x is {x}, expected quantised integers or f16")
        require(exact.dtype is DType.FLOAT32, f"exact is {exact}, expected f32")
        require(shapes.compatible(x.shape, exact.shape), f"x is {x} beside {exact}, expected one shape")
        return TensorType(DType.FLOAT32, exact.shape)

    def evaluate(self, x: Array, exact: Array) -> Array:
        return x.astype(np.float32) - exact

    def evaluate_quantized(self, types: CallTypes, x: Array, exact: Array) -> Array:
        quantization = types.input(0).quantization
        if quantization is None:
            return self.evaluate(x, exact)
        found = self.evaluate(dequantize(x, quantization), exact)
        if not self.logs and self.tolerance >= 0.1:
            scales, _ = quantization.parameters(x.shape)
            far = np.abs(found) > np.float32(self.tolerance) * scales
            if far.any():
                at = tuple(int(i[0]) for i in np.nonzero(far))
                require(False, f"element {list(at)} is {found[at]} from {exact[at]}, more than the tolerance")
        return found


@frozen
class BroadcastGradientArgs(Op):
    """Over which axes the gradients of two broadcast operands are summed.

    - `x`, `y`: the operands' shapes, int32 or int64 of rank 1

    Source: TensorFlow's BroadcastGradientArgs.
    """

    stored: ClassVar[bool] = True

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
