"""Two-dimensional depthwise convolution."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import filtered
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.dynamic_range import filter_values, is_hybrid, quantize_items
from onert.ir.ops.arithmetic.filter_types import has_float_result, require_output
from onert.ir.ops.arithmetic.patches import convolve_depthwise
from onert.ir.ops.arithmetic.plane_window import dilated_outputs, dilated_windows, require_dilated
from onert.ir.ops.arithmetic.rescale import as_floats, exact, filter_scales, first_zero_point, requantized
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.types import CallTypes, TensorType


@frozen
class DepthwiseConv2D(Op):
    """Two-dimensional depthwise convolution: each channel of `x` is convolved with its own filters.

    Operands: `x` [batch, height, width, channels]; `weight` [1, window height, window width, channels * multiplier];
    optional `bias` [channels * multiplier]. Result: [batch, output height, output width, channels * multiplier], with
    the outputs of a channel adjacent. The multiplier follows from the shapes.

    Attributes and element types are those of `Conv2D`, except that the scales of a quantised filter are along its last
    axis, and that a float `x` with an integer filter is always quantised asymmetrically.

    Source: TFLite DEPTHWISE_CONV_2D, kernels/depthwise_conv.cc and internal/reference/integer_ops/depthwise_conv.h.
    """

    padding: Padding | Margins = Padding.VALID
    stride_height: int = 1
    stride_width: int = 1
    dilation_height: int = 1
    dilation_width: int = 1
    activation: Activation = Activation.NONE
    output: DType | None = None

    def infer(self, x: TensorType, weight: TensorType, bias: TensorType | None = None) -> TensorType:
        require_dilated(self)
        require(x.rank == 4, f"input is {x}, expected 4 dimensions")
        require(weight.rank == 4, f"filter is {weight}, expected 4 dimensions")
        require(weight.shape[0] in (1, None), f"filter is {weight}, expected 1 as its first dimension")
        require_output(self.output, self.activation, x, weight, bias, axis=3)
        channels, outputs = x.shape[3], weight.shape[3]
        if channels is not None and outputs is not None:
            require(
                channels > 0 and outputs % channels == 0,
                f"filter makes {outputs} outputs, expected a multiple of the input's {channels} channels",
            )
        plane = dilated_outputs(self, x.shape[1], x.shape[2], weight.shape[1], weight.shape[2])
        return TensorType(self.output or x.dtype, (x.shape[0], *plane, outputs))

    def flops(self, types: CallTypes) -> int:
        return filtered(types, axis=-1)

    def rounds(self, types: CallTypes) -> int:
        _, height, width, _ = types.input(1).shape
        return (height or 0) * (width or 0)

    def evaluate(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        out = self._products(x, weight)
        return self.activation.apply(out if bias is None else out + bias.reshape(-1))

    def evaluate_quantized(self, types: CallTypes, x: Array, weight: Array, bias: Array | None = None) -> Array:
        x_type, weight_type, output = types.input(0), types.input(1), types.output
        if is_hybrid(x_type, weight_type):
            return self._hybrid(weight_type, x, weight, bias)
        terms = weight.shape[1] * weight.shape[2]
        sums = self._products(*exact(x, x_type.zero_point, weight, first_zero_point(weight_type), terms))
        if has_float_result(x_type, self.output):
            return as_floats(sums, x_type, weight_type)
        return requantized(sums, bias, x_type, weight_type, output, self.activation.bounds(output))

    def _hybrid(self, weight_type: TensorType, x: Array, weight: Array, bias: Array | None) -> Array:
        rows = quantize_items(x, asymmetric=True)
        centred = rows.centred.reshape(x.shape)
        terms = weight.shape[1] * weight.shape[2]
        sums = self._products(*exact(centred, 0, filter_values(weight), 0, terms)).astype(np.float32)
        out = sums * (filter_scales(weight_type) * rows.scales.reshape(-1, 1, 1, 1))
        return self.activation.apply(out if bias is None else out + bias.reshape(-1).astype(np.float32))

    def _products(self, x: Array, weight: Array) -> Array:
        height, width, outputs = weight.shape[1:]
        filters = weight.reshape(height, width, x.shape[3], outputs // x.shape[3])
        return convolve_depthwise(x, filters, dilated_windows(self, height, width))
