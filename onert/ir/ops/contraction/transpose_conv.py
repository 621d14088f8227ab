"""Two-dimensional transposed convolution."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import scattered, tapped
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.dynamic_range import filter_values, is_hybrid, quantize_items
from onert.ir.ops.arithmetic.filter_types import require_filter_types
from onert.ir.ops.arithmetic.patches import convolve_transposed
from onert.ir.ops.arithmetic.plane_window import require_strides
from onert.ir.ops.arithmetic.rescale import exact, filter_scales, first_zero_point, requantized
from onert.ir.ops.arithmetic.window import Margins, Padding, Window, require_padding
from onert.ir.shape import Dim, text
from onert.ir.types import CallTypes, TensorType


@frozen
class TransposeConv2D(Op):
    """Two-dimensional transposed convolution: each input element adds its multiple of a filter to a result window.

    Operands: `output_shape` (int32 or int64, four elements: the result's shape); `weight` [outputs, window height,
    window width, channels]; `x` [batch, height, width, channels]; optional `bias` [outputs]. `activation` comes last.

    The window of input (i, j) starts at (i * stride_height, j * stride_width) minus the padding in front that the
    forward convolution of the result would have. Contributions outside of the result are dropped. Explicit padding must
    be smaller than the window.

    Element types are those of `Conv2D`; a float `x` with an integer filter is always quantised asymmetrically.

    Source: TFLite TRANSPOSE_CONV, kernels/transpose_conv.cc and internal/reference/integer_ops/transpose_conv.h.
    """

    padding: Padding | Margins = Padding.VALID
    stride_height: int = 1
    stride_width: int = 1
    activation: Activation = Activation.NONE

    def infer(
        self, output_shape: TensorType, weight: TensorType, x: TensorType, bias: TensorType | None = None
    ) -> TensorType:
        require_strides(self)
        require(x.rank == 4, f"input is {x}, expected 4 dimensions")
        require(weight.rank == 4, f"filter is {weight}, expected 4 dimensions")
        require_padding(self.padding, 2, weight.shape[1:3])
        require_filter_types(x, weight, bias, axis=0)
        channels, inner, outputs = x.shape[3], weight.shape[3], weight.shape[0]
        require(
            channels is None or inner is None or channels == inner,
            f"input has {channels} channels, expected the filter's {inner}",
        )
        found = given_shape(output_shape, 4)
        if found is None:
            return x.result((x.shape[0], None, None, outputs))
        require(
            x.shape[0] in (found[0], None), f"output_shape begins with {found[0]}, expected the batch of {x.shape[0]}"
        )
        require(outputs in (found[3], None), f"output_shape ends with {found[3]}, expected the filter's {outputs}")
        return x.result(found)

    def flops(self, types: CallTypes) -> int:
        return scattered(types.input(2), types.input(1))

    def rounds(self, types: CallTypes) -> int:
        return tapped(types, types.input(1).shape[1:3], 2)

    def evaluate(self, output_shape: Array, weight: Array, x: Array, bias: Array | None = None) -> Array:
        out = self._products(output_shape, weight, x)
        return self.activation.apply(out if bias is None else out + bias.reshape(-1))

    def evaluate_quantized(
        self, types: CallTypes, output_shape: Array, weight: Array, x: Array, bias: Array | None = None
    ) -> Array:
        weight_type, x_type, output = types.input(1), types.input(2), types.output
        if is_hybrid(x_type, weight_type):
            return self._hybrid(weight_type, output_shape, weight, x, bias)
        terms = weight[0].size if len(weight) else 0
        centred = exact(x, x_type.zero_point, weight, first_zero_point(weight_type), terms)
        sums = self._products(output_shape, centred[1], centred[0])
        return requantized(sums, bias, x_type, weight_type, output, self.activation.bounds(output))

    def _hybrid(
        self, weight_type: TensorType, output_shape: Array, weight: Array, x: Array, bias: Array | None
    ) -> Array:
        rows = quantize_items(x, asymmetric=True)
        centred = rows.centred.reshape(x.shape)
        terms = weight[0].size if len(weight) else 0
        values, filters = exact(centred, 0, filter_values(weight), 0, terms)
        sums = self._products(output_shape, filters, values).astype(np.float32)
        out = sums * filter_scales(weight_type) * rows.scales.reshape(-1, 1, 1, 1)
        return self.activation.apply(out if bias is None else out + bias.reshape(-1).astype(np.float32))

    def _products(self, output_shape: Array, weight: Array, x: Array) -> Array:
        windows = (
            Window(weight.shape[1], self.stride_height, 1, self.padding.along(0)),
            Window(weight.shape[2], self.stride_width, 1, self.padding.along(1)),
        )
        return convolve_transposed(x, weight.transpose(1, 2, 3, 0), windows, sv.values(output_shape)[1:3])


@frozen
class TransposeConvBias2D(Op):
    """Transposed convolution whose output size follows from that of `x`: MediaPipe's Convolution2DTransposeBias.

    Operands, floats: `x` [batch, height, width, channels]; `weight` [outputs, window height, window width, channels];
    `bias` [outputs]. Result: [batch, output height, output width, outputs]. For a height h the output height is
    `stride * (h - 1) + window`; SAME padding removes `max(0, window - 1 - (h - 1) % stride)` of these rows, half of
    them (rounded down) at the top. Widths are treated likewise.

    Source: MediaPipe's util/tflite/operations/transpose_conv_bias.cc.
    """

    padding: Padding = Padding.VALID
    stride_height: int = 1
    stride_width: int = 1

    def infer(self, x: TensorType, weight: TensorType, bias: TensorType) -> TensorType:
        require_strides(self)
        require(x.rank == 4, f"input is {x}, expected 4 dimensions")
        require(weight.rank == 4, f"filter is {weight}, expected 4 dimensions")
        require(x.dtype.is_float and weight.dtype.is_float, f"input is {x} and filter {weight}, expected floats")
        require_filter_types(x, weight, bias, axis=0)
        channels, inner = x.shape[3], weight.shape[3]
        require(
            channels is None or inner is None or channels == inner,
            f"input has {channels} channels, expected the filter's {inner}",
        )
        height = self._output(x.shape[1], weight.shape[1], self.stride_height)
        width = self._output(x.shape[2], weight.shape[2], self.stride_width)
        return x.result((x.shape[0], height, width, weight.shape[0]))

    def flops(self, types: CallTypes) -> int:
        return scattered(types.input(0), types.input(1))

    def rounds(self, types: CallTypes) -> int:
        return tapped(types, types.input(1).shape[1:3])

    def evaluate(self, x: Array, weight: Array, bias: Array) -> Array:
        steps = (self.stride_height, self.stride_width)
        windows = [Window(weight.shape[1 + i], steps[i], 1, Padding.VALID) for i in (0, 1)]
        befores = [self.before(x.shape[1 + i], weight.shape[1 + i], steps[i]) for i in (0, 1)]
        sizes = [self._output(x.shape[1 + i], weight.shape[1 + i], steps[i]) or 0 for i in (0, 1)]
        return convolve_transposed(x, weight.transpose(1, 2, 3, 0), windows, sizes, befores) + bias.reshape(-1)

    def before(self, size: int, window: int, stride: int) -> int:
        """The number of elements cropped at the front of the result along an axis of `size` inputs."""
        return self._padding(size, window, stride) // 2

    def _padding(self, size: int, window: int, stride: int) -> int:
        return max(0, window - 1 - (size - 1) % stride) if self.padding is Padding.SAME else 0

    def _output(self, size: Dim, window: Dim, stride: int) -> Dim:
        if size is None or window is None:
            return None
        require(size >= 1, "input has an empty height or width, expected at least 1")
        return stride * (size - 1) + window - self._padding(size, window, stride)


def given_shape(output_shape: TensorType, rank: int) -> tuple[Dim, ...] | None:
    """The shape given by an operand's elements, or None if these are unknown. Raises RuleError for an invalid shape."""
    require(
        output_shape.dtype in (DType.INT32, DType.INT64),
        f"output_shape is {output_shape.dtype.text}, expected i32 or i64",
    )
    require(
        output_shape.rank == 1 and output_shape.shape[0] in (rank, None),
        f"output_shape is {output_shape}, expected {rank} elements",
    )
    if output_shape.value is None:
        return None
    found = sv.values(output_shape.value)
    require(len(found) == rank, f"output_shape has {len(found)} elements, expected {rank}")
    require(all(d >= 0 for d in found), f"output_shape is {text(found)}, expected no negative dimension")
    return found
