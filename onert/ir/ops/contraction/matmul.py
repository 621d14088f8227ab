"""Batched matrix products."""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import products
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.dynamic_range import is_hybrid, quantize_rows
from onert.ir.ops.arithmetic.filter_types import (
    has_float_result,
    require_filter_scales,
    require_floats,
    require_hybrid,
    require_scale,
    require_symmetric,
)
from onert.ir.ops.arithmetic.rescale import as_floats, exact, filter_scales, product_multiplier, rescale
from onert.ir.shape import broadcast
from onert.ir.types import CallTypes, TensorType

_PAIRS = {
    DType.INT8: (DType.INT8,),
    DType.INT16: (DType.INT16, DType.INT8),
}
_BYTES = (DType.INT8, DType.UINT8)


@frozen
class BatchMatMul(Op):
    """A batched matrix product `x · y` over the last two axes; the axes before them are broadcast.

    Operands: `x` [..., rows, depth], or [..., depth, rows] with `adjoint_x`; `y` [..., depth, columns], or
    [..., columns, depth] with `adjoint_y`; at least two dimensions each. Result: [..., rows, columns].

    Element types: floats; other numbers of one type; int8 with int8; int16 with int16 or int8, zero points 0; float32
    `x` with int8 `y`, where each row of `x` is quantised at run time, symmetrically or with `asymmetric_inputs`, and
    `y` has one scale or one per column. `output` is the result's element type if it is not that of `x`: INT32 for the
    plain sums of stored integers (int8 or uint8 with either); FLOAT32 for products of int8 or uint8 with either, exact
    sums in float32 times the product of both scales.

    Source: TFLite BATCH_MATMUL, kernels/batch_matmul.cc and kernels/internal/reference/batch_matmul.h.
    """

    adjoint_x: bool = False
    adjoint_y: bool = False
    asymmetric_inputs: bool = False
    output: DType | None = None

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        require(x.rank >= 2, f"first operand is {x}, expected at least 2 dimensions")
        require(y.rank >= 2, f"second operand is {y}, expected at least 2 dimensions")
        self._check_types(x, y)
        depth_x, rows = (x.shape[-2], x.shape[-1]) if self.adjoint_x else (x.shape[-1], x.shape[-2])
        depth_y, columns = (y.shape[-1], y.shape[-2]) if self.adjoint_y else (y.shape[-2], y.shape[-1])
        require(
            depth_x is None or depth_y is None or depth_x == depth_y,
            f"operands are {x} and {y}, expected equal depths, not {depth_x} and {depth_y}",
        )
        batch = broadcast((x.shape[:-2], y.shape[:-2]))
        return TensorType(self.output or x.dtype, (*batch, rows, columns))

    def _check_types(self, x: TensorType, y: TensorType) -> None:
        if is_hybrid(x, y):
            require_hybrid(x)
            require(y.dtype is DType.INT8, f"second operand is {y.dtype.text} with a float, expected i8")
            require(self.output is None, f"result is {self.output}, expected f32")
            require_filter_scales(y, -2 if self.adjoint_y else -1)
            return
        if has_float_result(x, self.output):
            for name, operand in (("first", x), ("second", y)):
                require(
                    operand.dtype in _BYTES,
                    f"{name} operand is {operand.dtype.text} for a result of f32, expected i8 or u8",
                )
                require_scale(f"{name} operand", operand)
            return
        if x.dtype in _BYTES and self.output is DType.INT32:
            require(y.dtype in _BYTES, f"second operand is {y}, expected i8 or u8")
            return
        if x.dtype in _PAIRS:
            allowed = _PAIRS[x.dtype]
            require(y.dtype in allowed, f"second operand is {y}, expected {' or '.join(d.text for d in allowed)}")
            require(self.output in (None, x.dtype), f"result is {self.output}, expected {x.dtype.text}")
            require_scale("first operand", x)
            require_scale("second operand", y)
            if x.dtype is DType.INT16:
                require_symmetric("first operand", x)
                require_symmetric("second operand", y)
            return
        require(x.dtype.is_numeric, f"first operand is {x}, expected numbers")
        if x.dtype.is_float:
            require_floats(x, y)
        else:
            require(y.dtype is x.dtype, f"operands are {x} and {y}, expected one element type")
        require(self.output in (None, x.dtype), f"result is {self.output}, expected {x.dtype.text}")

    def flops(self, types: CallTypes) -> int:
        return products(types, -2 if self.adjoint_x else -1)

    def evaluate(self, x: Array, y: Array) -> Array:
        left, right = self._oriented(x, y)
        if self.output is DType.INT32:
            return _product(*exact(left, 0, right, 0, left.shape[-1])).astype(np.int64).astype(np.int32)
        return _product(left, right)

    def evaluate_quantized(self, types: CallTypes, x: Array, y: Array) -> Array:
        x_type, y_type, output = types.input(0), types.input(1), types.output
        if self.output is DType.INT32:
            return self.evaluate(x, y)
        left, right = self._oriented(x, y)
        if is_hybrid(x_type, y_type):
            return self._hybrid(y_type, left, right)
        if has_float_result(x_type, self.output):
            both = exact(left, x_type.zero_point, right, y_type.zero_point, left.shape[-1])
            return as_floats(_product(*both), x_type, y_type)
        sums = _product(*exact(left, x_type.zero_point, right, y_type.zero_point, left.shape[-1]))
        accumulators = sums.astype(np.int64)
        if x_type.dtype is DType.INT8:
            accumulators = accumulators.astype(np.int32)
        return rescale(accumulators, product_multiplier(x_type, y_type, output), output, output.dtype.limits)

    def _hybrid(self, y_type: TensorType, x: Array, y: Array) -> Array:
        rows = quantize_rows(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), asymmetric=self.asymmetric_inputs)
        sums = _product(*exact(rows.centred.reshape(x.shape), 0, y, 0, x.shape[-1])).astype(np.float32)
        out: Array = sums * (rows.scales.reshape(*x.shape[:-1], 1) * filter_scales(y_type))
        return out

    def _oriented(self, x: Array, y: Array) -> tuple[Array, Array]:
        return (
            x.swapaxes(-1, -2) if self.adjoint_x else x,
            y.swapaxes(-1, -2) if self.adjoint_y else y,
        )


def _product(x: Array, y: Array) -> Array:
    out: Array = np.matmul(x, y)
    return out
