"""Two-dimensional pooling."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import reduce

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array, DType
from onert.ir.flops import windows
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.plane_window import require_strides
from onert.ir.ops.arithmetic.window import Margins, Padding, Window, output_dim, require_padding, require_step
from onert.ir.symbolic.trace import maximum, minimum
from onert.ir.types import CallTypes, TensorType


class Pooling(Enum):
    """How the elements of a window are combined; SAME padding is never included."""

    AVERAGE = "average"
    MAX = "max"
    L2 = "l2"


_STORED = (DType.INT8, DType.UINT8, DType.INT16)


@frozen
class Pool2D(Op):
    """Two-dimensional pooling: the average, maximum or quadratic mean of each window of a channel.

    Operand: `x` [batch, height, width, channels]. Result: [batch, output height, output width, channels]. Elements
    outside of `x` are excluded: an average is over the elements inside, unless `counts_margins` is set, which makes
    explicit `padding` count as zeros in averages. Explicit padding must be smaller than the window.

    Element types: floats, and except for L2 int8, uint8 and int16, whose stored integers are averaged (halves away from
    zero) or compared as they are: the result should have the quantisation of `x`.

    Source: TFLite AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D, kernels/pooling.cc and internal/reference/pooling.h.
    """

    kind: Pooling
    filter_height: int
    filter_width: int
    padding: Padding | Margins = Padding.VALID
    stride_height: int = 1
    stride_width: int = 1
    activation: Activation = Activation.NONE
    counts_margins: bool = False

    def infer(self, x: TensorType) -> TensorType:
        require_strides(self)
        require_step("filter_height", self.filter_height)
        require_step("filter_width", self.filter_width)
        require_padding(self.padding, 2, (self.filter_height, self.filter_width))
        explicit = isinstance(self.padding, Margins)
        require(explicit or not self.counts_margins, "counts_margins is set, expected explicit padding with it")
        require(x.rank == 4, f"input is {x}, expected 4 dimensions")
        allowed = x.dtype.is_float or (x.dtype in _STORED and self.kind is not Pooling.L2)
        require(
            allowed,
            f"input is {x.dtype.text}, expected a float" + ("" if self.kind is Pooling.L2 else ", i8, u8 or i16"),
        )
        height = output_dim(x.shape[1], self.filter_height, self.stride_height, 1, self.padding.along(0))
        width = output_dim(x.shape[2], self.filter_width, self.stride_width, 1, self.padding.along(1))
        return x.result((x.shape[0], height, width, x.shape[3]))

    def flops(self, types: CallTypes) -> int:
        return windows(types, self.filter_height * self.filter_width)

    def rounds(self, types: CallTypes) -> int:
        return self.filter_height + self.filter_width

    def evaluate(self, x: Array) -> Array:
        if x.dtype.kind in "iu":
            return self.activation.apply(self._stored(x))
        if self.kind is Pooling.MAX:
            return self.activation.apply(self._slide(x, np.maximum, -np.inf))
        if self.kind is Pooling.AVERAGE:
            return self.activation.apply(self._slide(x, np.add, 0) / self._counts(x).astype(x.dtype))
        squares = self._slide(x * x, np.add, 0)
        return self.activation.apply(np.sqrt(squares / self._counts(x).astype(x.dtype)))

    def evaluate_quantized(self, types: CallTypes, x: Array) -> Array:
        if types.output.quantization is None:
            return self.evaluate(x)
        out: Array = np.clip(self._stored(x), *self.activation.bounds(types.output)).astype(x.dtype)
        return out

    def _stored(self, x: Array) -> Array:
        if self.kind is Pooling.MAX:
            return self._slide(x, np.maximum, np.iinfo(x.dtype).min)
        sums = self._slide(x.astype(np.int64), np.add, 0)
        counts = self._counts(x)
        magnitude = (np.abs(sums) + counts // 2) // np.maximum(counts, 1)
        out: Array = np.where(sums < 0, -magnitude, magnitude).astype(x.dtype)
        return out

    def windows(self) -> tuple[Window, Window]:
        """The windows along height and width."""
        return (
            Window(self.filter_height, self.stride_height, 1, self.padding.along(0)),
            Window(self.filter_width, self.stride_width, 1, self.padding.along(1)),
        )

    def _slide(self, x: Array, combine: Callable[..., Array], start: float) -> Array:
        """Combine the elements of each window, along the width and then along the height."""
        rows, columns = self.windows()
        wide = np.full((*x.shape[:2], columns.outputs(x.shape[2]), x.shape[3]), start, x.dtype)
        for tap in columns.taps(x.shape[2]):
            part = wide[:, :, tap.target]
            combine(part, x[:, :, tap.source], out=part)
        out = np.full((x.shape[0], rows.outputs(x.shape[1]), *wide.shape[2:]), start, x.dtype)
        for tap in rows.taps(x.shape[1]):
            part = out[:, tap.target]
            combine(part, wide[:, tap.source], out=part)
        return out

    def _counts(self, x: Array) -> Array:
        """The number of elements counted in each window: [output height, output width, 1]."""
        down, across = self.counted(x.shape[1], x.shape[2])
        return (down[:, None] * across)[:, :, None]

    def counted(self, height: int, width: int) -> tuple[Array, Array]:
        """The numbers of rows and of columns that are counted in the window of each output."""
        found = zip(self.windows(), (height, width), strict=True)
        down, across = (self._met(window, inputs) for window, inputs in found)
        return down, across

    def least_counted(self, height: int, width: int) -> int:
        """The minimum of `counted`, at the first or last output: windows in between extend beyond the edge less."""
        found = zip(self.windows(), (height, width), strict=True)
        ends = [(window, n, at) for window, n in found for at in (0, window.outputs(n) - 1)]
        return reduce(
            minimum, [self._met_at(window, n, at * window.stride - window.before(n)) for window, n, at in ends]
        )

    def counted_first(self, height: int, width: int) -> tuple[int, int]:
        """The first elements of both results of `counted`."""
        rows, columns = self.windows()
        return self._met_at(rows, height, -rows.before(height)), self._met_at(columns, width, -columns.before(width))

    def _met_at(self, window: Window, inputs: int, start: int) -> int:
        if isinstance(window.padding, Margins) and self.counts_margins:
            return window.size
        met: int = minimum(start + window.size, inputs) - maximum(start, 0)
        return met

    def _met(self, window: Window, inputs: int) -> Array:
        starts = np.arange(window.outputs(inputs), dtype=np.int64) * window.stride - window.before(inputs)
        if self.counts_margins and isinstance(window.padding, Margins):
            return np.full_like(starts, window.size)
        return np.minimum(starts + window.size, inputs) - np.maximum(starts, 0)
