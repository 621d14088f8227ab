"""Conversions between element types."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import OnStored, Op, require
from onert.ir.ops.arithmetic.unary_quantized import rescale
from onert.ir.quant import dequantize, quantize
from onert.ir.types import CallTypes, TensorType


@frozen
class Cast(OnStored):
    """Converts the elements to type `to`; quantisation is ignored.

    Floats become integers by truncation towards zero with saturation, and NaN becomes the largest integer; integers
    wrap; everything except 0 becomes true; a complex number loses its imaginary part.

    - `x`: numbers or booleans, any shape
    """

    to: DType

    def infer(self, x: TensorType) -> TensorType:
        for dtype in (x.dtype, self.to):
            require(not dtype.is_handle, f"Cast is not defined between {x.dtype.text} and {self.to.text}")
        return TensorType(self.to, x.shape)

    def evaluate(self, x: Array) -> Array:
        target = self.to.numpy
        if x.dtype.kind == "c" and not self.to.is_complex:
            x = x.real
        if self.to is DType.BOOL:
            return np.asarray(x != 0)
        if self.to.is_integer and x.dtype.kind not in "iub":
            low, high = self.to.limits
            wide = x.astype(np.float64)
            wide = np.where(np.isnan(wide), np.inf, wide)  # as in TFLite's kernels
            inside = np.clip(np.trunc(wide), low, high)
            # 2**63 - 1 is not a float64, so values at or above it are saturated separately.
            return np.where(
                inside >= float(high), np.array(high, target), np.where(inside < float(high), inside, 0).astype(target)
            )
        with np.errstate(over="ignore"):  # a number too large for a narrow float becomes infinite
            return x.astype(target)


def _require_real(x: TensorType, kind: str) -> None:
    """Raises RuleError unless elements represent real numbers."""
    known = x.dtype.is_float or (x.dtype.is_integer and x.quantization is not None)
    require(known, f"{kind} is given {x.dtype.text} without quantisation, expected floats or quantised integers")


@frozen
class Quantize(Op):
    """Quantises real numbers to integers of type `to`, or requantises integers; the result has declared parameters.

    - `x`: floats; or quantised integers, rescaled in fixed point (TFLite's Requantize), or via float32 if per axis
    """

    to: DType

    def infer(self, x: TensorType) -> TensorType:
        require(self.to.is_integer, f"Quantize gives {self.to.text}, expected an integer type")
        _require_real(x, "Quantize")
        return TensorType(self.to, x.shape)

    def evaluate_quantized(self, types: CallTypes, x: Array) -> Array:
        source, result = types.input(0), types.output
        require(result.quantization is not None, "Quantize's result has no quantisation")
        assert result.quantization is not None
        if source.dtype.is_float:
            return quantize(x.astype(np.float32), result.quantization, result.dtype)
        assert source.quantization is not None
        if not (source.quantization.per_tensor and result.quantization.per_tensor):
            return quantize(dequantize(x, source.quantization), result.quantization, result.dtype)
        return rescale(x.astype(np.int64) - source.zero_point, source.scale / result.scale, result)


@frozen
class Dequantize(Op):
    """Dequantises integers to real numbers of type `to`, or converts 16-bit floats to wider ones.

    - `x`: quantised integers (per tensor, per axis or blockwise), or floats
    """

    to: DType = DType.FLOAT32

    def infer(self, x: TensorType) -> TensorType:
        require(self.to.is_float, f"Dequantize gives {self.to.text}, expected floats")
        _require_real(x, "Dequantize")
        return TensorType(self.to, x.shape)

    def evaluate(self, x: Array) -> Array:
        return x.astype(self.to.numpy)

    def evaluate_quantized(self, types: CallTypes, x: Array) -> Array:
        source = types.input(0).quantization
        return self.evaluate(x if source is None else dequantize(x, source))


@frozen
class FakeQuant(Op):
    """Quantises real numbers to `bits` bits over the range from `low` to `high`, and dequantises them again.

    The range is shifted so that 0 is represented exactly (TFLite's NudgeQuantizationRange); with `narrow` the lowest
    stored value is not used.

    - `x`: floats, any shape
    """

    low: float
    high: float
    bits: int = 8
    narrow: bool = False

    def infer(self, x: TensorType) -> TensorType:
        require(x.dtype.is_float, f"FakeQuant is given {x.dtype.text}, expected floats")
        require(2 <= self.bits <= 16, f"num_bits is {self.bits}, expected 2 to 16")
        require(self.low < self.high, f"min is {self.low}, expected less than max {self.high}")
        return x.result(x.shape)

    def evaluate(self, x: Array) -> Array:
        smallest, largest = np.float32(1 if self.narrow else 0), np.float32((1 << self.bits) - 1)
        low, high = np.float32(self.low), np.float32(self.high)
        scale = (high - low) / (largest - smallest)
        zero = smallest - low / scale
        nudged = np.clip(np.floor(zero + np.float32(0.5)), smallest, largest)
        floor, ceiling = (smallest - nudged) * scale, (largest - nudged) * scale
        inside = np.clip(x.astype(np.float32), floor, ceiling) - floor
        out: Array = (np.floor(inside * (1 / scale) + np.float32(0.5)) * scale + floor).astype(x.dtype)
        return out


@frozen
class Bitcast(OnStored):
    """Reinterprets the bytes of `x` as elements of type `to`.

    Smaller elements add a last axis of `old size / new size`; larger ones consume a last axis of `new size / old size`.

    - `x`: any type except strings, resources and variants
    """

    to: DType

    def infer(self, x: TensorType) -> TensorType:
        for dtype in (x.dtype, self.to):
            require(not dtype.is_handle, f"Bitcast is not defined on elements of type {dtype.text}")
        old, new = x.dtype.itemsize, self.to.itemsize
        if old == new:
            return TensorType(self.to, x.shape)
        if old > new:
            return TensorType(self.to, (*x.shape, old // new))
        require(
            x.rank > 0 and shapes.compatible(x.shape[-1:], (new // old,)),
            f"Bitcast from {x.dtype.text} to {self.to.text} requires a last dimension of {new // old}, x is {x}",
        )
        return TensorType(self.to, x.shape[:-1])

    def evaluate(self, x: Array) -> Array:
        old, new = x.dtype.itemsize, self.to.itemsize
        shape = x.shape if old == new else (*x.shape, old // new) if old > new else x.shape[:-1]
        return np.ascontiguousarray(x).reshape(-1).view(self.to.numpy).reshape(shape)
