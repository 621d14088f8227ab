"""Max pooling with indices, and its inverse: custom operators of MediaPipe and TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.plane_window import require_strides
from onert.ir.ops.arithmetic.window import MAX_STEP, Padding, Tap, Window, output_dim, require_step
from onert.ir.shape import Shape, times
from onert.ir.types import TensorType


@frozen
class IndexedPool(Op):
    """The attributes and rules of a window of `filter_height` by `filter_width` that moves by the strides."""

    filter_height: int
    filter_width: int
    padding: Padding = Padding.VALID
    stride_height: int = 1
    stride_width: int = 1
    activation: Activation = Activation.NONE

    def _check(self, x: TensorType) -> None:
        require_strides(self)
        require_step("filter_height", self.filter_height)
        require_step("filter_width", self.filter_width)
        require(x.rank == 4, f"input is {x}, expected 4 dimensions")
        require(x.dtype.is_float, f"input is {x.dtype.text}, expected a float")

    def _pooled(self, x: TensorType) -> Shape:
        self._check(x)
        height = output_dim(x.shape[1], self.filter_height, self.stride_height, 1, self.padding)
        width = output_dim(x.shape[2], self.filter_width, self.stride_width, 1, self.padding)
        return x.shape[0], height, width, x.shape[3]

    def _largest(self, x: Array, place: Callable[[Tap, Tap], Array | int]) -> tuple[Array, Array]:
        """The largest element of each window, and what `place` returns for the first occurrence."""
        rows, columns = self.windows()
        shape = (x.shape[0], rows.outputs(x.shape[1]), columns.outputs(x.shape[2]), x.shape[3])
        largest, places = np.full(shape, -np.inf, x.dtype), np.zeros(shape, np.int64)
        for row, column in product(list(rows.taps(x.shape[1])), list(columns.taps(x.shape[2]))):
            target, part = (slice(None), row.target, column.target), x[:, row.source, column.source]
            better = part > largest[target]
            largest[target] = np.where(better, part, largest[target])
            places[target] = np.where(better, place(row, column), places[target])
        return self.activation.apply(largest), places

    def windows(self) -> tuple[Window, Window]:
        return (
            Window(self.filter_height, self.stride_height, 1, self.padding),
            Window(self.filter_width, self.stride_width, 1, self.padding),
        )


@frozen
class MaxPoolWithArgmax2D(IndexedPool):
    """The maximum of each window of a channel, and its index within the window.

    Operand: `x` [batch, height, width, channels], floats. Results, both [batch, output height, output width, channels]
    of the type of `x`: the maxima; and `row * filter_width + column + 0.1` of their first occurrence, counted from the
    corner of the window (which may be in the padding).

    Source: MediaPipe's util/tflite/operations/max_pool_argmax.cc (MaxPoolingWithArgmax2D).
    """

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        found = x.result(self._pooled(x))
        return found, found

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        largest, places = self._largest(x, lambda row, column: row.index * self.filter_width + column.index)
        return largest, (places + 0.1).astype(x.dtype)


@frozen
class MaxPoolWithIndices(IndexedPool):
    """The maximum of each window of a channel, and its index in the tensor.

    Operand: `x` [batch, height, width, channels], floats. Results, both [batch, output height, output width, channels]:
    the maxima; and, of element type `index`, the row-major index of their first occurrence, counted from the first
    element of the batch item, or with `batched` of the tensor.

    Source: TensorFlow's MaxPoolWithArgmax, LiteRT's kernels/perception.
    """

    index: DType = DType.INT32
    batched: bool = False

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        require(self.index in (DType.INT32, DType.INT64), f"places are {self.index.text}, expected i32 or i64")
        shape = self._pooled(x)
        return x.result(shape), TensorType(self.index, shape)

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        own = np.arange(x.size).reshape(x.shape)
        own = own if self.batched or not x.size else own % (x.size // len(x))
        largest, places = self._largest(x, lambda row, column: own[:, row.source, column.source])
        return largest, places.astype(self.index.numpy)


@frozen
class MaxUnpool2D(IndexedPool):
    """Max unpooling: writes each input element to its position in a window of zeros.

    Operands, floats of the same shape: `x` [batch, height, width, channels]; `indices`, indices within the windows as
    returned by `MaxPoolWithArgmax2D`. Result: [batch, height * filter_height, width * filter_width, channels].
    Positions outside of it are ignored; if several elements have one position, the last is used.

    Source: MediaPipe's util/tflite/operations/max_unpooling.cc (MaxUnpooling2D).
    """

    def infer(self, x: TensorType, indices: TensorType) -> TensorType:
        self._check(x)
        require(indices.dtype.is_float, f"indices are {indices.dtype.text}, expected a float")
        same = indices.rank == 4 and all(
            a in (b, None) or b is None for a, b in zip(indices.shape, x.shape, strict=True)
        )
        require(same, f"indices are {indices}, expected the input's shape {x}")
        return x.result(
            (x.shape[0], times(x.shape[1], self.filter_height), times(x.shape[2], self.filter_width), x.shape[3])
        )

    def evaluate(self, x: Array, indices: Array) -> Array:
        batch, height, width, channels = x.shape
        rows, columns = height * self.filter_height, width * self.filter_width
        out = np.zeros((batch, rows, columns, channels), x.dtype)
        real = np.nan_to_num(indices.astype(np.float64), nan=-1.0)
        place = np.clip(np.trunc(real), -1, MAX_STEP).astype(np.int64)
        down = (height - 1) * self.stride_height + self.filter_height - rows
        across = (width - 1) * self.stride_width + self.filter_width - columns
        at_row = np.arange(height)[:, None, None] * self.stride_height - max(down, 0) // 2 + place // self.filter_width
        at_column = np.arange(width)[:, None] * self.stride_width - max(across, 0) // 2 + place % self.filter_width
        inside = (place >= 0) & (at_row >= 0) & (at_row < rows) & (at_column >= 0) & (at_column < columns)
        item, _, _, channel = np.nonzero(inside)
        out[item, at_row[inside], at_column[inside], channel] = x[inside]
        return out
