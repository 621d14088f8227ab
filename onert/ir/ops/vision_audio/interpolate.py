"""Resizing along any axes by the rules of ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

import numpy as np
from attrs import evolve, frozen

from onert.ir import shape as shapes
from onert.ir.dtype import Array, DType
from onert.ir.op import Op, as_stored, require
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.shape import Dim
from onert.ir.symbolic.sizes import are_same
from onert.ir.types import CallTypes, TensorType


class Interpolation(Enum):
    """How values between elements are computed."""

    NEAREST = "nearest"
    LINEAR = "linear"
    CUBIC = "cubic"


class Coordinates(Enum):
    """How positions in the result map to positions in `x`, by ONNX's names."""

    HALF_PIXEL = "half_pixel"
    HALF_PIXEL_SYMMETRIC = "half_pixel_symmetric"
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    ALIGN_CORNERS = "align_corners"
    ASYMMETRIC = "asymmetric"
    CROP = "tf_crop_and_resize"
    TF_NEAREST = "tf_half_pixel_for_nn"


class Rounding(Enum):
    """How a position is rounded to the nearest element; the first two differ only for ties."""

    DOWN_AT_HALF = "round_prefer_floor"
    UP_AT_HALF = "round_prefer_ceil"
    FLOOR = "floor"
    CEIL = "ceil"
    OUTWARD = ""
    """Up along axes that shrink, down along others: ONNX Runtime's rule for versions without the attribute."""


