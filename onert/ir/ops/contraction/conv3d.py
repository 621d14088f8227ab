"""Three-dimensional convolution and its transpose."""

from __future__ import annotations

from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.flops import filtered, scattered, tapped
from onert.ir.op import Op, as_stored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.filter_types import require_floats
from onert.ir.ops.arithmetic.patches import convolve, convolve_transposed
from onert.ir.ops.arithmetic.window import Margins, Padding, Window, output_dim, require_padding, require_step
from onert.ir.types import CallTypes, TensorType

from .transpose_conv import given_shape


@frozen
class Spatial3D(Op):
    """Attributes and rules shared by both convolutions over three spatial axes."""

    padding: Padding | Margins = Padding.VALID
    stride_depth: int = 1
    stride_height: int = 1
    stride_width: int = 1
    dilation_depth: int = 1
    dilation_height: int = 1
    dilation_width: int = 1
    activation: Activation = Activation.NONE

    @property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """(stride, dilation) along depth, height and width."""
        return (
            (self.stride_depth, self.dilation_depth),
            (self.stride_height, self.dilation_height),
            (self.stride_width, self.dilation_width),
        )

    def _windows(self, weight: Array) -> tuple[Window, ...]:
        each = enumerate(zip(weight.shape, self.steps, strict=False))
        return tuple(Window(w, *step, self.padding.along(i)) for i, (w, step) in each)

    def _check(self, x: TensorType, weight: TensorType, bias: TensorType | None, outputs_axis: int) -> None:
        require_padding(self.padding, 3)
        for name in ("depth", "height", "width"):
            require_step(f"stride_{name}", getattr(self, f"stride_{name}"))
            require_step(f"dilation_{name}", getattr(self, f"dilation_{name}"))
        require(x.rank == 5, f"input is {x}, expected 5 dimensions")
        require(weight.rank == 5, f"filter is {weight}, expected 5 dimensions")
        require_floats(x, weight)
        require_floats(x, weight if bias is None else bias)
        channels, inner = x.shape[4], weight.shape[7 - outputs_axis]
        require(
            channels is None or inner is None or channels == inner,
            f"input has {channels} channels, expected the filter's {inner}",
        )
        if bias is not None:
            outputs = weight.shape[outputs_axis]
            require(
                bias.rank == 1 and (outputs is None or bias.shape[0] in (outputs, None)),
                f"bias is {bias}, expected {outputs} elements",
            )


@frozen
class Conv3D(Spatial3D):
    """Three-dimensional convolution: each output element is the sum of products of a window of `x` with one filter.

    Operands, all floats: `x` [batch, depth, height, width, channels]; `weight` [window depth, window height, window
    width, channels, outputs]; optional `bias` [outputs], added to the sums. Result: [batch, output depth, output
    height, output width, outputs]. Attributes as in `Conv2D`. Source: TFLite CONV_3D, kernels/conv3d.cc.
    """

    def infer(self, x: TensorType, weight: TensorType, bias: TensorType | None = None) -> TensorType:
        self._check(x, weight, bias, outputs_axis=4)
        sizes = (
            output_dim(x.shape[1 + i], weight.shape[i], stride, dilation, self.padding.along(i))
            for i, (stride, dilation) in enumerate(self.steps)
        )
        return x.result((x.shape[0], *sizes, weight.shape[4]))

    def flops(self, types: CallTypes) -> int:
        return filtered(types, axis=-1)

    def rounds(self, types: CallTypes) -> int:
        return tapped(types, types.input(1).shape[:3])

    def evaluate(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        out = convolve(x, weight, self._windows(weight))
        return self.activation.apply(out if bias is None else out + bias)

    evaluate_quantized = as_stored


@frozen
class TransposeConv3D(Spatial3D):
    """Transposed three-dimensional convolution: each input element adds its multiple of a filter to a window.

    Operands: `output_shape` (int32 or int64, five elements: the result's shape, which the forward convolution must map
    to that of `x`); `weight` [window depth, window height, window width, outputs, channels]; `x` [batch, depth, height,
    width, channels]; optional `bias` [outputs]. Source: TFLite CONV_3D_TRANSPOSE, kernels/conv3d_transpose.cc.
    """

    def infer(
        self, output_shape: TensorType, weight: TensorType, x: TensorType, bias: TensorType | None = None
    ) -> TensorType:
        self._check(x, weight, bias, outputs_axis=3)
        require_padding(self.padding, 3, weight.shape[:3])
        found = given_shape(output_shape, 5)
        if found is None:
            return x.result((x.shape[0], None, None, None, weight.shape[3]))
        require(x.shape[0] in (found[0], None), f"output_shape begins with {found[0]}, expected {x.shape[0]}")
        require(weight.shape[3] in (found[4], None), f"output_shape ends with {found[4]}, expected {weight.shape[3]}")
        for i, (stride, dilation) in enumerate(self.steps):
            forward = output_dim(found[1 + i], weight.shape[i], stride, dilation, self.padding.along(i))
            require(
                forward is None or x.shape[1 + i] in (forward, None),
                f"output_shape has {found[1 + i]} in dimension {1 + i}, for which the forward convolution infers "
                f"{forward}, expected the input's {x.shape[1 + i]}",
            )
        return x.result(found)

    def flops(self, types: CallTypes) -> int:
        return scattered(types.input(2), types.input(1))

    def rounds(self, types: CallTypes) -> int:
        return tapped(types, types.input(1).shape[:3], 2)

    def evaluate(self, output_shape: Array, weight: Array, x: Array, bias: Array | None = None) -> Array:
        filters = weight.transpose(0, 1, 2, 4, 3)
        out = convolve_transposed(x, filters, self._windows(weight), sv.values(output_shape)[1:4])
        return self.activation.apply(out if bias is None else out + bias)

    evaluate_quantized = as_stored
