"""Resizing as image resizes, or as gathers or products along each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import product

import numpy as np
from attrs import evolve, frozen

from onert.compiler.legalize.decomposition import Decomposition, moves
from onert.compiler.legalize.draft import Draft
from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor
from onert.ir.shape import static
from onert.ir.symbolic.functions import of_lengths
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
    sized = _sized(op, types)
    if op.antialias and all(_grows(op, at, before, after) for at, _, before, after in sized):
        plain = evolve(op, antialias=False)  # only the filters of axes that shrink are wider
        return [d.add(plain, x, d.integers(*(after for *_, after in sized)))]
    is_open = any(is_symbolic(before) or is_symbolic(after) for *_, before, after in sized)
    if is_open and op.interpolation is not Interpolation.NEAREST and not _may_leave(op):
        return [_weighted(d, op, x, sized)]
    axes = [(at, axis, int(before), int(after)) for at, axis, before, after in sized]  # for these lengths
    if op.interpolation is Interpolation.NEAREST:
        places = {axis: op.nearest(at, before, after) for at, axis, before, after in axes}
        for axis, indices in places.items():
            x = d.moved(Gather(axis), x, d.constant(indices.astype(np.int32)))
        return [_extrapolated(d, op, types, x, axes)]
    image = _weighted_image(d, x, types, op, axes) if dtype is DType.FLOAT32 else None
    return [_extrapolated(d, op, types, _weighted(d, op, x, axes) if image is None else image, axes)]


def _grows(op: Interpolate, at: int, before: int, after: int) -> bool:
    """Whether an axis does not shrink."""
    return after >= before if op.scales is None else op.scales[at] >= 1


def _may_leave(op: Interpolate) -> bool:
    """Whether a position may be outside the operand."""
    return op.coordinates is Coordinates.CROP and not all(0 <= end <= 1 for end in (*op.starts, *op.ends))


def _weighted(d: Draft, op: Interpolate, x: int, axes: Sequence[tuple[int, int, int, int]]) -> int:
    """The weighted sums along each axis."""
    dtype = d.dtype(x)
    x = d.cast(x, DType.FLOAT32 if dtype is DType.FLOAT32 else DType.FLOAT64)
    for at, axis, before, after in axes:
        x = _weighted_sums(d, op, x, at, axis, before, after)
    if dtype.is_integer:
        x = d.clamped(x, *map(float, dtype.limits))
    return d.cast(x, dtype)


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


def _weighted_image(
    d: Draft, x: int, types: CallTypes, op: Interpolate, axes: Sequence[tuple[int, int, int, int]]
) -> int | None:
    if not _is_image(types, op.axes):
        return None
    shares = {axis: op.weights(at, before, after) for at, axis, before, after in axes}
    before, after = (list(map(int, static(type_.shape))) for type_ in (types.input(0), types.output))
    for mode in _MODES[:3]:
        image = ResizeBilinear(*mode)
        found = {axis: _bilinear_weights(image, after[axis], before[axis]) for axis in (1, 2)}
        expected = {axis: shares.get(axis, np.eye(before[axis])) for axis in (1, 2)}
        if all(np.abs(found[axis] - expected[axis]).max() <= _CLOSE for axis in (1, 2)):
            return d.add(image, x, _size(d, types))
    return None


def _bilinear_weights(op: ResizeBilinear, count: int, inputs: int) -> Array:
    """The weight of each input in each output along an axis."""
    low, high, distance = op.positions(count, inputs)
    out = np.zeros((count, inputs))
    np.add.at(out, (np.arange(count), low), 1 - distance)
    np.add.at(out, (np.arange(count), high), distance)
    return out


def _weighted_sums(d: Draft, op: Interpolate, x: int, at: int, axis: int, before: int, after: int) -> int:
    """The weighted sums of elements along an axis, which is the operation's axis number `at`."""
    shape, dtype = d.shape(x), d.dtype(x)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    result = (*shape[:axis], after, *shape[axis + 1 :])
    if before <= _DENSE:
        weights = d.per_length(TensorType(dtype, (after, before)), partial(_weights, op, at, dtype), before, after)
        if inner == 1 and dtype is DType.FLOAT32:
            return d.reshaped(d.rows_times(d.reshaped(x, outer, before), weights, None), *result)
        return d.reshaped(d.add(BatchMatMul(), weights, d.reshaped(x, outer, before, inner)), *result)
    total: int | None = None
    around = (after, *(1,) * (len(shape) - 1 - axis))
    count = _Count(op, at, is_symbolic(before) or is_symbolic(after))
    for tap in range(decided(count, before, after)):
        places = d.per_length(TensorType(DType.INT32, (after,)), partial(_places, op, at, tap), before, after)
        shares = d.per_length(TensorType(dtype, (after,)), partial(_shares, op, at, tap, dtype), before, after)
        part = d.product(d.moved(Gather(axis), x, places), d.reshaped(shares, *around))
        total = part if total is None else d.sum(total, part)
    assert total is not None
    return total


@of_lengths
def _weights(op: Interpolate, at: int, dtype: DType, before: int, after: int) -> Array:
    """The weight of each input in each output along an axis."""
    return op.weights(at, before, after).astype(dtype.numpy)


@lru_cache(maxsize=4)
def _taps(op: Interpolate, at: int, before: int, after: int) -> tuple[Array, Array]:
    """The inputs that contribute to each output along an axis, in order, and their weights; both [taps, after]."""
    weights = op.weights(at, before, after)
    count = int((weights != 0).sum(axis=1).max())
    taps = np.sort(np.argsort(weights == 0, axis=1, kind="stable")[:, :count], axis=1)
    return taps.T, np.take_along_axis(weights, taps, 1).T


@frozen
class _Count(Value):
    """A function of the lengths before and after: how many inputs contribute to an output along an axis, at most.

    For many lengths it is rounded up to one of 2, 3, 4, 6, 8, 12 ..., so that few lengths differ: inputs without weight
    are added.
    """

    op: Interpolate
    at: int
    is_rounded: bool

    def __call__(self, before: int, after: int) -> int:
        count = len(_taps(self.op, self.at, before, after)[0])
        step = 1 << max(0, (count - 1).bit_length() - 2) if self.is_rounded else 1
        return -(-count // step) * step


@of_lengths
def _places(op: Interpolate, at: int, tap: int, before: int, after: int) -> Array:
    places, _ = _taps(op, at, before, after)
    found: Array = places[min(tap, len(places) - 1)]
    return found.astype(np.int32)


@of_lengths
def _shares(op: Interpolate, at: int, tap: int, dtype: DType, before: int, after: int) -> Array:
    _, shares = _taps(op, at, before, after)
    found: Array = shares[tap] if tap < len(shares) else np.zeros(after)
    return found.astype(dtype.numpy)


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
