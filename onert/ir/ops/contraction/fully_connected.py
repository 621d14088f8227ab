"""The fully connected layer."""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import filtered
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.dynamic_range import blockwise, filter_values, is_hybrid, quantize_rows
from onert.ir.ops.arithmetic.filter_types import (
    has_float_result,
    require_fully_connected_types,
    require_output,
)
from onert.ir.ops.arithmetic.rescale import (
    add_bias,
    as_floats,
    exact,
    filter_multipliers,
    filter_ratios,
    filter_scales,
    first_zero_point,
    rescale,
    rescale_exactly,
)
from onert.ir.shape import Dim, Shape, num_elements
from onert.ir.types import CallTypes, TensorType


@frozen
class FullyConnected(Op):
    """A fully connected layer, `x · weightᵀ + bias`: each row of `weight` produces one output feature.

    Operands: `x`, any shape whose elements form rows of `features`; `weight` [outputs, features]; optional `bias`
    [outputs]. Result: [rows, outputs], or with `keep_dims` the shape of `x` [..., features] as [..., outputs].

    Element types: floats; int8 with int8, int4 or int2 filters (scales per tensor or per output); uint8 with uint8;
    int16 with int8, int4, int2 or int16 filters; float32 `x` with integer filters, where each row of `x` is quantised
    at run time (dynamic range), symmetrically or with `asymmetric_inputs`. A filter quantised in blocks along its
    features has a scale per block. `output` is the result's element type if it is not that of `x` (int16 for 8-bit
    inputs). With `output` FLOAT32, 8-bit `x` is combined with int8 filters of zero point 0, without bias or activation:
    the result is the exact sum in float32 times the product of the scales in float32.

    Other integer sums are multiplied by the real ratio of the scales and rounded once, halves away from zero; with
    int16 filters the fixed-point form of the ratio is used.

    Source: TFLite FULLY_CONNECTED, kernels/fully_connected.cc, internal/reference/integer_ops/fully_connected.h.
    """

    activation: Activation = Activation.NONE
    keep_dims: bool = False
    asymmetric_inputs: bool = False
    output: DType | None = None

    def infer(self, x: TensorType, weight: TensorType, bias: TensorType | None = None) -> TensorType:
        require(weight.rank == 2, f"filter is {weight}, expected 2 dimensions")
        if has_float_result(x, self.output):
            require_output(self.output, self.activation, x, weight, bias, axis=0)
            return TensorType(DType.FLOAT32, self._shape(x.shape, weight.shape[0], weight.shape[1]))
        require_fully_connected_types(x, weight, bias)
        require(
            self.output in (None, x.dtype) or (self.output is DType.INT16 and x.dtype in (DType.INT8, DType.UINT8)),
            f"result is {self.output}, expected {x.dtype.text}",
        )
        return TensorType(self.output or x.dtype, self._shape(x.shape, weight.shape[0], weight.shape[1]))

    def _shape(self, x: Shape, outputs: Dim, features: Dim) -> Shape:
        if self.keep_dims or features == 0:
            require(len(x) > 0, "input is a scalar, expected at least 1 dimension")
            require(
                features in (None, 0) or x[-1] in (features, None),
                f"input has {x[-1]} in its last dimension, expected the filter's {features}",
            )
            return (*x[:-1], outputs) if self.keep_dims else (num_elements(x[:-1]), outputs)
        elements = num_elements(x)
        if elements is None or features is None:
            return (None, outputs)
        require(elements % features == 0, f"input has {elements} elements, expected a multiple of {features}")
        return (elements // features, outputs)

    def flops(self, types: CallTypes) -> int:
        return filtered(types)

    def rounds(self, types: CallTypes) -> int:
        quantization = types.input(1).quantization
        block = None if quantization is None else quantization.block_size
        return 0 if block is None else (types.input(1).shape[1] or 0) // block

    def evaluate(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        out = self._rows(x, weight) @ weight.T
        return self._finish(x, self.activation.apply(out if bias is None else out + bias.reshape(-1)))

    def evaluate_quantized(self, types: CallTypes, x: Array, weight: Array, bias: Array | None = None) -> Array:
        x_type, weight_type, output = types.input(0), types.input(1), types.output
        if is_hybrid(x_type, weight_type):
            return self._hybrid(weight_type, x, weight, bias)
        if has_float_result(x_type, self.output):
            left, right = exact(self._rows(x, weight), x_type.zero_point, weight, 0, weight.shape[1])
            return self._finish(x, as_floats(left @ right.T, x_type, weight_type))
        low_high = self.activation.bounds(output)
        zero = first_zero_point(weight_type)
        left, right = exact(self._rows(x, weight), x_type.zero_point, weight, zero, weight.shape[1])
        wide = x_type.dtype is DType.INT16 and (bias is None or bias.dtype == np.int64)
        sums = add_bias(left @ right.T, bias, wide=wide)
        if weight_type.dtype is DType.INT16:
            return self._finish(x, rescale(sums, filter_multipliers(x_type, weight_type, output), output, low_high))
        return self._finish(x, rescale_exactly(sums, filter_ratios(x_type, weight_type, output), output, low_high))

    def _hybrid(self, weight_type: TensorType, x: Array, weight: Array, bias: Array | None) -> Array:
        rows = self._rows(x, weight)
        offset = np.float32(0) if bias is None else bias.reshape(-1).astype(np.float32)
        assert weight_type.quantization is not None
        if weight_type.quantization.block_size is not None:
            out = blockwise(rows, weight, weight_type.quantization) + offset
        else:
            quantized = quantize_rows(rows, asymmetric=self.asymmetric_inputs)
            left, right = exact(quantized.centred, 0, filter_values(weight), 0, weight.shape[1])
            scales = quantized.scales[:, None] * filter_scales(weight_type)
            out = offset + (left @ right.T).astype(np.float32) * scales
        return self._finish(x, self.activation.apply(out))

    def _rows(self, x: Array, weight: Array) -> Array:
        features = weight.shape[1]
        return x.reshape(-1, features) if features else np.zeros((math.prod(x.shape[:-1]), 0), x.dtype)

    def _finish(self, x: Array, out: Array) -> Array:
        return out.reshape(*x.shape[:-1], out.shape[-1]) if self.keep_dims else out
