"""Blocks of pictures as matrix columns, and the inverse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.types import CallTypes, TensorType


@frozen
class FromColumns(Op):
    """Assembles a picture from blocks given as columns; overlapping elements are summed (col2im).

    - `x`: numbers [batch, channels * block, count]: one column per block
    - `sizes`: integers, the picture's spatial sizes
    - `block`: integers, the spatial sizes of a block

    `pads` are the padding before each axis, followed by the padding after each axis. Result: [batch, channels, *sizes].
    Source: ONNX Col2Im.
    """

    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    pads: tuple[int, ...] = ()

    def infer(self, x: TensorType, sizes: TensorType, block: TensorType) -> TensorType:
        require(x.dtype.is_numeric and x.rank == 3, f"x is {x}, expected numbers of 3 dimensions")
        picture, kernel = sv.integers(sizes, "sizes"), sv.integers(block, "block")
        axes = sv.length(sizes)
        require(axes is not None, "sizes has an unknown length, expected one element for each axis of the picture")
        axes = axes or 0
        require(
            sv.length(block) in (axes, None), f"the block is {block}, the sizes {sizes}, expected one axis for each"
        )
        for values, count, least in ((self.strides, axes, 1), (self.dilations, axes, 1), (self.pads, 2 * axes, 0)):
            fits = not values or (len(values) == count and min(values) >= least)
            require(
                fits, f"strides {self.strides}, dilations {self.dilations} or pads {self.pads} do not fit {axes} axes"
            )
        channels = None
        if kernel is not None:
            require(min(kernel, default=1) >= 1, f"the block is {list(kernel)}, expected at least 1")
            taps = math.prod(kernel)
            require(
                x.shape[1] is None or (x.shape[1] or 0) % taps == 0, f"x is {x}, expected a multiple of {taps} rows"
            )
            channels = None if x.shape[1] is None else (x.shape[1] or 0) // taps
        if picture is None:
            return x.result((x.shape[0], channels, *sv.unknown(axes)))
        sv.checked_shape((*picture, *(d for d in x.shape[:1] if d), channels or 1), "the picture")
        if kernel is not None:
            count = math.prod(self.counts(picture, kernel))
            require(x.shape[2] in (count, None), f"x is {x}, expected {count} blocks")
        return x.result((x.shape[0], channels, *picture))

    def each(self, axes: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The strides, dilations and pads, with the defaults for those that are absent."""
        return self.strides or (1,) * axes, self.dilations or (1,) * axes, self.pads or (0,) * 2 * axes

    def counts(self, picture: tuple[int, ...], kernel: tuple[int, ...]) -> list[int]:
        """The number of blocks along each axis."""
        strides, dilations, pads = self.each(len(picture))
        found = []
        for axis, (size, span) in enumerate(zip(picture, kernel, strict=True)):
            room = size + pads[axis] + pads[axis + len(picture)] - (dilations[axis] * (span - 1) + 1)
            require(room >= 0, f"a block of {span} elements does not fit into {size}")
            found.append(room // strides[axis] + 1)
        return found

    def places(self, picture: tuple[int, ...], kernel: tuple[int, ...]) -> Array:
        """The flat index in the picture of each element of each block: int64 [block, count], -1 for padding."""
        strides, dilations, pads = self.each(len(picture))
        taps, blocks = (np.indices(sizes).reshape(len(picture), -1) for sizes in (kernel, self.counts(picture, kernel)))
        at = taps[:, :, None] * np.reshape(dilations, (-1, 1, 1)) + blocks[:, None] * np.reshape(strides, (-1, 1, 1))
        at = at - np.reshape(pads[: len(picture)], (-1, 1, 1))
        sizes = np.reshape(picture, (-1, 1, 1))
        number = np.ravel_multi_index(tuple(at), picture, mode="clip")
        return np.where(((at >= 0) & (at < sizes)).all(0), number, -1)

    def rounds(self, types: CallTypes) -> int:
        block = types.input(2).value
        return int(block.prod()) if block is not None else shapes.num_elements(types.input(0).shape) or 0

    def evaluate(self, x: Array, sizes: Array, block: Array) -> Array:
        picture, kernel = sv.values(sizes), sv.values(block)
        axes = len(picture)
        strides, dilations, pads = self.each(axes)
        counts = self.counts(picture, kernel)
        channels = x.shape[1] // math.prod(kernel)
        columns = x.reshape(len(x), channels, *kernel, *counts)
        wide = [size + pads[a] + pads[a + axes] for a, size in enumerate(picture)]
        out = np.zeros((len(x), channels, *wide), x.dtype)
        for place in np.ndindex(*kernel):
            at: list[Any] = [slice(None), slice(None)]
            for axis, tap in enumerate(place):
                first = tap * dilations[axis]
                at.append(slice(first, first + (counts[axis] - 1) * strides[axis] + 1, strides[axis]))
            out[tuple(at)] += columns[(slice(None), slice(None), *place)]
        inside = tuple(slice(pads[a], pads[a] + size) for a, size in enumerate(picture))
        return np.ascontiguousarray(out[(slice(None), slice(None), *inside)])


@frozen
class PooledPlaces(Op):
    """The flat index, in the whole tensor, of the largest element of each pooling window; int64.

    - `x`: numbers [batch, channels, *sizes]

    `pads` are the padding before each axis, followed by the padding after each axis; padding is never the maximum.
    With `columns_first` indices within a picture are column-major. The first of equal elements is selected.

    Source: the output Indices of ONNX MaxPool.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    columns_first: bool = False

    def infer(self, x: TensorType) -> TensorType:
        axes = x.rank - 2
        numbers = x.dtype.is_numeric and not x.dtype.is_complex
        require(numbers and axes >= 1, f"x is {x}, expected numbers of at least 3 dimensions")
        fits = len(self.kernel) == len(self.strides) == len(self.dilations) == axes and len(self.pads) == 2 * axes
        require(fits, f"the window {self.kernel} does not fit {axes} axes")
        least = min(*self.kernel, *self.strides, *self.dilations)
        require(least >= 1 and min(self.pads) >= 0, f"a size, stride or dilation is {least}, expected at least 1")
        dims = tuple(self._count(d, axis) for axis, d in enumerate(x.shape[2:]))
        return TensorType(DType.INT64, (*x.shape[:2], *dims))

    def _count(self, size: int | None, axis: int) -> int | None:
        if size is None:
            return None
        before, after = self.pads[axis], self.pads[axis + len(self.kernel)]
        room = size + before + after - (self.dilations[axis] * (self.kernel[axis] - 1) + 1)
        require(room >= 0, f"a window of {self.kernel[axis]} elements does not fit {size}")
        return room // self.strides[axis] + 1

    def rounds(self, types: CallTypes) -> int:
        return math.prod(self.kernel)

    def taps(self, sizes: tuple[int, ...]) -> Iterator[tuple[Array, Array]]:
        """For each window element its flat index in the picture, and whether it is inside, each for all windows."""
        counts = [self._count(size, axis) or 0 for axis, size in enumerate(sizes)]
        places = np.indices(counts).reshape(len(sizes), -1)
        for tap in np.ndindex(*self.kernel):
            moved = [p * self.strides[a] + tap[a] * self.dilations[a] - self.pads[a] for a, p in enumerate(places)]
            inside = np.all([(m >= 0) & (m < s) for m, s in zip(moved, sizes, strict=True)], axis=0)
            yield np.ravel_multi_index(tuple(moved), sizes, mode="clip"), inside

    def numbered(self, best: Array, sizes: tuple[int, ...]) -> Array:
        """Flat indices in a picture, converted to column-major order with `columns_first`."""
        if not self.columns_first:
            return best
        return np.ravel_multi_index(np.unravel_index(best, sizes), sizes, order="F")

    def evaluate(self, x: Array) -> Array:
        sizes = x.shape[2:]
        counts = [self._count(size, axis) or 0 for axis, size in enumerate(sizes)]
        flat = x.reshape(math.prod(x.shape[:2]), -1)
        best = np.full((len(flat), math.prod(counts)), -1, np.int64)
        for number, inside in self.taps(sizes):
            rows = np.arange(len(flat))[:, None]
            larger = flat[:, number] > flat[rows, np.maximum(best, 0)]
            best = np.where(inside & ((best < 0) | larger), number, best)
        best = self.numbered(np.maximum(best, 0), sizes)
        whole: Array = best + (np.arange(len(flat)) * math.prod(sizes))[:, None]
        return whole.reshape(*x.shape[:2], *counts)