@frozen
class Interpolate(Op):
    """Resizes `x`: each result element is interpolated from those around its position in `x`, axis by axis.

    - `x`: numbers (any element type with NEAREST)
    - `sizes`: the new size of each of `axes`, integers; if absent, sizes are `floor(size * scale)`
    - `factors`: the scales as an operand, float32, if not given by the attribute `scales`
    - `region`: the starts, then the ends, as an operand of floats, if not given by attributes

    `axes` are counted from the front; the others are unchanged. `coordinates` is how positions are mapped: CROP resizes
    the part from `starts` to `ends` (relative to the size of `x`), and positions outside of `x` have the value
    `extrapolation`. `antialias` widens the filter when a size shrinks. The parameter of CUBIC is `cubic`; elements
    outside of `x` are replaced by those at the border, or with `exclude_outside` get no weight.

    Source: ONNX Resize.
    """

    interpolation: Interpolation
    axes: tuple[int, ...]
    coordinates: Coordinates = Coordinates.HALF_PIXEL
    rounding: Rounding = Rounding.DOWN_AT_HALF
    scales: tuple[float, ...] | None = None
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    starts: tuple[float, ...] = ()
    ends: tuple[float, ...] = ()
    extrapolation: float = 0.0

    def infer(
        self,
        x: TensorType,
        sizes: TensorType | None = None,
        factors: TensorType | None = None,
        region: TensorType | None = None,
    ) -> TensorType:
        plain = self.interpolation is Interpolation.NEAREST or (x.dtype.is_numeric and not x.dtype.is_complex)
        require(plain, f"{self.interpolation.name} is not defined on elements of type {x.dtype.text}")
        in_order = tuple(sorted(set(self.axes))) == self.axes and all(0 <= a < x.rank for a in self.axes)
        require(in_order, f"axes are {list(self.axes)}, expected axes of rank {x.rank} in ascending order")
        fits = self.scales is None or len(self.scales) == len(self.axes)
        require(fits, f"there are {len(self.scales or ())} scales for {len(self.axes)} axes")
        given = len(self.starts) == len(self.ends) == len(self.axes)
        if region is not None:
            require(region.dtype.is_float, f"the region is {region}, expected floats")
            given = shapes.num_elements(region.shape) in (2 * len(self.axes), None)
        require(
            self.coordinates is not Coordinates.CROP or given,
            f"there are {len(self.starts)} starts and {len(self.ends)} ends for {len(self.axes)} axes",
        )
        if factors is not None and sizes is None:
            require(factors.dtype is DType.FLOAT32, f"the scales are {factors.dtype.text}, expected f32")
            count = shapes.num_elements(factors.shape)
            require(count in (len(self.axes), None), f"there are {count} scales for {len(self.axes)} axes")
            if factors.value is None:
                return x.result(tuple(None if i in self.axes else d for i, d in enumerate(x.shape)))
        lengths = self.scaled(factors)._lengths(x, sizes)
        out: list[Dim] = list(x.shape)
        for axis, length in zip(self.axes, lengths, strict=True):
            out[axis] = length
            require(x.shape[axis] != 0 or length == 0, f"axis {axis} of {x} is empty, there is nothing to resize")
        sv.checked_shape(tuple(d for d in out if d is not None), "the new shape")
        return x.result(tuple(out))

    def scaled(self, factors: TensorType | None) -> Interpolate:
        """The same operation with the scales from an operand as its attribute, if they are known."""
        if factors is None or factors.value is None:
            return self
        return evolve(self, scales=tuple(float(f) for f in factors.value.reshape(-1)))

    def _lengths(self, x: TensorType, sizes: TensorType | None) -> tuple[Dim, ...]:
        count = len(self.axes)
        if sizes is not None:
            found = sv.integers(sizes, "sizes")
            require(sv.length(sizes) in (count, None), f"sizes has {sv.length(sizes)} elements, expected {count}")
            require(
                found is None or all(n >= 0 for n in found),
                f"sizes are ({', '.join(map(str, found or ()))}), expected no negative number",
            )
            return sv.unknown(count) if found is None else found
        scales = self.scales or ()
        ok = len(scales) == count and all(math.isfinite(s) and s > 0 for s in scales)
        require(ok, f"scales are {list(scales)}, expected {count} numbers above 0")
        return tuple(
            None if (d := x.shape[axis]) is None else scaled_length(d, s)
            for axis, s in zip(self.axes, scales, strict=True)
        )

    def evaluate(
        self, x: Array, sizes: Array | None = None, factors: Array | None = None, region: Array | None = None
    ) -> Array:
        if region is not None:
            ends = region.reshape(2, -1).astype(np.float64).tolist()
            require(bool(np.isfinite(region).all()), f"the region is {region.tolist()}, expected finite numbers")
            return evolve(self, starts=tuple(ends[0]), ends=tuple(ends[1])).evaluate(x, sizes, factors)
        if factors is not None:
            return evolve(self, scales=tuple(float(f) for f in factors.reshape(-1))).evaluate(x, sizes)
        type_ = TensorType(DType.from_numpy(x.dtype), x.shape)
        lengths = sv.values(sizes) if sizes is not None else shapes.static(self._lengths(type_, None))
        for axis, length in zip(self.axes, lengths, strict=True):
            require(x.shape[axis] > 0 or length == 0, f"axis {axis} is empty, there is nothing to resize")
        if 0 in lengths:
            there = dict(zip(self.axes, lengths, strict=True))
            return np.zeros([there.get(axis, d) for axis, d in enumerate(x.shape)], x.dtype)
        each = list(enumerate(zip(self.axes, lengths, strict=True)))
        if self.interpolation is Interpolation.NEAREST and self.coordinates is not Coordinates.CROP:
            return _taken([(axis, self.nearest(at, x.shape[axis], length)) for at, (axis, length) in each], x)
        dtype = x.dtype
        wide = x.astype(np.float64)
        outside = np.zeros((), np.bool_)
        for at, (axis, length) in each:
            before = x.shape[axis]
            wide = self._along(wide, at, axis, before, length, dtype.kind in "iu")
            outside = outside | self.beyond(at, before, length).reshape(-1, *(1,) * (x.ndim - 1 - axis))
        wide = np.where(outside, self.extrapolation, wide)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            wide = np.clip(np.trunc(wide), limits.min, limits.max)
        return wide.astype(dtype)

    def _along(self, wide: Array, at: int, axis: int, before: int, after: int, integer: bool) -> Array:
        """Interpolation along one axis.

        Integers, `antialias` and CROP use a product with the whole weight matrix, as the decomposition does: results
        are rounded in the same way, and a NaN affects its whole line.
        """
        if self.stays(at, before, after):
            return wide
        if integer or self.antialias or self.coordinates is Coordinates.CROP:
            return np.moveaxis(np.tensordot(self.weights(at, before, after), wide, (1, axis)), 0, axis)
        return _sums(wide, axis, *self._lines(at, axis, wide.shape, after))

    evaluate_quantized = as_stored

    def sized(self, types: CallTypes) -> Callable[..., Array] | None:
        *_, factors, region = (*types.inputs, None, None, None)[:4]
        x, out = (shapes.static(t.shape) for t in (types.input(0), types.output))
        whole = self.coordinates is Coordinates.CROP or self.antialias or types.input(0).dtype.is_integer
        if region is not None or 0 in out or (factors is not None and factors.value is None):
            return None
        op = self.scaled(factors)
        each = [(at, axis, x[axis], out[axis]) for at, axis in enumerate(self.axes)]
        if sum(after for *_, after in each) > _MOST_KEPT:
            return None
        if self.interpolation is Interpolation.NEAREST and self.coordinates is not Coordinates.CROP:
            places = [(axis, op.nearest(at, before, after)) for at, axis, before, after in each]
            return partial(_taken, [(axis, at) for axis, at in places if not np.array_equal(at, np.arange(x[axis]))])
        if whole:
            return None
        there = [(at, axis, after) for at, axis, before, after in each if not op.stays(at, before, after)]
        return partial(_mixed, [(axis, *op._lines(at, axis, x, after)) for at, axis, after in there])

    def _lines(self, at: int, axis: int, x: tuple[int, ...], after: int) -> tuple[Array, Array]:
        """The taps and their weights along one axis, in the shapes in which they apply to x."""
        taps, shares = self.taps(at, x[axis], after)
        return taps.T.copy(), shares.T.reshape(-1, after, *(1,) * (len(x) - 1 - axis))

    def scale(self, at: int, before: int, after: int) -> float:
        """The factor by which an axis grows."""
        return after / before if self.scales is None else float(np.float32(self.scales[at]))

    def stays(self, at: int, before: int, after: int) -> bool:
        """Whether an axis is known to be unchanged; if sizes are symbolic, for all their values."""
        is_part = self.coordinates is Coordinates.CROP
        return not is_part and are_same(before, after) and (self.scales is None or self.scales[at] == 1)

    def places(self, at: int, before: int, after: int) -> Array:
        """The position in `x` of each element of the result along an axis.

        Computed in float32 with NEAREST, as in ONNX Runtime: this decides between two elements that are about as near.
        """
        dtype = np.float32 if self.interpolation is Interpolation.NEAREST else np.float64
        scale: Array = np.array(self.scale(at, before, after), dtype)
        index: Array = np.arange(after, dtype=dtype)
        length = after if self.scales is None else before * float(scale)
        half = dtype(0.5)
        match self.coordinates:
            case Coordinates.ALIGN_CORNERS:
                return np.zeros(after) if length == 1 else index * dtype(before - 1) / dtype(length - 1)
            case Coordinates.ASYMMETRIC:
                return index / scale
            case Coordinates.TF_NEAREST:
                return index if scale == 1 else (index + half) / scale  # as in ONNX Runtime
            case Coordinates.PYTORCH_HALF_PIXEL:
                return (index + half) / scale - half if length > 1 else np.zeros(after)
            case Coordinates.HALF_PIXEL_SYMMETRIC:
                middle = dtype(before / 2 * (1 - after / length))
                return middle + (index + half) / scale - half
            case Coordinates.CROP:
                start, end = self.starts[at], self.ends[at]
                if after == 1 or length == 1:
                    return np.full(after, 0.5 * (start + end) * (before - 1))
                return dtype(start * (before - 1)) + index * dtype((end - start) * (before - 1)) / dtype(length - 1)
            case _:
                return (index + half) / scale - half

    def nearest(self, at: int, before: int, after: int) -> Array:
        """The index in `x` of the nearest element, for each element of the result along an axis."""
        where = self.places(at, before, after).astype(np.float64)
        rounding = self.rounding
        if rounding is Rounding.OUTWARD:
            rounding = Rounding.CEIL if self.scale(at, before, after) < 1 else Rounding.FLOOR
        match rounding:
            case Rounding.FLOOR:
                whole = np.floor(where)
            case Rounding.CEIL:
                whole = np.ceil(where)
            case Rounding.UP_AT_HALF:
                whole = np.floor(where + 0.5)
            case _:
                whole = np.ceil(where - 0.5)
        out: Array = np.clip(whole, 0, before - 1).astype(np.int64)
        return out

    def weights(self, at: int, before: int, after: int) -> Array:
        """The weight of each element of `x` in each element of the result along an axis, [after, before]."""
        taps, shares = self.taps(at, before, after)
        out = np.zeros((after, before))
        rows = np.broadcast_to(np.arange(after)[:, None], taps.shape)
        np.add.at(out, (rows, taps), shares)
        return out

    def beyond(self, at: int, before: int, after: int) -> Array:
        """Whether each element of the result along an axis is outside of `x`."""
        if self.coordinates is not Coordinates.CROP:
            return np.zeros(after, np.bool_)
        where = self.places(at, before, after)
        out: Array = (where < 0) | (where > before - 1)
        return out

    def taps(self, at: int, before: int, after: int) -> tuple[Array, Array]:
        """The indices and weights of the elements of `x` that contribute to each result element, [after, taps]."""
        if self.interpolation is Interpolation.NEAREST:
            return self.nearest(at, before, after)[:, None], np.ones((after, 1))
        taps, shares = self._taps(self.places(at, before, after), self.scale(at, before, after))
        if self.exclude_outside:
            shares = np.where((taps < 0) | (taps >= before), 0, shares)
            shares = shares / shares.sum(axis=1, keepdims=True)
        return np.clip(taps, 0, before - 1), shares

    def _taps(self, where: Array, scale: float) -> tuple[Array, Array]:
        """The indices and weights of the elements around each position."""
        narrow = min(scale, 1.0) if self.antialias else 1.0
        reach = 1 if self.interpolation is Interpolation.LINEAR else 2
        radius = math.ceil(reach / narrow)
        first = np.floor(where).astype(np.int64)
        taps = first[:, None] + np.arange(1 - radius, radius + 1)
        distance = np.abs(taps - where[:, None]) * narrow
        shares = np.maximum(1 - distance, 0) if reach == 1 else keys_cubic(distance, self.cubic)
        return taps, shares / shares.sum(axis=1, keepdims=True) if narrow < 1 else shares


