"""Resizing as image resizes, or as gathers or products along each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from attrs import evolve, frozen

from onert.compiler.legalize.decomposition import Decomposition, moves
from onert.compiler.legalize.draft import Draft
from onert.ir import Array, CallTypes, DType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor
from onert.ir.shape import static
from onert.ir.symbolic.sizes import are_same
from onert.ir.symbolic.trace import decided, hint, is_symbolic
from onert.ir.value import Value

_DENSE = 64
"""Up to this many elements along an axis, a product with all weights costs less than gathering the non-zero ones."""
_CLOSE = 1e-6
"""Weights with at most this difference are considered equal, given the resolution of float32."""
_IN_DOUBLE = frozenset((DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.UINT32, DType.FLOAT64))
"""Types that are computed in float64, which represents every element."""
_MODES = tuple(product((False, True), (False, True)))
_STEADY = (Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL)
"""Coordinate rules that depend on the number of elements only through the scale."""


def _why_not(op: Interpolate, types: CallTypes) -> str | None:
    if any(t is not None and t.value is None for t in types.inputs[1:]):
        return "its sizes are not known before the run"
    x = types.input(0)
    if op.interpolation is Interpolation.NEAREST and op.coordinates is not Coordinates.CROP:
        return moves(op, types)
    if x.quantization is not None or types.output.quantization is not None:
        return "its elements are quantised"
    return None if x.dtype is DType.FLOAT32 or x.dtype in _IN_DOUBLE else f"{x.dtype.text} is computed in another type"


def _sized(op: Interpolate, types: CallTypes) -> list[tuple[int, int, int, int]]:
    """For each axis: its index among the operation's axes, the axis, its length before and after."""
    before, after = static(types.input(0).shape), static(types.output.shape)
    return [(at, axis, before[axis], after[axis]) for at, axis in enumerate(op.axes)]


def _resolved(op: Interpolate, types: CallTypes) -> Interpolate:
    """The operation with the scales and the region taken from its operands."""
    _, _, factors, region = (*types.inputs, None, None, None)[:4]
    if region is not None and region.value is not None:
        starts, ends = region.value.reshape(2, -1).astype(np.float64).tolist()
        op = evolve(op, starts=tuple(starts), ends=tuple(ends))
    return op.scaled(factors)


