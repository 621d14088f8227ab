"""Fourier transforms along an axis, and the matrix that maps their frequencies to mel bands."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import elementwise
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.shape import MAX_ELEMENTS, Dim, normalize_axis
from onert.ir.types import CallTypes, TensorType


@frozen
class Fourier(Op):
    """The discrete Fourier transform along an axis.

    - `x`: floats [..., 1] for real numbers, or [..., 2] for complex ones: real and imaginary part
    - `axis`: one integer, not the last axis
    - `length`: one integer: the length to which the signal is cropped or zero-padded; if absent, its own length

    Result: [..., 2]. With `half` only frequencies 0 to length / 2 are returned; with `inverse` too, these are the input
    and the result is real, [..., 1]. `inverse` divides by the length. Source: ONNX DFT.
    """

    inverse: bool = False
    half: bool = False

    def infer(self, x: TensorType, axis: TensorType, length: TensorType | None = None) -> TensorType:
        require(x.dtype.is_float and x.rank >= 2, f"x is {x}, expected floats of at least 2 dimensions")
        require(x.shape[-1] in (1, 2, None), f"x is {x}, expected a last dimension of 1 or 2")
        at, count = sv.one_integer(axis, "axis"), None if length is None else sv.one_integer(length, "length")
        require(count is None or 1 <= count <= MAX_ELEMENTS, f"length is {count}, expected at least 1")
        last = 1 if self.inverse and self.half else 2
        if at is None:
            return x.result((*sv.unknown(x.rank - 1), last))
        place = normalize_axis(at, x.rank)
        require(place < x.rank - 1, f"axis is {at}, expected any but the last of {x}")
        size = x.shape[place] if length is None else count
        dims: list[Dim] = list(x.shape)
        dims[place] = self._bins(size, given=length is not None)
        dims[-1] = last
        return x.result(tuple(dims))

    def _bins(self, size: Dim, *, given: bool) -> Dim:
        if size is None or not self.half:
            return size
        if self.inverse:
            return size if given else 2 * (size - 1)
        return size // 2 + 1

    def flops(self, types: CallTypes) -> int:
        return 4 * elementwise(types) * 40

    def evaluate(self, x: Array, axis: Array, length: Array | None = None) -> Array:
        at = normalize_axis(int(axis.reshape(-1)[0]), x.ndim)
        wide = x.astype(np.float64)
        signal = wide[..., 0] + 1j * wide[..., 1] if x.shape[-1] == 2 else wide[..., 0]
        count = x.shape[at] if length is None else int(length.reshape(-1)[0])
        if self.inverse and self.half:
            whole = count if length is not None else 2 * (count - 1)
            return np.fft.irfft(signal, whole, at).astype(x.dtype)[..., None]
        found = (np.fft.ifft if self.inverse else np.fft.fft)(signal, count, at)
        if self.half:
            found = np.take(found, np.arange(count // 2 + 1), axis=at)
        return np.stack([found.real, found.imag], axis=-1).astype(x.dtype)


@frozen
class MelWeights(Op):
    """The matrix that maps a spectrum to mel bands: triangular filters evenly spaced on the mel scale.

    - `bands`, `length`, `rate`: one integer each: the number of bands, the length of the transform, samples per second
    - `low`, `high`: one float each: the start of the first band and the end of the last one, in Hz

    Result: [length / 2 + 1, bands] of type `to`. Source: ONNX MelWeightMatrix; mel = 2595 log10(1 + f / 700).
    """

    to: DType = DType.FLOAT32

    def infer(
        self, bands: TensorType, length: TensorType, rate: TensorType, low: TensorType, high: TensorType
    ) -> TensorType:
        counts = [sv.one_integer(x, name) for x, name in ((bands, "bands"), (length, "length"), (rate, "rate"))]
        for edge in (low, high):
            require(edge.dtype.is_float and edge.rank == 0, f"an edge is {edge}, expected one float")
        require(self.to.is_numeric and not self.to.is_complex, f"the result is {self.to.text}, expected numbers")
        require(all(c is None or c >= 1 for c in counts), f"bands, length and rate are {counts}, expected at least 1")
        rows = None if counts[1] is None else counts[1] // 2 + 1
        if rows is not None and counts[0] is not None:
            sv.checked_shape((rows, counts[0]), "the matrix")
        return TensorType(self.to, (rows, counts[0]))

    def rounds(self, types: CallTypes) -> int:
        return types.output.shape[1] or 0

    def evaluate(self, bands: Array, length: Array, rate: Array, low: Array, high: Array) -> Array:
        count, size = int(bands.reshape(-1)[0]), int(length.reshape(-1)[0])
        ends = [2595 * np.log10(1 + float(edge.reshape(-1)[0]) / 700) for edge in (low, high)]
        require(bool(np.isfinite(ends).all()), "the edges have no finite position on the mel scale")
        steps = ends[0] + np.arange(count + 2) * (ends[1] - ends[0]) / (count + 2)
        hertz = 700 * (np.power(10, steps / 2595) - 1)
        places = np.floor((size + 1) * hertz / int(rate.reshape(-1)[0])).astype(np.int64)
        rows = np.arange(size // 2 + 1)
        out = np.zeros((len(rows), count))
        for band in range(count):
            left, middle, right = (int(p) for p in places[band : band + 3])
            if left == middle:
                out[(rows == middle), band] = 1
            else:
                rising = (rows >= left) & (rows <= middle)
                out[rising, band] = (rows[rising] - left) / (middle - left)
            falling = (rows >= middle) & (rows < right)
            if right > middle:
                out[falling, band] = (right - rows[falling]) / (right - middle)
        return out.astype(self.to.numpy)
