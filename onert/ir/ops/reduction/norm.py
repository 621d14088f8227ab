"""Normalisations."""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.filter_types import require_scale
from onert.ir.ops.arithmetic.fixed_point import multiply_by_quantized_multiplier
from onert.ir.ops.arithmetic.fixed_point_functions import inverse_square_root
from onert.ir.ops.arithmetic.window import MAX_STEP
from onert.ir.quant import dequantize, quantize
from onert.ir.types import CallTypes, TensorType


@frozen
class L2Normalization(Op):
    """Each vector along the last axis divided by its Euclidean norm, or by 1e-6 if that is larger.

    Operand: `x`, at least one dimension. Result: the same shape and type. Element types: floats; int8 and uint8 with a
    result of scale 1/128 and zero point 0 or 128, in fixed point; any other quantised int8, uint8 or int16 via floats.

    Source: TFLite L2_NORMALIZATION, kernels/l2norm.cc, internal/reference/l2normalization.h.
    """

    activation: Activation = Activation.NONE

    def infer(self, x: TensorType) -> TensorType:
        require(x.rank >= 1, "input is a scalar, expected at least 1 dimension")
        stored = x.dtype in (DType.INT8, DType.UINT8, DType.INT16)
        require(x.dtype.is_float or stored, f"input is {x.dtype.text}, expected a float, i8, u8 or i16")
        if stored:
            require_scale("input", x)
        return x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        length = np.sqrt((x * x).sum(axis=-1, keepdims=True))
        return self.activation.apply(x / np.maximum(length, x.dtype.type(1e-6)))

    def evaluate_quantized(self, types: CallTypes, x: Array) -> Array:
        before, after = types.input(0), types.output
        found, given = before.quantization, after.quantization
        require(found is not None and given is not None, "result has no quantisation, expected scale and zero point")
        assert found is not None
        assert given is not None
        if not self.is_in_fixed_point(types):
            return quantize(self.evaluate(dequantize(x, found)), given, after.dtype)
        centred = x.astype(np.int64) - before.zero_point
        mantissa, shift = inverse_square_root((centred * centred).sum(axis=-1, keepdims=True))
        if after.dtype is DType.UINT8:
            scaled = multiply_by_quantized_multiplier(128 * centred, mantissa, shift)
        else:
            scaled = multiply_by_quantized_multiplier(centred, mantissa, shift + 7)
        out: Array = np.clip(scaled + after.zero_point, *after.dtype.limits).astype(x.dtype)
        return out

    def is_in_fixed_point(self, types: CallTypes) -> bool:
        """Whether integers are normalised as such, not by way of floats."""
        out = types.output
        middle = {DType.UINT8: 128, DType.INT8: 0}.get(out.dtype)
        given = None if out.quantization is None or not out.quantization.per_tensor else out.quantization
        plain = given is not None and given.scale == 1 / 128 and given.zero_point == middle
        return plain and self.activation is Activation.NONE


@frozen
class LocalResponseNormalization(Op):
    """`x * (bias + alpha * s)**-beta`, where s is the sum of squares over the channels at most `radius` away.

    Operand: `x`, floats, channels along its last axis. Result: the same shape and type.

    Source: TensorFlow's tf.nn.local_response_normalization; TFLite LOCAL_RESPONSE_NORMALIZATION,
    kernels/local_response_norm.cc, whose reference kernel omits the last channel of each window.
    """

    radius: int = 5
    bias: float = 1.0
    alpha: float = 1.0
    beta: float = 0.5

    def infer(self, x: TensorType) -> TensorType:
        require(x.rank >= 1, "input is a scalar, expected at least 1 dimension")
        require(x.dtype.is_float, f"input is {x.dtype.text}, expected a float")
        require(0 <= self.radius <= MAX_STEP, f"radius is {self.radius}, expected 0 to {MAX_STEP}")
        for name, value in (("bias", self.bias), ("alpha", self.alpha), ("beta", self.beta)):
            require(math.isfinite(value), f"{name} is {value}, expected a finite number")
        return x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        squares = np.square(x, dtype=np.float64)
        sums = self._sums(np.where(np.isfinite(squares), squares, 0))
        for special in (np.inf, np.nan):  # differences of running sums would carry these beyond their windows
            where = np.isnan(squares) if np.isnan(special) else np.isinf(squares)
            sums = np.where(self._sums(where) > 0, special, sums)
        factor = (self.bias + self.alpha * sums) ** -self.beta
        return (x * factor).astype(x.dtype)

    def _sums(self, x: Array) -> Array:
        """The sum over each channel's neighbours."""
        channels = x.shape[-1]
        totals = np.zeros((*x.shape[:-1], channels + 1), np.float64)
        np.cumsum(x, axis=-1, out=totals[..., 1:])
        at = np.arange(channels)
        sums: Array = (
            totals[..., np.minimum(at + self.radius + 1, channels)] - totals[..., np.maximum(at - self.radius, 0)]
        )
        return sums