_MOST_KEPT = 4096
"""The longest lines whose tables are kept for later runs, all together."""


def _taken(places: Sequence[tuple[int, Array]], x: Array, *_: object) -> Array:
    """The elements of `x` at these places along each axis."""
    for axis, at in places:
        x = x.take(at, axis)
    return x if places else x.copy()


def _mixed(lines: Sequence[tuple[int, Array, Array]], x: Array, *_: object) -> Array:
    """Sums along each axis, rounded once."""
    wide = x.astype(np.float64)
    for axis, taps, shares in lines:
        wide = _sums(wide, axis, taps, shares)
    return wide.astype(x.dtype)


def _sums(wide: Array, axis: int, taps: Array, shares: Array) -> Array:
    """Along one axis, the sum of the elements at each tap times their shares."""
    first, *others = (wide.take(places, axis) * parts for places, parts in zip(taps, shares, strict=True))
    out: Array = sum(others, first)
    return out


def keys_cubic(t: Array, a: float) -> Array:
    """Keys' cubic convolution kernel at distances `t`."""
    inner = ((a + 2) * t - (a + 3)) * t * t + 1
    outer = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    out: Array = np.where(t <= 1, inner, np.where(t < 2, outer, 0.0))
    return out


def scaled_length(length: int, scale: float) -> int:
    """`length * scale` in float32, rounded down: 20 * 2.3 is 46, although 2.3 as a float32 is slightly less."""
    exact = float(np.float32(scale))
    if exact.is_integer():
        return length * int(exact)
    product = length * exact
    apart = product * (2**29 + 1)  # Veltkamp's splitting rounds to the 24 bits of a float32, also for symbolic numbers
    return math.floor(apart - (apart - product))
