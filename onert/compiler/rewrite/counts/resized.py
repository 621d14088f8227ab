"""Resizing to sizes known only at run time, or of images whose size is known only then.

Elements are gathered from the whole tensor, for the largest size. Their positions are computed from the lengths in the
same way as in the operations' NumPy definitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import numpy as np
from attrs import frozen

from onert.ir import DType, Operation, TensorType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Within
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation, Rounding
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor

from .counting import MOST_SIZED, Counted, CountedInputs, CountedResults, Writer, first_of
from .sized import number_at

_MOST_WEIGHTS = 1 << 20
"""The most weights along an axis: of each element in each result."""
RESIZING = (ResizeBilinear, ResizeNearestNeighbor, Interpolate)


def _binary(kind: BinaryKind) -> Callable[[_Numbers, _Numbers | float], _Numbers]:
    return lambda self, other: self.binary(kind, other)


@frozen(eq=False)
class _Numbers:
    """An operand under construction with arithmetic operators; plain numbers get its element type."""

    w: Writer
    operand: int

    def binary(self, kind: BinaryKind, other: _Numbers | float) -> _Numbers:
        border = other.operand if isinstance(other, _Numbers) else self.like(other)
        return _Numbers(self.w, self.w.add(Binary(kind), self.operand, border))

    __add__ = _binary(BinaryKind.ADD)
    __sub__ = _binary(BinaryKind.SUB)
    __mul__ = _binary(BinaryKind.MUL)
    __truediv__ = _binary(BinaryKind.DIV)
    __floordiv__ = _binary(BinaryKind.FLOOR_DIV)
    minimum = _binary(BinaryKind.MINIMUM)
    maximum = _binary(BinaryKind.MAXIMUM)

    def ceil(self) -> _Numbers:
        """Rounded up."""
        return _Numbers(self.w, self.w.add(Unary(UnaryKind.CEIL), self.operand))

    def floor(self) -> _Numbers:
        """Rounded down."""
        return _Numbers(self.w, self.w.add(Unary(UnaryKind.FLOOR), self.operand))

    def rounded(self) -> _Numbers:
        """Rounded to the nearest integer, halves up; exact for every non-negative float."""
        whole = self.floor()
        above = self.w.add(Comparison(ComparisonKind.GREATER_EQUAL), (self - whole).operand, self.like(0.5))
        return whole + _Numbers(self.w, above).cast(self.w.types[self.operand].dtype)

    def like(self, value: float) -> int:
        return self.w.like(self.w.types[self.operand], value)

    def cast(self, to: DType) -> _Numbers:
        return _Numbers(self.w, self.w.add(Cast(to), self.operand))

    def if_above(self, limit: float, than: _Numbers, otherwise: _Numbers) -> _Numbers:
        """`than` if this single number is above a limit, otherwise `otherwise`."""
        above = self.w.add(Comparison(ComparisonKind.GREATER), self.operand, self.like(limit))
        return _Numbers(self.w, self.w.add(Select(), above, than.operand, otherwise.operand))

    def at(self, axis: int, places: _Numbers) -> _Numbers:
        """The stored entries at places along an axis."""
        quantization = self.w.types[self.operand].quantization
        return _Numbers(self.w, self.w.add(Gather(axis), self.operand, places.operand, quantization=quantization))

    def abs(self) -> _Numbers:
        """The absolute values."""
        return self.maximum(self * -1)

    def total(self) -> _Numbers:
        """The sum of each row."""
        w = self.w
        return _Numbers(
            w, w.add(Reduce(Reduction.SUM, keep_dims=True), self.operand, w.constant(np.array([1], np.int32)))
        )

    def part(self, first: int, size: int) -> _Numbers:
        """The `size` columns from `first` on."""
        w = self.w
        bounds = (w.constant(np.array(each, np.int32)) for each in ((0, first), (-1, size)))
        return _Numbers(w, w.add(Slice(), self.operand, *bounds))

    def shaped(self, *shape: int) -> _Numbers:
        """The same elements in another shape."""
        return _Numbers(self.w, self.w.add(Reshape(), self.operand, self.w.integers(shape, DType.INT32)))

    def transposed(self, order: Sequence[int]) -> _Numbers:
        """The transpose by `order`."""
        return _Numbers(self.w, self.w.add(Transpose(), self.operand, self.w.constant(np.array(order, np.int32))))

    def along(self, axis: int, rank: int) -> _Numbers:
        """A vector shaped to broadcast along an axis."""
        return self.shaped(-1, *(1,) * (rank - 1 - axis))


@frozen(eq=False)
class _ResizedAxis:
    """An axis: its number of entries before and after (int64 scalars), and the largest number of results."""

    axis: int
    before: _Numbers
    after: _Numbers
    most: int

    def indices(self, dtype: DType) -> _Numbers:
        w = self.before.w
        return _Numbers(w, w.constant(np.arange(self.most).astype(dtype.numpy)))

    def clamped(self, places: _Numbers) -> _Numbers:
        """Places clamped to the valid range."""
        return places.cast(DType.INT64).maximum(0).minimum(self.before - 1)

    def in_range(self, places: _Numbers) -> _Numbers:
        """1 for places in the valid range, otherwise 0; float64."""
        return (places + 1).minimum(self.before.cast(DType.FLOAT64) - places).minimum(1).maximum(0)


def resized(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """An image, or any tensor, resized to a size known only at run time."""
    op, counted = operation.op, inputs[0]
    whole = operation.inputs[0] if counted is None else counted.operand
    assert whole is not None
    axes = op.axes if isinstance(op, Interpolate) else (1, 2)
    resized_axes = None if any(inputs[1:]) else _resized_axes(w, operation, counted, axes)
    type_ = w.types[whole]
    if resized_axes is None or 0 in type_.shape:
        return None
    if isinstance(op, ResizeBilinear):
        floats = type_.dtype.is_float or type_.dtype is DType.UINT8
        result = (_bilinear_in_float if floats else _bilinear_in_fixed_point)(op, _Numbers(w, whole), resized_axes)
    elif isinstance(op, ResizeNearestNeighbor):
        result = _nearest(op, _Numbers(w, whole), resized_axes)
    else:
        assert isinstance(op, Interpolate)
        if op.interpolation is Interpolation.NEAREST:
            result = _Numbers(w, whole)
            for axis_ in resized_axes:
                result = result.at(axis_.axis, axis_.clamped(_rounded(op, axis_)))
        elif op.antialias and any(_padded_length(op, type_, each) * each.most > _MOST_WEIGHTS for each in resized_axes):
            return None
        else:
            result = _interpolated(op, _Numbers(w, whole), resized_axes)
    counts = {} if counted is None else {axis: n for axis, n in counted.axes.items() if axis not in axes}
    counts |= {each.axis: each.after.operand for each in resized_axes if w.types[each.after.operand].value is None}
    return (first_of(result.operand, counts),)


def _resized_axes(
    w: Writer, operation: Operation, counted: Counted | None, axes: tuple[int, ...]
) -> list[_ResizedAxis] | None:
    """The resized axes; None if a size has no bound, or the operation has other rules."""
    op = operation.op
    if isinstance(op, Interpolate):
        plain = op.interpolation is Interpolation.NEAREST or w.edit.subgraph.type(operation.outputs[0]).dtype.is_float
        if not plain or op.coordinates is Coordinates.CROP or op.scales is not None:
            return None
        if op.coordinates is Coordinates.TF_NEAREST and op.rounding is not Rounding.FLOOR:
            return None  # an axis that keeps its length must keep its elements
        if len(operation.inputs) != 2 or operation.inputs[1] is None:
            return None
    x, sizes = operation.used
    type_, cells = w.types[x if counted is None else counted.operand], w.extents.of(sizes)
    if cells is None or cells.shape != (len(axes),) or not all(each.high > 0 for each in cells):
        return None
    if math.prod(each.high for each in cells) > MOST_SIZED:
        return None
    found = []
    for at, (axis, each) in enumerate(zip(axes, cells, strict=True)):
        length = w.number(type_.shape[axis] or 0) if counted is None or axis not in counted.axes else counted.axes[axis]
        after = _Numbers(w, number_at(w, sizes, at, each))
        if each.low < 1 and not isinstance(op, Interpolate):
            after += _Numbers(w, w.add(Within(), w.number(0), after.operand))  # checks that it is not 0
        if w.types[length].value is None:  # checks that an empty axis stays empty
            one = w.add(Within(inclusive=True), after.minimum(1).operand, length)
            after += _Numbers(w, one) - after.minimum(1)
        found.append(_ResizedAxis(axis, _Numbers(w, length), after, each.high))
    return found


def _scale(op: ResizeBilinear | ResizeNearestNeighbor, axis_: _ResizedAxis) -> _Numbers:
    """The number of input entries per result entry."""
    before, after = axis_.before, axis_.after
    if op.align_corners:
        before, after = before - 1, (after - 1).maximum(1)
    return before.cast(DType.FLOAT32) / after.cast(DType.FLOAT32)


def _nearest(op: ResizeNearestNeighbor, x: _Numbers, resized_axes: list[_ResizedAxis]) -> _Numbers:
    for axis_ in resized_axes:
        index = axis_.indices(DType.FLOAT32)
        at = (index + 0.5 if op.half_pixel_centers else index) * _scale(op, axis_)
        x = x.at(axis_.axis, axis_.clamped(at.rounded() if op.align_corners else at.floor()))
    return x


def _bilinear_in_float(op: ResizeBilinear, x: _Numbers, resized_axes: list[_ResizedAxis]) -> _Numbers:
    """Bilinear interpolation in float32."""
    type_ = x.w.types[x.operand]
    samples = []
    for axis_ in resized_axes:
        index = axis_.indices(DType.FLOAT32)
        at = index * _scale(op, axis_)
        if op.half_pixel_centers:
            at = (index + 0.5) * _scale(op, axis_) - 0.5
        low = at.floor().cast(DType.INT64).maximum(0)
        part = (at - low.cast(DType.FLOAT32)).along(axis_.axis, 4)
        samples.append((axis_.clamped(low), axis_.clamped(at.ceil()), part, part * -1 + 1))
    (top, bottom, down, up), (left, right, across, back) = samples
    rows = [(x.cast(DType.FLOAT32).at(1, places), weight) for places, weight in ((top, up), (bottom, down))]
    terms = [
        row.at(2, places) * weight * border
        for places, border in ((left, back), (right, across))
        for row, weight in rows
    ]
    out = terms[0] + terms[1] + terms[2] + terms[3]
    return _stored(out if type_.dtype.is_float else out.rounded(), x)


def _bilinear_in_fixed_point(op: ResizeBilinear, x: _Numbers, resized_axes: list[_ResizedAxis]) -> _Numbers:
    """Bilinear interpolation in fixed point with steps of 1/1024, rounding halves away from zero."""
    samples = []
    for axis_ in resized_axes:
        before, after = axis_.before, axis_.after
        if op.align_corners:
            before, after = before - 1, (after - 1).maximum(1)
        scale = (before * 1024 + after // 2) // after
        at = axis_.indices(DType.INT64) * scale
        if op.half_pixel_centers:
            at = at + scale // 2 - 512
        low = axis_.clamped(at // 1024)
        part = (at - low * 1024).along(axis_.axis, 4)
        samples.append((low, axis_.clamped((at * -1) // 1024 * -1), part, part * -1 + 1024))
    (top, bottom, down, up), (left, right, across, back) = samples
    wide = x.cast(DType.INT64)
    sides = [wide.at(1, top).at(2, each) * up + wide.at(1, bottom).at(2, each) * down for each in (left, right)]
    total = sides[0] * back + sides[1] * across
    magnitude = (total.maximum(total * -1) + (1 << 19)) // (1 << 20)
    return _stored(magnitude * total.minimum(1).maximum(-1), x)


def _stored(result: _Numbers, x: _Numbers) -> _Numbers:
    """Numbers converted to the element type and quantisation of `x`."""
    w, type_ = x.w, x.w.types[x.operand]
    cast = result.cast(type_.dtype)
    return _Numbers(w, w.add(Copy(), cast.operand, quantization=type_.quantization)) if type_.quantization else cast


def _coordinates(op: Interpolate, axis_: _ResizedAxis) -> _Numbers:
    """For each result element along an axis, its coordinate in the input."""
    dtype = DType.FLOAT32 if op.interpolation is Interpolation.NEAREST else DType.FLOAT64
    before, after = axis_.before.cast(DType.FLOAT64), axis_.after.cast(DType.FLOAT64)
    index, scale = axis_.indices(dtype), (after / before).cast(dtype)
    if op.coordinates is Coordinates.ALIGN_CORNERS:
        return index * (before - 1).cast(dtype) / (after - 1).maximum(1).cast(dtype)
    if op.coordinates is Coordinates.ASYMMETRIC:
        return index / scale
    if op.coordinates is Coordinates.TF_NEAREST:
        return (index + 0.5) / scale
    coordinate = (index + 0.5) / scale - 0.5
    return (
        axis_.after.if_above(1, coordinate, coordinate * 0)
        if op.coordinates is Coordinates.PYTORCH_HALF_PIXEL
        else coordinate
    )


def _rounded(op: Interpolate, axis_: _ResizedAxis) -> _Numbers:
    """For each result element along an axis, the coordinate of the nearest element of the input."""
    coordinate = _coordinates(op, axis_).cast(DType.FLOAT64)
    match op.rounding:
        case Rounding.OUTWARD:
            return (axis_.before - axis_.after).if_above(0, coordinate.ceil(), coordinate.floor())
        case Rounding.FLOOR:
            return coordinate.floor()
        case Rounding.CEIL:
            return coordinate.ceil()
        case Rounding.UP_AT_HALF:
            return (coordinate + 0.5).floor()
        case _:
            return (coordinate - 0.5).ceil()


def _interpolated(op: Interpolate, x: _Numbers, resized_axes: list[_ResizedAxis]) -> _Numbers:
    """Interpolation along each axis; an axis that keeps its length is copied."""
    wide, type_ = x.cast(DType.FLOAT64), x.w.types[x.operand]
    for axis_ in resized_axes:
        result = (_by_product if op.antialias else _by_taps)(op, wide, axis_, type_)
        changed = (axis_.after - axis_.before).abs()
        wide = changed.if_above(0, result, wide.at(axis_.axis, axis_.clamped(axis_.indices(DType.INT64))))
    return _stored(wide, x)


def _weight(op: Interpolate, distance: _Numbers) -> _Numbers:
    """The weight of an element at a distance."""
    if op.interpolation is Interpolation.LINEAR:
        return (distance * -1 + 1).maximum(0)
    a, t = op.cubic, distance
    inner = (t * (a + 2) - (a + 3)) * t * t + 1
    outer = ((t * a - 5 * a) * t + 8 * a) * t - 4 * a
    return t.if_above(1, t.if_above(2, t * 0, outer), inner)


def _kernel_radius(op: Interpolate) -> int:
    return 1 if op.interpolation is Interpolation.LINEAR else 2


def _by_taps(op: Interpolate, wide: _Numbers, axis_: _ResizedAxis, type_: TensorType) -> _Numbers:
    """Weighted sums of the neighbours on both sides, one tap after the other."""
    coordinate, reach = _coordinates(op, axis_), _kernel_radius(op)
    taps = [coordinate.floor() + at for at in range(1 - reach, reach + 1)]
    weights = [_weight(op, (tap - coordinate).abs()) for tap in taps]
    if op.exclude_outside:
        weights = [weight * axis_.in_range(tap) for tap, weight in zip(taps, weights, strict=True)]
        total = reduce(add, weights)
        weights = [weight / total for weight in weights]
    return reduce(
        add,
        (
            wide.at(axis_.axis, axis_.clamped(tap)) * weight.along(axis_.axis, type_.rank)
            for tap, weight in zip(taps, weights, strict=True)
        ),
    )


def _border(op: Interpolate, entries: int) -> int:
    """How many positions beyond each border may have a weight; 0 if these are excluded."""
    return 0 if op.exclude_outside else _kernel_radius(op) * entries + 1


def _padded_length(op: Interpolate, type_: TensorType, axis_: _ResizedAxis) -> int:
    entries = type_.shape[axis_.axis] or 0
    return entries + 2 * _border(op, entries)


def _by_product(op: Interpolate, wide: _Numbers, axis_: _ResizedAxis, type_: TensorType) -> _Numbers:
    """A product with the weights of all elements: weights beyond a border are added to the border element, and the
    kernel is widened when the axis shrinks."""
    w, axis, rank, entries = wide.w, axis_.axis, type_.rank, type_.shape[axis_.axis] or 0
    border = _border(op, entries)
    before, after = (each.cast(DType.FLOAT64) for each in (axis_.before, axis_.after))
    narrow = (after / before).minimum(1)
    taps = _Numbers(w, w.constant(np.arange(-border, entries + border, dtype=np.float64)))
    weights = _weight(op, (taps - _coordinates(op, axis_).along(0, 2)).abs() * narrow)
    own = _Numbers(w, w.constant(np.arange(entries, dtype=np.float64)))
    found = weights.part(border, entries) * axis_.in_range(own)
    if border:
        left, right = weights.part(0, border).total(), (weights * (taps - before + 1).minimum(1).maximum(0)).total()
        found = found + left * (own.abs() * -1 + 1).maximum(0) + right * ((own - before + 1).abs() * -1 + 1).maximum(0)
    total = found.total()
    found = found / (total if op.exclude_outside else narrow.if_above(math.nextafter(1, 0), total * 0 + 1, total))
    order = [axis, *(a for a in range(rank) if a != axis)]
    length = wide.at(axis, axis_.clamped(own))
    moved = length if axis == 0 else length.transposed(order)
    shape = [w.types[moved.operand].shape[a] or 0 for a in range(1, rank)]
    flat = moved.shaped(entries, math.prod(shape))
    result = _Numbers(w, w.add(BatchMatMul(), found.operand, flat.operand)).shaped(axis_.most, *shape)
    return result if axis == 0 else result.transposed([order.index(a) for a in range(rank)])