@frozen
class InstanceNorm(Op):
    """`gamma * (x - mean) / sqrt(variance + epsilon) + beta`, with statistics over each channel of each batch item.

    Operands, floats: `x`, [batch, height, width, channels] or [batch, channels, size]; `gamma` and `beta`, one element
    or one per channel. Result: the shape and type of `x`. `activation` is applied last.

    Source: circle INSTANCE_NORM, luci-interpreter's kernels/InstanceNorm.cpp.
    """

    epsilon: float = 1e-5
    activation: Activation = Activation.NONE

    def infer(self, x: TensorType, gamma: TensorType, beta: TensorType) -> TensorType:
        require(x.rank in (3, 4), f"input is {x}, expected 3 or 4 dimensions")
        _require_epsilon(self.epsilon)
        channels = x.shape[3 if x.rank == 4 else 1]
        for what, type_ in (("input", x), ("gamma", gamma), ("beta", beta)):
            require(type_.dtype.is_float, f"{what} is {type_.dtype.text}, expected a float")
        _require_channels("gamma", gamma, channels)
        _require_channels("beta", beta, channels)
        return x.result(x.shape)

    def evaluate(self, x: Array, gamma: Array, beta: Array) -> Array:
        if not x.size:
            return x
        axes = (1, 2) if x.ndim == 4 else (2,)
        across = (-1,) if x.ndim == 4 else (-1, 1)
        wide = x.astype(np.float64)
        factor = gamma.reshape(across) / np.sqrt(wide.var(axis=axes, keepdims=True) + self.epsilon)
        out = (wide - wide.mean(axis=axes, keepdims=True)) * factor + beta.reshape(across)
        return self.activation.apply(out.astype(x.dtype))


@frozen
class RmsNorm(Op):
    """`gamma * x / sqrt(mean(x * x) + epsilon) + beta`, over the last axis.

    Operands, floats: `x`, at least one dimension; `gamma` and `beta` (absent in newer files), one element or one per
    element of the last axis. Result: the shape and type of `x`.

    Source: circle RMS_NORM, luci-interpreter's kernels/RmsNorm.cpp.
    """

    epsilon: float = 1e-6

    def infer(self, x: TensorType, gamma: TensorType | None = None, beta: TensorType | None = None) -> TensorType:
        require(x.rank >= 1, "input is a scalar, expected at least 1 dimension")
        _require_epsilon(self.epsilon)
        for what, type_ in (("input", x), ("gamma", gamma), ("beta", beta)):
            require(type_ is None or type_.dtype.is_float, f"{what} is {type_}, expected a float")
            if type_ is not None and type_ is not x:
                _require_channels(what, type_, x.shape[-1])
        return x.result(x.shape)

    def evaluate(self, x: Array, gamma: Array | None = None, beta: Array | None = None) -> Array:
        if not x.size:
            return x
        wide = x.astype(np.float64)
        squares = (x * x).astype(np.float64)  # squared in the operand's type, so overflow gives infinity
        out: Array = wide / np.sqrt(squares.mean(axis=-1, keepdims=True) + self.epsilon)
        out = out if gamma is None else out * gamma
        out = out if beta is None else out + beta
        return out.astype(x.dtype)


@frozen
class BatchNorm(Op):
    """`scale * (x - mean) / sqrt(variance + epsilon) + offset` per channel, with given statistics.

    Operands, floats of one type: `x`, [..., channels]; `scale`, `offset`, `mean` and `variance`, one element or one per
    channel. Result: the shape and type of `x`.

    Source: TensorFlow's FusedBatchNormV3 in inference mode.
    """

    epsilon: float = 1e-3

    def infer(
        self, x: TensorType, scale: TensorType, offset: TensorType, mean: TensorType, variance: TensorType
    ) -> TensorType:
        require(x.rank >= 1, "input is a scalar, expected at least 1 dimension")
        _require_epsilon(self.epsilon)
        require(x.dtype.is_float, f"input is {x}, expected floats")
        for what, type_ in (("scale", scale), ("offset", offset), ("mean", mean), ("variance", variance)):
            require(type_.dtype is x.dtype, f"{what} is {type_}, expected {x.dtype.text}")
            _require_channels(what, type_, x.shape[-1])
        return x.result(x.shape)

    def evaluate(self, x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Array:
        factor = scale.reshape(-1) / np.sqrt(variance.reshape(-1).astype(np.float64) + self.epsilon)
        return ((x - mean.reshape(-1)) * factor + offset.reshape(-1)).astype(x.dtype)


def _require_epsilon(epsilon: float) -> None:
    require(math.isfinite(epsilon) and epsilon >= 0, f"epsilon is {epsilon}, expected a finite number of at least 0")


def _require_channels(what: str, type_: TensorType, channels: int | None) -> None:
    fits = type_.rank <= 1 and (channels is None or all(d in (1, channels, None) for d in type_.shape))
    require(fits, f"{what} is {type_}, expected 1 or {channels} elements")
