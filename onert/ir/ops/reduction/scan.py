"""Cumulative sums and products, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import elementwise
from onert.ir.op import Op, as_stored, require
from onert.ir.shape import normalize_axis
from onert.ir.types import CallTypes, TensorType

from .reduce import axis_of, require_one_axis


def _along(x: TensorType, axis: TensorType) -> TensorType:
    """The result type of an operation along one axis. Raises RuleError if there is no such axis."""
    require(x.rank >= 1, "input is a scalar, expected at least 1 dimension")
    require_one_axis(axis)
    if axis.value is not None:
        axis_of(axis, x.rank)
    return x.result(x.shape)


@frozen
class CumSum(Op):
    """The cumulative sum along an axis.

    Operands: `x`, floats, int32 or int64; `axis` (one integer, negative counts from the end). Result: as `x`.
    `exclusive` excludes the element itself, `reverse` sums from the other end.

    Source: TFLite CUMSUM, kernels/cumsum.cc.
    """

    exclusive: bool = False
    reverse: bool = False

    def infer(self, x: TensorType, axis: TensorType) -> TensorType:
        allowed = x.dtype.is_float or x.dtype in (DType.INT32, DType.INT64)
        require(allowed, f"input is {x.dtype.text}, expected a float, i32 or i64")
        return _along(x, axis)

    def evaluate(self, x: Array, axis: Array) -> Array:
        def sums(x: Array, at: int) -> Array:
            out: Array = np.cumsum(x, axis=at, dtype=x.dtype) + x.dtype.type(0)  # sums start from 0, so -0 becomes 0
            return out

        return _running(self, x, axis, sums, 0)

    evaluate_quantized = as_stored


@frozen
class CumProd(Op):
    """The cumulative product along an axis.

    Operands: `x`, numbers; `axis` (one integer, negative counts from the end). Result: as `x`; integers wrap.
    `exclusive` excludes the element itself, `reverse` multiplies from the other end. Source: ONNX CumProd.
    """

    exclusive: bool = False
    reverse: bool = False

    def infer(self, x: TensorType, axis: TensorType) -> TensorType:
        require(x.dtype.is_numeric, f"input is {x.dtype.text}, expected numbers")
        return _along(x, axis)

    def evaluate(self, x: Array, axis: Array) -> Array:
        narrow = x.dtype.kind == "V" or x.dtype.itemsize < 4

        def products(x: Array, at: int) -> Array:
            wide = x.astype(np.float32) if narrow and x.dtype.kind not in "iu" else x
            return np.cumprod(wide, axis=at).astype(x.dtype)

        return _running(self, x, axis, products, 1)


@frozen
class RFFT2D(Op):
    """The two-dimensional Fourier transform of real numbers over the last two axes, without its redundant half.

    Operands: `x` [..., height, width], float32; `fft_length` (two int32: rows and columns of the transform, to which x
    is cropped or zero-padded). Result: complex64 [..., rows, columns // 2 + 1]. Source: TFLite RFFT2D,
    kernels/rfft2d.cc.
    """

    def infer(self, x: TensorType, fft_length: TensorType) -> TensorType:
        return _spectrum(x, fft_length, 2)

    def flops(self, types: CallTypes) -> int:
        rows, columns = (d or 0 for d in types.output.shape[-2:])
        each = (n if n & (n - 1) else n.bit_length() for n in (rows, 2 * (columns - 1)))
        return 4 * elementwise(types) * sum(each)

    def evaluate(self, x: Array, fft_length: Array) -> Array:
        rows, columns = (int(n) for n in fft_length.reshape(-1))
        out: Array = np.fft.rfft2(x.astype(np.float64), s=(rows, columns), axes=(-2, -1)).astype(np.complex64)
        return out

    evaluate_quantized = as_stored


@frozen
class RFFT(Op):
    """The Fourier transform of real numbers over the last axis, without its redundant half.

    Operands: `x` [..., size], float32; `fft_length` (one int32: the length of the transform, to which x is cropped or
    zero-padded). Result: complex64 [..., length // 2 + 1]. Source: TensorFlow's RFFT.
    """

    def infer(self, x: TensorType, fft_length: TensorType) -> TensorType:
        return _spectrum(x, fft_length, 1)

    def flops(self, types: CallTypes) -> int:
        n = 2 * ((types.output.shape[-1] or 1) - 1)
        return 4 * elementwise(types) * (n if n & (n - 1) else n.bit_length())

    def evaluate(self, x: Array, fft_length: Array) -> Array:
        out: Array = np.fft.rfft(x.astype(np.float64), int(fft_length.reshape(-1)[0])).astype(np.complex64)
        return out

    evaluate_quantized = as_stored


def _spectrum(x: TensorType, fft_length: TensorType, axes: int) -> TensorType:
    """The result type of a Fourier transform of real numbers over the last axes. Raises RuleError if an operand does
    not fit."""
    require(x.dtype is DType.FLOAT32, f"input is {x.dtype.text}, expected f32")
    require(x.rank >= axes, f"input is {x}, expected rank {axes} or more")
    require(fft_length.dtype is DType.INT32, f"fft_length is {fft_length.dtype.text}, expected i32")
    fits = fft_length.rank == 1 and fft_length.shape[0] in (axes, None)
    require(fits, f"fft_length is {fft_length}, expected shape [{axes}]")
    if fft_length.value is None:
        return TensorType(DType.COMPLEX64, (*x.shape[:-axes], *[None] * axes))
    lengths = [int(n) for n in fft_length.value.reshape(-1)]
    require(min(lengths) >= 1, f"fft_length is {lengths}, expected at least 1 each")
    return TensorType(DType.COMPLEX64, (*x.shape[:-axes], *lengths[:-1], lengths[-1] // 2 + 1))


def _running(op: CumSum | CumProd, x: Array, axis: Array, of: Callable[[Array, int], Array], start: int) -> Array:
    at = normalize_axis(int(axis.reshape(-1)[0]), x.ndim)
    out = of(np.flip(x, at) if op.reverse else x, at)
    if op.exclusive:
        before = [slice(None)] * at
        out = np.concatenate([np.full_like(out[*before, :1], start), out[*before, :-1]], axis=at)
    return np.ascontiguousarray(np.flip(out, at)) if op.reverse else out