def _interpolated(d: Draft, op: Interpolate, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """ResizeBilinear(x) if its rule is the same; otherwise a Gather or a product for each axis

    A Select fills in the positions outside the cropped region.
    """
    op, x, dtype = _resolved(op, types), operands[0], types.input(0).dtype
    axes = [(at, axis, int(before), int(after)) for at, axis, before, after in _sized(op, types)]  # for these lengths
    if op.interpolation is Interpolation.NEAREST:
        places = {axis: op.nearest(at, before, after) for at, axis, before, after in axes}
        for axis, indices in places.items():
            x = d.moved(Gather(axis), x, d.constant(indices.astype(np.int32)))
        return [_extrapolated(d, op, types, x, axes)]
    shares = {axis: op.weights(at, before, after) for at, axis, before, after in axes}
    image = _weighted_image(d, x, types, shares) if dtype is DType.FLOAT32 else None
    if image is None:
        x = d.cast(x, DType.FLOAT32 if dtype is DType.FLOAT32 else DType.FLOAT64)
        for axis, weights in shares.items():
            x = _weighted_sums(d, x, axis, weights.astype(d.dtype(x).numpy))
        if dtype.is_integer:
            x = d.clamped(x, *map(float, dtype.limits))
    return [_extrapolated(d, op, types, d.cast(x if image is None else image, dtype), axes)]


def _extrapolated(
    d: Draft, op: Interpolate, types: CallTypes, x: int, axes: Sequence[tuple[int, int, int, int]]
) -> int:
    """The result with the extrapolation value at positions outside the operand."""
    if op.coordinates is not Coordinates.CROP:
        return x
    rank = types.output.rank
    outside = np.zeros((1,) * rank, np.bool_)
    for at, axis, before, after in axes:
        beyond = op.beyond(at, before, after)
        outside = outside | beyond.reshape([-1 if i == axis else 1 for i in range(rank)])
    if not outside.any():
        return x
    value, dtype = op.extrapolation, types.input(0).dtype
    if dtype.is_integer:
        value = float(np.clip(np.trunc(value), *dtype.limits))
    return d.chosen(d.broadcast(d.constant(outside), d.shape(x)), d.like(x, value), x)


def _is_image(types: CallTypes, axes: Sequence[int]) -> bool:
    return types.input(0).rank == 4 and set(axes) <= {1, 2}


def _size(d: Draft, types: CallTypes) -> int:
    _, height, width, _ = static(types.output.shape)
    return d.integers(height, width)


@frozen
class SameElements(Value):
    """A predicate: whether two operations pick the same elements along an axis, for lengths before and after."""

    op: Interpolate
    at: int
    other: ResizeNearestNeighbor

    def __call__(self, before: int, after: int) -> bool:
        return bool(np.array_equal(self.op.nearest(self.at, before, after), self.other.nearest(after, before)))

    def hold(self, before: int, after: int) -> None:
        """Record the predicate as a condition for lengths that may be symbolic."""
        if not (is_symbolic(before) or is_symbolic(after)):
            return
        times = hint(after) // hint(before) if hint(before) else 0
        rest = after - times * before
        if not times or is_symbolic(rest) or rest:
            decided(self, before, after)
        elif not (self._is_steady(times) and self.other.is_steady(times, before)):
            decided(_SameTimes(self, times), before)

    def _is_steady(self, times: int) -> bool:
        """Whether shifting by one element shifts the result by `times`, whatever the length."""
        scales = self.op.scales
        return self.op.coordinates in _STEADY and (scales is None or scales[self.at] == times)


@frozen
class _SameTimes(Value):
    """The same predicate for results that are `times` as long."""

    same: SameElements
    times: int

    def __call__(self, before: int) -> bool:
        return self.same(before, self.times * before)

    def results(self, count: int) -> Array:
        """The results for all lengths below `count`."""
        return np.array([length > 0 and self(length) for length in range(count)])


def _pixels(op: Interpolate, types: CallTypes) -> tuple[ResizeNearestNeighbor, int, int, list[SameElements]] | None:
    """The equivalent image resize, its first and last axis, and the predicates that it relies on; axes that keep their
    length fit any mode. None if there is none, or none for all symbolic lengths.

    If lengths are symbolic, adjacent axes of any other tensor may serve as height and width too.
    """
    axes = _sized(op, types)
    first, last = 1, 2
    if not _is_image(types, [axis for _, axis, _, _ in axes]):
        axes = [row for row in axes if not are_same(row[2], row[3])]
        first, last = (axes[0][1], axes[-1][1]) if axes else (0, -1)
        has_symbols = any(map(is_symbolic, (*types.input(0).shape, *types.output.shape)))
        if not 0 <= last - first <= 1 or not has_symbols:
            return None
    for mode in _MODES:
        same = [SameElements(op, at, ResizeNearestNeighbor(*mode)) for at, _, _, _ in axes]
        if all(s(hint(before), hint(after)) for s, (_, _, before, after) in zip(same, axes, strict=True)):
            is_whole = all(_is_multiple(before, after) for _, _, before, after in axes)
            return (ResizeNearestNeighbor(*mode), first, last, same) if is_whole else None
    return None


def _is_multiple(before: int, after: int) -> bool:
    """Whether lengths are known, or the second is a known multiple of the first."""
    if not (is_symbolic(before) or is_symbolic(after)):
        return True
    times = hint(after) // hint(before) if hint(before) else 0
    return times > 0 and are_same(after, times * before)


def _why_no_pixels(op: Interpolate, types: CallTypes) -> str | None:
    reason = _why_not(op, types)
    if reason is not None or op.interpolation is not Interpolation.NEAREST or op.coordinates is Coordinates.CROP:
        return reason or "it does not pick the nearest elements"
    if 0 in types.output.shape or _pixels(_resolved(op, types), types) is None:
        return "no image resize is equivalent"
    return None


def _nearest_image(d: Draft, op: Interpolate, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """ResizeNearestNeighbor(x)"""
    op, x = _resolved(op, types), operands[0]
    found = _pixels(op, types)
    assert found is not None
    resized, first, last, same = found
    shape, result = d.shape(x), static(types.output.shape)
    for each in same:
        each.hold(shape[op.axes[each.at]], result[op.axes[each.at]])
    outer, inner = math.prod(shape[:first]), math.prod(shape[last + 1 :])
    width, result_width = (shape[last], result[last]) if last > first else (1, 1)
    if (first, last, len(shape)) == (1, 2, 4):
        return [d.moved(resized, x, d.integers(result[first], result_width))]
    image = d.reshaped(x, outer, shape[first], width, inner)
    return [d.reshaped(d.moved(resized, image, d.integers(result[first], result_width)), *result)]


def _weighted_image(d: Draft, x: int, types: CallTypes, shares: dict[int, Array]) -> int | None:
    if not _is_image(types, list(shares)):
        return None
    before, after = (list(map(int, static(type_.shape))) for type_ in (types.input(0), types.output))
    for mode in _MODES[:3]:
        op = ResizeBilinear(*mode)
        found = {axis: _bilinear_weights(op, after[axis], before[axis]) for axis in (1, 2)}
        expected = {axis: shares.get(axis, np.eye(before[axis])) for axis in (1, 2)}
        if all(np.abs(found[axis] - expected[axis]).max() <= _CLOSE for axis in (1, 2)):
            return d.add(op, x, _size(d, types))
    return None


def _bilinear_weights(op: ResizeBilinear, count: int, inputs: int) -> Array:
    """The weight of each input in each output along an axis."""
    low, high, distance = op.positions(count, inputs)
    out = np.zeros((count, inputs))
    np.add.at(out, (np.arange(count), low), 1 - distance)
    np.add.at(out, (np.arange(count), high), distance)
    return out


def _weighted_sums(d: Draft, x: int, axis: int, shares: Array) -> int:
    """The sums of elements along an axis, weighted by `shares` [after, before]."""
    shape = d.shape(x)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    after, before = shares.shape
    result = (*shape[:axis], after, *shape[axis + 1 :])
    if before <= _DENSE:
        weights = d.constant(shares)
        if inner == 1 and shares.dtype == np.float32:
            return d.reshaped(d.rows_times(d.reshaped(x, outer, before), weights, None), *result)
        return d.reshaped(d.add(BatchMatMul(), weights, d.reshaped(x, outer, before, inner)), *result)
    count = int((shares != 0).sum(axis=1).max())
    taps = np.sort(np.argsort(shares == 0, axis=1, kind="stable")[:, :count], axis=1)
    each = np.take_along_axis(shares, taps, 1)
    total: int | None = None
    for i in range(count):
        elements = d.moved(Gather(axis), x, d.constant(taps[:, i].astype(np.int32)))
        column = d.constant(each[:, i].reshape(after, *(1,) * (len(shape) - 1 - axis)))
        part = d.product(elements, column)
        total = part if total is None else d.sum(total, part)
    assert total is not None
    return total


def _why_not_real(op: ResizeBilinear, types: CallTypes) -> str | None:
    return None if types.input(0).dtype is DType.FLOAT64 else "it is not of float64"


def _real(d: Draft, op: ResizeBilinear, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Cast(ResizeBilinear(Cast(x))): interpolation is defined in float32"""
    x, size = operands
    return [d.cast(d.add(op, d.cast(x, DType.FLOAT32), size), DType.FLOAT64)]


DECOMPOSITIONS = {
    ResizeBilinear: (Decomposition(_why_not_real, _real),),
    Interpolate: (Decomposition(_why_no_pixels, _nearest_image, plainer=True), Decomposition(_why_not, _interpolated)),
}
