"""Two-dimensional convolution, and what depthwise convolution shares with it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import filtered, tapped
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.dynamic_range import filter_values, is_hybrid, quantize_items
from onert.ir.ops.arithmetic.filter_types import has_float_result, require_output
from onert.ir.ops.arithmetic.patches import convolve
from onert.ir.ops.arithmetic.plane_window import dilated_outputs, dilated_windows, require_dilated
from onert.ir.ops.arithmetic.rescale import as_floats, exact, filter_scales, first_zero_point, requantized
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.shape import Dim
from onert.ir.types import CallTypes, TensorType


@frozen
class Spatial2D(Op):
    """Attributes, rules and meaning shared by both convolutions over two spatial axes."""

    padding: Padding | Margins = Padding.VALID
    stride_height: int = 1
    stride_width: int = 1
    dilation_height: int = 1
    dilation_width: int = 1
    activation: Activation = Activation.NONE
    output: DType | None = None

    _outputs_axis: ClassVar[int]
    """The filter's axis along which its outputs are."""

    def _check(self, x: TensorType, weight: TensorType, bias: TensorType | None) -> None:
        require_dilated(self)
        require(x.rank == 4, f"input is {x}, expected 4 dimensions")
        require(weight.rank == 4, f"filter is {weight}, expected 4 dimensions")
        require_output(self.output, self.activation, x, weight, bias, self._outputs_axis)

    def _result(self, x: TensorType, weight: TensorType, outputs: Dim) -> TensorType:
        plane = dilated_outputs(self, x.shape[1], x.shape[2], weight.shape[1], weight.shape[2])
        return TensorType(self.output or x.dtype, (x.shape[0], *plane, outputs))

    def flops(self, types: CallTypes) -> int:
        return filtered(types, self._outputs_axis)

    def evaluate(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        out = self._products(x, weight)
        return self.activation.apply(out if bias is None else out + bias.reshape(-1))

    def evaluate_quantized(self, types: CallTypes, x: Array, weight: Array, bias: Array | None = None) -> Array:
        x_type, weight_type, output = types.input(0), types.input(1), types.output
        if is_hybrid(x_type, weight_type):
            return self._hybrid(weight_type, x, weight, bias)
        sums = self._sums(x, x_type.zero_point, weight, first_zero_point(weight_type))
        if has_float_result(x_type, self.output):
            return as_floats(sums, x_type, weight_type)
        return requantized(sums, bias, x_type, weight_type, output, self.activation.bounds(output))

    def _sums(self, x: Array, x_zero: int, weight: Array, zero: int) -> Array:
        """Exact sums of products of integers less their zero points."""
        terms = weight.size // (weight.shape[self._outputs_axis] or 1)
        return self._products(*exact(x, x_zero, weight, zero, terms))

    def _products(self, x: Array, weight: Array) -> Array:
        raise NotImplementedError

    def _hybrid(self, weight_type: TensorType, x: Array, weight: Array, bias: Array | None) -> Array:
        """The result for a float `x` and an integer filter."""
        raise NotImplementedError


@frozen
class Conv2D(Spatial2D):
    """Two-dimensional convolution: each output element is the sum of products of a window of `x` with one filter.

    Operands: `x` [batch, height, width, channels]; `weight` [filters, window height, window width, channels / groups],
    where the number of groups follows from the shapes and filter f reads the channels of group `f * groups // filters`;
    optional `bias` [filters], added to the sums. Result: [batch, output height, output width, filters].

    `stride_*` is the distance between windows, `dilation_*` that between elements of a window. `padding` SAME surrounds
    `x` with the real number 0; `Margins` give the amount of this padding explicitly. `activation` is applied last.

    Element types: floats; int8 `x` with int8, int4 or int2 filters (scales per tensor or per filter, zero points 0);
    uint8 with uint8 filters (per tensor), or with int8 filters as in Android's NNAPI; int16 with int8, int4 or int2
    filters and int64 (or int32) bias, zero points 0; float32 `x` with integer filters, where each batch item of `x` is
    quantised at run time (dynamic range). With `output` FLOAT32, 8-bit `x` is combined with int8 filters of zero point
    0, without bias or activation: the result is the exact sum in float32 times the product of the scales in float32.

    Source: TFLite CONV_2D, kernels/conv.cc and kernels/internal/reference/{conv.h,integer_ops/conv.h}.
    """

    _outputs_axis = 0

    def infer(self, x: TensorType, weight: TensorType, bias: TensorType | None = None) -> TensorType:
        self._check(x, weight, bias)
        channels, inner, filters = x.shape[3], weight.shape[3], weight.shape[0]
        require(inner != 0, f"filter is {weight}, expected at least one channel")
        if channels is not None and inner is not None:
            require(
                channels % inner == 0 and channels > 0,
                f"input has {channels} channels, expected a multiple of the filter's {inner}",
            )
            groups = channels // inner
            require(
                filters is None or filters % groups == 0,
                f"filter makes {filters} outputs, expected a multiple of the {groups} groups",
            )
        return self._result(x, weight, filters)

    def rounds(self, types: CallTypes) -> int:
        return tapped(types, types.input(1).shape[1:3])

    def _hybrid(self, weight_type: TensorType, x: Array, weight: Array, bias: Array | None) -> Array:
        """Quantises per batch item: asymmetrically if filters differ in scale or are grouped, else symmetrically."""
        scales = filter_scales(weight_type)
        asymmetric = bool((scales != scales[0]).any()) or x.shape[3] != weight.shape[3]
        rows = quantize_items(x, asymmetric=asymmetric)
        centred = rows.centred.reshape(x.shape)
        sums = self._sums(centred, 0, filter_values(weight), 0).astype(np.float32)
        item = rows.scales.reshape(-1, 1, 1, 1)
        out = sums * scales * item if asymmetric else sums * (item * scales[0])
        return self.activation.apply(out if bias is None else out + bias.reshape(-1).astype(np.float32))

    def _products(self, x: Array, weight: Array) -> Array:
        windows = dilated_windows(self, weight.shape[1], weight.shape[2])
        return convolve(x, weight.transpose(1, 2, 3, 0), windows, x.shape[3] // weight.shape[3])
