"""Interpolation between the points of a grid: images sampled at given points, and deformable convolutions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, require
from onert.ir.types import CallTypes, TensorType

from .interpolate import Interpolation, keys_cubic


class Outside(Enum):
    """The values outside of a grid."""

    ZEROS = "zeros"
    BORDER = "the value at the border"
    REFLECTION = "the inside, mirrored at the border"


Taps = list[tuple[Array, Array]]
"""Indices along one axis, and their weights."""


def _taps(at: Array, sampling: Interpolation) -> Taps:
    """The indices that contribute to the value at `at` (float64), and their weights."""
    if sampling is Interpolation.NEAREST:
        return [(np.rint(at).astype(np.int64), np.ones_like(at))]
    low = np.floor(at)
    first, t = low.astype(np.int64), at - low
    if sampling is Interpolation.LINEAR:
        return [(first, 1 - t), (first + 1, t)]
    return [(first + k, keys_cubic(np.abs(t - k), -0.75)) for k in (-1, 0, 1, 2)]


def _inside(places: Array, size: int, outside: Outside, *, corners: bool) -> tuple[Array, Array]:
    """Indices mapped into the grid, and which of them contribute."""
    if outside is Outside.ZEROS:
        within = (places >= 0) & (places < size)
    else:
        within = np.ones(places.shape, np.bool_)
        if outside is Outside.REFLECTION:
            period = 2 * (size - 1) if corners else 2 * size
            turned = np.mod(places, max(period, 1))
            places = np.where(turned < size, turned, period - turned - (0 if corners else 1))
    return np.clip(places, 0, size - 1), within


def _combinations(taps: list[Taps]) -> Iterator[tuple[list[Array], Array]]:
    """For each choice of one tap along every axis, the indices and their combined weight."""
    for chosen in itertools.product(*taps):
        weight = chosen[0][1]
        for _, other in chosen[1:]:
            weight = weight * other
        yield [places for places, _ in chosen], weight


def sample(x: Array, points: Array, sampling: Interpolation, outside: Outside, *, corners: bool = False) -> Array:
    """`x` [batch, channels, *sizes] at `points` [batch, count, axes], in float64 as [batch, channels, count]."""
    sizes = x.shape[2:]
    out = np.zeros((*x.shape[:2], points.shape[1]), np.float64)
    if not out.size or not math.prod(sizes):
        return out
    finite = np.where(np.isfinite(points), points, -1e9).astype(np.float64)
    bounded = np.clip(finite, -1e9, 1e9)
    taps = [_taps(bounded[..., axis], sampling) for axis in range(len(sizes))]
    batch = np.arange(len(x))[:, None]
    for places, weight in _combinations(taps):
        counts = weight
        inside = []
        for place, size in zip(places, sizes, strict=True):
            kept, within = _inside(place, size, outside, corners=corners)
            counts = np.where(within, counts, 0)
            inside.append(kept)
        picked: tuple[Any, ...] = (batch, slice(None), *inside)
        found = x[picked].astype(np.float64)  # [batch, count, channels]
        out += np.moveaxis(found * counts[..., None], -1, 1)
    return out


@frozen
class GridSample(Op):
    """Samples images with any number of spatial axes at the points of a grid.

    - `x`: numbers [batch, channels, *sizes]
    - `grid`: floats [batch, *places, axes]: one point per place, coordinates in reverse order of the axes, from -1 at
      one end to 1 at the other; with `corners` the ends are the outermost elements' centres, else their outer borders

    Along each axis a value is the nearest element (ties to even), or that of two neighbours, linearly, or of four, by a
    cubic with a = -0.75.

    Result: [batch, channels, *places] of x's type. Source: ONNX GridSample.
    """

    sampling: Interpolation = Interpolation.LINEAR
    outside: Outside = Outside.ZEROS
    corners: bool = False

    def infer(self, x: TensorType, grid: TensorType) -> TensorType:
        require(x.rank >= 3, f"x is {x}, expected at least 3 dimensions")
        require(x.dtype.is_numeric and not x.dtype.is_complex, f"x is {x}, expected numbers")
        require(grid.dtype.is_float and grid.rank == x.rank, f"the grid is {grid}, expected floats of rank {x.rank}")
        require(grid.shape[-1] in (x.rank - 2, None), f"the grid is {grid}, expected points of {x.rank - 2} axes")
        require(shapes.compatible(x.shape[:1], grid.shape[:1]), f"x is {x}, the grid {grid}, expected one batch")
        return x.result((*x.shape[:2], *grid.shape[1:-1]))

    def rounds(self, types: CallTypes) -> int:
        each = {Interpolation.NEAREST: 1, Interpolation.LINEAR: 2, Interpolation.CUBIC: 4}[self.sampling]
        return int(each ** (types.input(0).rank - 2))

    def evaluate(self, x: Array, grid: Array) -> Array:
        axes = x.ndim - 2
        points = grid.reshape(len(x), math.prod(grid.shape[1:-1]), axes)[..., ::-1].astype(np.float64)
        sizes = np.array(x.shape[2:], np.float64)
        places = (points + 1) / 2 * (sizes - 1) if self.corners else ((points + 1) * sizes - 1) / 2
        found = sample(x, places, self.sampling, self.outside, corners=self.corners)
        return found.astype(x.dtype).reshape(*x.shape[:2], *grid.shape[1:-1])


@frozen
class DeformConv(Op):
    """Deformable convolution: each tap is moved by its own offset, and optionally weighted.

    - `x`: floats [batch, channels, *sizes]
    - `weight`: [outputs, channels / groups, *kernel]
    - `offset`: [batch, offset_groups * taps * axes, *results]: the offset of each tap along each axis
    - `bias`: [outputs], optional
    - `mask`: [batch, offset_groups * taps, *results]: the weight of each tap, optional

    `pads` are the padding before each axis, followed by the padding after each axis. Values between elements are
    interpolated linearly; outside of `x` they are 0. Source: ONNX DeformConv.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    groups: int = 1
    offset_groups: int = 1

    def infer(
        self,
        x: TensorType,
        weight: TensorType,
        offset: TensorType,
        bias: TensorType | None = None,
        mask: TensorType | None = None,
    ) -> TensorType:
        axes = x.rank - 2
        for operand in (x, weight, offset, bias, mask):
            require(operand is None or operand.dtype is x.dtype, f"an operand is {operand}, expected {x.dtype.text}")
        require(x.dtype.is_float and axes >= 1, f"x is {x}, expected floats of at least 3 dimensions")
        require(weight.rank == x.rank and offset.rank == x.rank, f"weights are {weight}, offsets {offset}")
        fits = len(self.strides) == len(self.dilations) == axes and len(self.pads) == 2 * axes
        require(fits, f"strides {self.strides}, dilations {self.dilations} and pads {self.pads} are not of {axes} axes")
        positive = min(self.strides) >= 1 and min(self.dilations) >= 1 and min(self.groups, self.offset_groups) >= 1
        require(positive and min(self.pads) >= 0, "a stride, dilation, group or pad is too small")
        for dims in (x.shape[1:2], weight.shape):
            require(shapes.is_static(dims), f"x is {x}, weights {weight}, expected known channels and weights")
        outputs, each, *kernel = (d or 0 for d in weight.shape)
        channels = x.shape[1] or 0
        even = channels == each * self.groups and outputs % self.groups == 0 and channels % self.offset_groups == 0
        require(even, f"{self.groups} and {self.offset_groups} groups do not fit x {x} and weights {weight}")
        spatial = tuple(self._length(x.shape[2 + a], kernel[a], a) for a in range(axes))
        taps = math.prod(kernel)
        moved = (x.shape[0], self.offset_groups * taps * axes, *spatial)
        require(shapes.compatible(offset.shape, moved), f"offsets are {offset}, expected {shapes.text(moved)}")
        weighted = (x.shape[0], self.offset_groups * taps, *spatial)
        require(
            mask is None or shapes.compatible(mask.shape, weighted), f"mask is {mask}, expected {shapes.text(weighted)}"
        )
        require(bias is None or shapes.compatible(bias.shape, (outputs,)), f"bias is {bias}, expected [{outputs}]")
        return x.result((x.shape[0], outputs, *spatial))

    def _length(self, size: int | None, kernel: int, axis: int) -> int | None:
        if size is None:
            return None
        padded = size + self.pads[axis] + self.pads[axis + len(self.strides)]
        span = (kernel - 1) * self.dilations[axis] + 1
        require(padded >= span, f"the padded size {padded} is smaller than the {span} elements that taps span")
        return (padded - span) // self.strides[axis] + 1

    def flops(self, types: CallTypes) -> int:
        taps = shapes.num_elements(types.input(1).shape[1:]) or 0
        return 2 * taps * (shapes.num_elements(types.output.shape) or 0)

    def rounds(self, types: CallTypes) -> int:
        taps = shapes.num_elements(types.input(1).shape[2:]) or 0
        return int(taps * self.offset_groups * 2 ** (types.input(0).rank - 2))

    def evaluate(
        self, x: Array, weight: Array, offset: Array, bias: Array | None = None, mask: Array | None = None
    ) -> Array:
        axes, kernel, spatial = x.ndim - 2, weight.shape[2:], offset.shape[2:]
        taps, count = math.prod(kernel), math.prod(spatial)
        per = x.shape[1] // self.offset_groups
        moved = offset.reshape(len(x), self.offset_groups, taps, axes, count).astype(np.float64)
        first = np.stack(
            [
                grid.reshape(-1) * stride - pad
                for grid, stride, pad in zip(np.indices(spatial), self.strides, self.pads[:axes], strict=True)
            ],
            axis=-1,
        )
        columns = np.zeros((len(x), x.shape[1], taps, count))
        for group in range(self.offset_groups):
            part = slice(group * per, (group + 1) * per)
            for tap, place in enumerate(np.ndindex(*kernel)):
                shift = np.array(place) * np.array(self.dilations)
                points = first + shift + np.moveaxis(moved[:, group, tap], 1, -1)
                found = sample(x[:, part], points, Interpolation.LINEAR, Outside.ZEROS)
                if mask is not None:
                    weights = mask.reshape(len(x), self.offset_groups, taps, count)[:, group, tap]
                    found = found * weights[:, None].astype(np.float64)
                columns[:, part, tap] = found
        terms = x.shape[1] // self.groups * taps
        grouped = columns.reshape(len(x), self.groups, terms, count)
        filters = weight.reshape(self.groups, weight.shape[0] // self.groups, terms).astype(np.float64)
        out: Array = np.matmul(filters[None], grouped).reshape(len(x), weight.shape[0], *spatial)
        if bias is not None:
            out = out + bias.reshape(-1, *(1,) * axes)
        return out.astype(x.dtype)


@frozen
class RoiAlign(Op):
    """Extracts regions of images in a fixed size; each cell is computed from evenly spaced samples.

    - `x`: floats [batch, channels, height, width]
    - `regions`: of x's type, [count, 4]: left, top, right, bottom, multiplied by `scale` to get pixels
    - `batches`: integers [count]: the image of each region

    There are `samples` per cell and axis, or if 0 one per pixel of a cell's length, rounded up. With `half_pixel` pixel
    centres are at half-integers; otherwise regions have a size of at least 1. A cell is the mean of its samples, or
    with `largest` the maximum of the products of a pixel and its weight in a sample. Result: [count, channels, rows,
    columns]. Source: ONNX RoiAlign.
    """

    rows: int = 1
    columns: int = 1
    samples: int = 0
    scale: float = 1.0
    half_pixel: bool = True
    largest: bool = False

    def infer(self, x: TensorType, regions: TensorType, batches: TensorType) -> TensorType:
        require(x.dtype.is_float and x.rank == 4, f"x is {x}, expected floats of 4 dimensions")
        require(0 not in x.shape[2:], f"x is {x}, expected pictures with pixels")
        require(regions.dtype is x.dtype and regions.rank == 2, f"the regions are {regions}, expected [count, 4]")
        require(regions.shape[1] in (4, None), f"the regions are {regions}, expected [count, 4]")
        require(batches.dtype in (DType.INT32, DType.INT64), f"the batches are {batches}, expected integers")
        fits = batches.rank == 1 and shapes.compatible(batches.shape, regions.shape[:1])
        require(fits, f"the batches are {batches}, the regions {regions}")
        sizes = 1 <= self.rows <= 1 << 16 and 1 <= self.columns <= 1 << 16 and 0 <= self.samples <= 1 << 10
        require(sizes, f"{self.rows} x {self.columns} cells of {self.samples} samples, expected at least 1")
        return x.result((regions.shape[0], x.shape[1], self.rows, self.columns))

    def rounds(self, types: CallTypes) -> int:
        return 4 * (types.input(1).shape[0] or 0)

    def evaluate(self, x: Array, regions: Array, batches: Array) -> Array:
        require(bool(((batches >= 0) & (batches < len(x))).all()), f"a region refers to none of the {len(x)} pictures")
        out = np.zeros((len(regions), x.shape[1], self.rows, self.columns), x.dtype)
        for at, (region, batch) in enumerate(zip(regions.astype(np.float64), batches, strict=True)):
            out[at] = self._cells(x[int(batch)].astype(np.float64), region)
        return out

    def _cells(self, picture: Array, region: Array) -> Array:
        require(bool(np.isfinite(region).all()), "a region's corner is not finite")
        offset = 0.5 if self.half_pixel else 0.0
        left, top, right, bottom = region * self.scale - offset
        sides = (bottom - top, right - left)
        if not self.half_pixel:
            sides = max(sides[0], 1.0), max(sides[1], 1.0)
        cells = self.rows, self.columns
        counts = [
            max(self.samples if self.samples else math.ceil(side / n), 0) for side, n in zip(sides, cells, strict=True)
        ]
        require(max(counts) <= 1 << 12, f"a region needs {max(counts)} samples per cell, expected at most {1 << 12}")
        axes = []
        for start, side, n, count, size in zip((top, left), sides, cells, counts, picture.shape[1:], strict=True):
            within = (np.arange(count) + 0.5) / max(count, 1)
            axes.append(_beside((start + (np.arange(n)[:, None] + within) * side / n).reshape(-1), size))
        products = []
        for (y, vertical), (z, horizontal) in itertools.product(*axes):
            products.append(picture[:, y][:, :, z] * (vertical[:, None] * horizontal))
        shape = (len(picture), self.rows, counts[0], self.columns, counts[1])
        if not all(counts):
            return np.zeros((len(picture), *cells))
        if self.largest:
            largest: Array = np.maximum.reduce(products).reshape(shape).max(axis=(2, 4))
            return largest
        total: Array = np.sum(products, axis=0).reshape(shape).mean(axis=(2, 4))
        return total


def _beside(at: Array, size: int) -> Taps:
    """The two pixels next to each position, with their weights; 0 for positions more than one pixel outside."""
    kept = (at >= -1) & (at <= size)
    inside = np.clip(at, 0, max(size - 1, 0))
    low = np.floor(inside).astype(np.int64)
    share = inside - low
    return [(low, np.where(kept, 1 - share, 0)), (np.minimum(low + 1, size - 1), np.where(kept, share, 0))]
