"""Two-dimensional depthwise convolution."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.op import require
from onert.ir.ops.arithmetic.dynamic_range import filter_values, quantize_items
from onert.ir.ops.arithmetic.patches import convolve_depthwise
from onert.ir.ops.arithmetic.plane_window import dilated_windows
from onert.ir.ops.arithmetic.rescale import filter_scales
from onert.ir.types import CallTypes, TensorType

from .conv import Spatial2D


@frozen
class DepthwiseConv2D(Spatial2D):
    """Two-dimensional depthwise convolution: each channel of `x` is convolved with its own filters.

    Operands: `x` [batch, height, width, channels]; `weight` [1, window height, window width, channels * multiplier];
    optional `bias` [channels * multiplier]. Result: [batch, output height, output width, channels * multiplier], with
    the outputs of a channel adjacent. The multiplier follows from the shapes.

    Attributes and element types are those of `Conv2D`, except that the scales of a quantised filter are along its last
    axis, and that a float `x` with an integer filter is always quantised asymmetrically.

    Source: TFLite DEPTHWISE_CONV_2D, kernels/depthwise_conv.cc and internal/reference/integer_ops/depthwise_conv.h.
    """

    _outputs_axis = 3

    def infer(self, x: TensorType, weight: TensorType, bias: TensorType | None = None) -> TensorType:
        self._check(x, weight, bias)
        require(weight.shape[0] in (1, None), f"filter is {weight}, expected 1 as its first dimension")
        channels, outputs = x.shape[3], weight.shape[3]
        if channels is not None and outputs is not None:
            require(
                channels > 0 and outputs % channels == 0,
                f"filter makes {outputs} outputs, expected a multiple of the input's {channels} channels",
            )
        return self._result(x, weight, outputs)

    def rounds(self, types: CallTypes) -> int:
        _, height, width, _ = types.input(1).shape
        return (height or 0) * (width or 0)

    def _hybrid(self, weight_type: TensorType, x: Array, weight: Array, bias: Array | None) -> Array:
        rows = quantize_items(x, asymmetric=True)
        centred = rows.centred.reshape(x.shape)
        sums = self._sums(centred, 0, filter_values(weight), 0).astype(np.float32)
        out = sums * (filter_scales(weight_type) * rows.scales.reshape(-1, 1, 1, 1))
        return self.activation.apply(out if bias is None else out + bias.reshape(-1).astype(np.float32))

    def _products(self, x: Array, weight: Array) -> Array:
        height, width, outputs = weight.shape[1:]
        filters = weight.reshape(height, width, x.shape[3], outputs // x.shape[3])
        return convolve_depthwise(x, filters, dilated_windows(self, height, width))
