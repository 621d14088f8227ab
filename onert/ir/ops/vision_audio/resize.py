"""Image resizing."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, as_stored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.quant import round_half_away
from onert.ir.shape import Dim, Shape
from onert.ir.symbolic.trace import decided, hint, largest
from onert.ir.types import TensorType
from onert.ir.value import Value


@frozen
class ResizeBilinear(Op):
    """Bilinear interpolation: each output element is a weighted mean of its four nearest inputs.

    Operands: `x` [batch, height, width, channels]; `size` (int32: new height and width). Result: [batch, new height,
    new width, channels]. Output y maps to input row `y * height / new height`; with `half_pixel_centers` the centres of
    pixels are mapped instead, with `align_corners` (not both) the corner pixels coincide.

    Element types: floats; uint8, interpolated in float32 and rounded; int8 and int16, with positions and weights in
    steps of 1/1024, rounded half away from zero.

    Source: TFLite RESIZE_BILINEAR, kernels/resize_bilinear.cc and kernels/internal/reference/resize_bilinear.h.
    """

    align_corners: bool = False
    half_pixel_centers: bool = False

    def infer(self, x: TensorType, size: TensorType) -> TensorType:
        both = self.align_corners and self.half_pixel_centers
        require(not both, "align_corners and half_pixel_centers are both set, expected at most one")
        stored = x.dtype in (DType.UINT8, DType.INT8, DType.INT16)
        require(x.dtype.is_float or stored, f"input is {x.dtype.text}, expected a float, u8, i8 or i16")
        return x.result(resized(x, size))

    def evaluate(self, x: Array, size: Array) -> Array:
        height, width = _new_size(size)
        if x.dtype in (np.int8, np.int16):
            return self._integer(x, height, width)
        rows, columns = self.positions(height, x.shape[1]), self.positions(width, x.shape[2])
        down, across = rows[2][:, None, None], columns[2][:, None]
        real = x.astype(np.float32, copy=False)
        top, bottom = real[:, rows[0]], real[:, rows[1]]
        upper = top[:, :, columns[0]] * (1 - down) * (1 - across) + bottom[:, :, columns[0]] * down * (1 - across)
        out: Array = upper + top[:, :, columns[1]] * (1 - down) * across + bottom[:, :, columns[1]] * down * across
        return (out if x.dtype.kind == "f" else round_half_away(out)).astype(x.dtype)

    evaluate_quantized = as_stored

    def positions(self, count: int, inputs: int) -> tuple[Array, Array, Array]:
        """For each output along an axis, the inputs before and after it, and its distance from the first."""
        scale = _scale(inputs, count, self.align_corners)
        at = np.arange(count, dtype=np.float32)
        at = (at + np.float32(0.5)) * scale - np.float32(0.5) if self.half_pixel_centers else at * scale
        low = np.maximum(np.floor(at).astype(np.int64), 0)
        high = np.minimum(np.ceil(at).astype(np.int64), inputs - 1)
        return np.minimum(low, inputs - 1), high, at - low.astype(np.float32)

    def taps(self, at: int, before: int, after: int) -> tuple[Array, Array]:
        """The indices and weights of the two inputs that contribute to each output along an axis, each [after, 2]."""
        low, high, part = self.positions(after, before)
        return np.stack((low, high), axis=1), np.stack((np.float32(1) - part, part), axis=1)

    def _integer(self, x: Array, height: int, width: int) -> Array:
        rows, columns = self.steps(height, x.shape[1]), self.steps(width, x.shape[2])
        down, across = rows[2][:, None, None], columns[2][:, None]
        wide = x.astype(np.int64)
        top, bottom = wide[:, rows[0]], wide[:, rows[1]]
        left = top[:, :, columns[0]] * (1024 - down) + bottom[:, :, columns[0]] * down
        right = top[:, :, columns[1]] * (1024 - down) + bottom[:, :, columns[1]] * down
        total = left * (1024 - across) + right * across
        magnitude = (np.abs(total) + (1 << 19)) >> 20
        out: Array = np.where(total > 0, magnitude, -magnitude).astype(x.dtype)
        return out

    def steps(self, count: int, inputs: int) -> tuple[Array, Array, Array]:
        """`positions` for int8 and int16: distances are in steps of 1/1024."""
        scale = (1024 * inputs + count // 2) // count
        if self.align_corners and count > 1:
            scale = (1024 * (inputs - 1) + (count - 1) // 2) // (count - 1)
        at = np.arange(count, dtype=np.int64) * scale
        if self.half_pixel_centers:
            at = at + scale // 2 - 512
        low = np.clip(at // 1024, 0, inputs - 1)
        high = np.clip(-(-at // 1024), 0, inputs - 1)
        return low, high, at - 1024 * low


_INSIDE, _EXACT = 4, 1 << 22
"""The fewest inputs of which some have neighbours on both sides; the most outputs with exact float32 positions."""


@frozen
class ResizeNearestNeighbor(Op):
    """Nearest-neighbour interpolation: each output element is the nearest input.

    Operands: `x` [batch, height, width, channels], any element type; `size` (int32: new height and width). Result:
    [batch, new height, new width, channels]. Output y reads input row `floor(y * height / new height)`; `align_corners`
    makes the corner pixels coincide and rounds the row, `half_pixel_centers` maps the centres of pixels.

    Source: TFLite RESIZE_NEAREST_NEIGHBOR, kernels/internal/reference/resize_nearest_neighbor.h.
    """

    stored = True

    align_corners: bool = False
    half_pixel_centers: bool = False

    def infer(self, x: TensorType, size: TensorType) -> TensorType:
        return x.result(resized(x, size))

    def evaluate(self, x: Array, size: Array) -> Array:
        height, width = _new_size(size)
        rows, columns = self.nearest(height, x.shape[1]), self.nearest(width, x.shape[2])
        return x[:, rows[:, None], columns]

    def nearest(self, count: int, inputs: int) -> Array:
        """The index of the input for each of `count` outputs along an axis of `inputs`."""
        scale = _scale(inputs, count, self.align_corners)
        at = np.arange(count, dtype=np.float32)
        at = (at + np.float32(0.5)) * scale if self.half_pixel_centers else at * scale
        whole = round_half_away(at) if self.align_corners else np.floor(at)
        return np.clip(whole.astype(np.int64), 0, inputs - 1)

    def repeats(self, count: int, inputs: int) -> int | None:
        """How often each input along an axis is repeated consecutively; None if the number differs between inputs."""
        if inputs == 0 or count % inputs:
            return None
        times = int(count // inputs)
        same = _Repeats(self, times)
        if not same(hint(inputs)):
            return None
        if not self.is_steady(times, inputs):
            decided(same, inputs)
        return times

    def is_steady(self, times: int, inputs: int) -> bool:
        """Whether the inputs are selected by one rule for any number of them, with `times` as many outputs as inputs.

        Positions are then exact, because the scale is a power of two, and advance by one per input. The number of
        inputs may be symbolic.
        """
        exact = times & (times - 1) == 0 and largest(times * inputs) <= _EXACT
        return exact and not self.align_corners and hint(inputs) >= _INSIDE


@frozen
class _Repeats(Value):
    """Whether each of a number of inputs is repeated `times` times."""

    op: ResizeNearestNeighbor
    times: int

    def __call__(self, inputs: int) -> bool:
        count = inputs * self.times
        return bool(np.array_equal(self.op.nearest(count, inputs), np.arange(count) // self.times))

    def results(self, count: int) -> Array:
        """The results for all lengths below `count`."""
        return np.array([inputs > 0 and self(inputs) for inputs in range(count)])


def resized(x: TensorType, size: TensorType) -> Shape:
    """The shape of an image resized to the size in an operand. Raises RuleError unless both are valid."""
    require(x.rank == 4, f"input is {x}, expected 4 dimensions")
    require(size.dtype is DType.INT32, f"size is {size.dtype.text}, expected i32")
    require(size.rank == 1 and size.shape[0] in (2, None), f"size is {size}, expected 2 elements")
    if size.value is None:
        return (x.shape[0], None, None, x.shape[3])
    require(size.value.size == 2, f"size has {size.value.size} elements, expected 2")
    height, width = _new_size(size.value)
    _require_extent("height", x.shape[1], height)
    _require_extent("width", x.shape[2], width)
    return (x.shape[0], height, width, x.shape[3])


def _require_extent(name: str, before: Dim, after: int) -> None:
    require(after >= 1, f"new {name} is {after}, expected at least 1")
    require(before != 0, f"input has {name} 0, expected at least 1")


def _scale(inputs: int, count: int, align_corners: bool) -> np.float32:
    """The distance of neighbouring outputs along an axis, in inputs."""
    if align_corners and count > 1:
        return np.float32(inputs - 1) / np.float32(count - 1)
    return np.float32(inputs) / np.float32(count)


def _new_size(size: Array) -> tuple[int, int]:
    height, width = sv.values(size)
    return height, width
