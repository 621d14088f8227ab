"""How windows slide over tensors in StableHLO's convolutions and reductions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from onert.ir.dtype import Array
from onert.ir.shape import Dim
from onert.ir.value import Value

from .shapes_and_elements import pad, padded_size, require_numbers


@frozen
class Sliding(Value):
    """How a window slides along each of several dimensions: its `strides`, padding `low` and `high` (negative padding
    crops), and the distances of the tensor's elements and of the window's (`dilations`, `window_dilations`)."""

    strides: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    dilations: tuple[int, ...]
    window_dilations: tuple[int, ...]

    def after(self, count: int) -> Sliding:
        """The same behind `count` more dimensions, in which each window is one element."""
        one, none = (1,) * count, (0,) * count
        return Sliding(
            one + self.strides, none + self.low, none + self.high, one + self.dilations, one + self.window_dilations
        )

    def check(self, rank: int, dilations: str, window_dilations: str) -> None:
        """Raises RuleError unless there are valid numbers for `rank` dimensions."""
        require_numbers(self.strides, rank, "window_strides", 1)
        require_numbers(self.dilations, rank, dilations, 1)
        require_numbers(self.window_dilations, rank, window_dilations, 1)
        require_numbers(self.low, rank, "padding")
        require_numbers(self.high, rank, "padding")

    def padded(self, axis: int, size: Dim) -> Dim:
        """The size of a dimension with the padding at its edges and between its elements."""
        return padded_size(size, self.low[axis], self.high[axis], self.dilations[axis] - 1)

    def places(self, axis: int, size: Dim, window: Dim) -> Dim:
        """How many places a window has along a dimension."""
        wide, extent = self.padded(axis, size), padded_size(window, 0, 0, self.window_dilations[axis] - 1)
        if wide is None or extent is None:
            return None
        return 0 if extent > wide else (wide - extent) // self.strides[axis] + 1

    def windows(self, x: Array, initial: Array, sizes: Sequence[int]) -> Array:
        """The elements of the window at each place [*places, *sizes], of which there is one; padding is `initial`."""
        wide = pad(x, initial, self.low, self.high, [d - 1 for d in self.dilations])
        extents = [(n - 1) * d + 1 for n, d in zip(sizes, self.window_dilations, strict=True)]
        view = np.lib.stride_tricks.sliding_window_view(wide, extents)
        return view[tuple(slice(None, None, step) for step in (*self.strides, *self.window_dilations))]
