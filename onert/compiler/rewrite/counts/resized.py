"""Resizing to sizes that only a run knows, or pictures of which only a run knows how large they are.

Elements are gathered from the whole tensor: for the largest size, their places are computed of the lengths as the
operations' definitions in NumPy compute them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from attrs import frozen

from onert.ir import DType, Operation
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Within
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation, Rounding
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor

from .counting import MOST_SIZED, Counted, Given, Writer, Written, first_of
from .sized import number_at

RESIZING = (ResizeBilinear, ResizeNearestNeighbor, Interpolate)


def _binary(kind: BinaryKind) -> Callable[[_Numbers, _Numbers | float], _Numbers]:
    return lambda self, other: self.binary(kind, other)


@frozen(eq=False)
class _Numbers:
    """An operand that is being written. A number beside it has its element type."""

    w: Writer
    operand: int

    def binary(self, kind: BinaryKind, other: _Numbers | float) -> _Numbers:
        beside = other.operand if isinstance(other, _Numbers) else self.like(other)
        return _Numbers(self.w, self.w.add(Binary(kind), self.operand, beside))

    __add__ = _binary(BinaryKind.ADD)
    __sub__ = _binary(BinaryKind.SUB)
    __mul__ = _binary(BinaryKind.MUL)
    __truediv__ = _binary(BinaryKind.DIV)
    __floordiv__ = _binary(BinaryKind.FLOOR_DIV)
    least = _binary(BinaryKind.MINIMUM)
    most = _binary(BinaryKind.MAXIMUM)

    def up(self) -> _Numbers:
        """Rounded up."""
        return _Numbers(self.w, self.w.add(Unary(UnaryKind.CEIL), self.operand))

    def down(self) -> _Numbers:
        """Rounded down."""
        return _Numbers(self.w, self.w.add(Unary(UnaryKind.FLOOR), self.operand))

    def rounded(self) -> _Numbers:
        """To the nearest integer, halves up, exact for every float that is not negative."""
        whole = self.down()
        above = self.w.add(Comparison(ComparisonKind.GREATER_EQUAL), (self - whole).operand, self.like(0.5))
        return whole + _Numbers(self.w, above).cast(self.w.types[self.operand].dtype)

    def like(self, value: float) -> int:
        return self.w.like(self.w.types[self.operand], value)

    def cast(self, to: DType) -> _Numbers:
        return _Numbers(self.w, self.w.add(Cast(to), self.operand))

    def if_above(self, limit: float, than: _Numbers, otherwise: _Numbers) -> _Numbers:
        """One of two by whether this single number is above a limit."""
        above = self.w.add(Comparison(ComparisonKind.GREATER), self.operand, self.like(limit))
        return _Numbers(self.w, self.w.add(Select(), above, than.operand, otherwise.operand))

    def at(self, axis: int, places: _Numbers) -> _Numbers:
        """The entries at places along an axis, as they are stored."""
        kept = self.w.types[self.operand].quantization
        return _Numbers(self.w, self.w.add(Gather(axis), self.operand, places.operand, quantization=kept))

    def along(self, axis: int, rank: int) -> _Numbers:
        """A row as factors along an axis."""
        shape = (-1, *(1,) * (rank - 1 - axis))
        return _Numbers(self.w, self.w.add(Reshape(), self.operand, self.w.integers(shape, DType.INT32)))


@frozen(eq=False)
class _Along:
    """An axis: how many entries there are and will be (int64 scalars), and how many results at most."""

    axis: int
    before: _Numbers
    after: _Numbers
    room: int

    def indices(self, dtype: DType) -> _Numbers:
        w = self.before.w
        return _Numbers(w, w.constant(np.arange(self.room).astype(dtype.numpy)))

    def inside(self, places: _Numbers) -> _Numbers:
        """The nearest places that there are."""
        return places.cast(DType.INT64).most(0).least(self.before - 1)


def resized(w: Writer, operation: Operation, given: Given) -> Written | None:
    """A picture, or any tensor, in a size that only a run knows."""
    op, counted = operation.op, given[0]
    whole = operation.inputs[0] if counted is None else counted.operand
    assert whole is not None
    axes = op.axes if isinstance(op, Interpolate) else (1, 2)
    alongs = None if any(given[1:]) else _alongs(w, operation, counted, axes)
    if alongs is None or 0 in w.types[whole].shape:
        return None
    if isinstance(op, ResizeBilinear):
        floats = w.types[whole].dtype.is_float or w.types[whole].dtype is DType.UINT8
        made = (_between_pixels if floats else _between_bytes)(op, _Numbers(w, whole), alongs)
    elif isinstance(op, ResizeNearestNeighbor):
        made = _nearest_pixels(op, _Numbers(w, whole), alongs)
    else:
        assert isinstance(op, Interpolate)
        if op.interpolation is Interpolation.NEAREST:
            made = _Numbers(w, whole)
            for along in alongs:
                made = made.at(along.axis, along.inside(_rounded(op.rounding, _places(op, along).cast(DType.FLOAT64))))
        else:
            made = _between(op, _Numbers(w, whole), alongs)
    counts = {} if counted is None else {axis: n for axis, n in counted.axes.items() if axis not in axes}
    counts |= {each.axis: each.after.operand for each in alongs if w.types[each.after.operand].value is None}
    return (first_of(made.operand, counts),)


def _alongs(w: Writer, operation: Operation, counted: Counted | None, axes: tuple[int, ...]) -> list[_Along] | None:
    """The axes that are resized; None where a size has no bound, or the operation goes by other rules."""
    op = operation.op
    if isinstance(op, Interpolate):
        plain = op.interpolation is Interpolation.NEAREST or w.edit.subgraph.type(operation.outputs[0]).dtype.is_float
        others = op.antialias or op.coordinates in (Coordinates.CROP, Coordinates.HALF_PIXEL_SYMMETRIC)
        if not plain or others or op.interpolation is Interpolation.CUBIC or operation.inputs[1:].count(None):
            return None
        if len(operation.inputs) != 2 or op.scales is not None:
            return None
    x, sizes = operation.used
    type_, cells = w.types[x if counted is None else counted.operand], w.extents.of(sizes)
    if cells is None or cells.shape != (len(axes),) or not all(each.high > 0 for each in cells):
        return None
    if math.prod(each.high for each in cells) > MOST_SIZED:
        return None
    found = []
    for at, (axis, each) in enumerate(zip(axes, cells, strict=True)):
        there = w.number(type_.shape[axis] or 0) if counted is None or axis not in counted.axes else counted.axes[axis]
        after = _Numbers(w, number_at(w, sizes, at, each))
        if each.low < 1 and not isinstance(op, Interpolate):
            after += _Numbers(w, w.add(Within(), w.number(0), after.operand))  # it is not 0
        if w.types[there].value is None:  # nothing becomes no more than nothing
            one = w.add(Within(inclusive=True), after.least(1).operand, there)
            after += _Numbers(w, one) - after.least(1)
        found.append(_Along(axis, _Numbers(w, there), after, each.high))
    return found


def _scale(op: ResizeBilinear | ResizeNearestNeighbor, along: _Along) -> _Numbers:
    """How many entries of a picture one of the result stands for."""
    before, after = along.before, along.after
    if op.align_corners:
        before, after = before - 1, (after - 1).most(1)
    return before.cast(DType.FLOAT32) / after.cast(DType.FLOAT32)


def _nearest_pixels(op: ResizeNearestNeighbor, x: _Numbers, alongs: list[_Along]) -> _Numbers:
    for along in alongs:
        index = along.indices(DType.FLOAT32)
        at = (index + 0.5 if op.half_pixel_centers else index) * _scale(op, along)
        x = x.at(along.axis, along.inside(at.rounded() if op.align_corners else at.down()))
    return x


def _between_pixels(op: ResizeBilinear, x: _Numbers, alongs: list[_Along]) -> _Numbers:
    """Averages of four neighbours in float32."""
    type_ = x.w.types[x.operand]
    taken = []
    for along in alongs:
        index = along.indices(DType.FLOAT32)
        at = index * _scale(op, along)
        if op.half_pixel_centers:
            at = (index + 0.5) * _scale(op, along) - 0.5
        low = at.down().cast(DType.INT64).most(0)
        part = (at - low.cast(DType.FLOAT32)).along(along.axis, 4)
        taken.append((along.inside(low), along.inside(at.up()), part, part * -1 + 1))
    (top, bottom, down, up), (left, right, across, back) = taken
    rows = [(x.cast(DType.FLOAT32).at(1, places), share) for places, share in ((top, up), (bottom, down))]
    terms = [
        row.at(2, places) * share * beside for places, beside in ((left, back), (right, across)) for row, share in rows
    ]
    out = terms[0] + terms[1] + terms[2] + terms[3]
    return _stored(out if type_.dtype.is_float else out.rounded(), x)


def _between_bytes(op: ResizeBilinear, x: _Numbers, alongs: list[_Along]) -> _Numbers:
    """Averages of four neighbours in steps of 1/1024, halves away from zero."""
    taken = []
    for along in alongs:
        before, after = along.before, along.after
        if op.align_corners:
            before, after = before - 1, (after - 1).most(1)
        scale = (before * 1024 + after // 2) // after
        at = along.indices(DType.INT64) * scale
        if op.half_pixel_centers:
            at = at + scale // 2 - 512
        low = along.inside(at // 1024)
        part = (at - low * 1024).along(along.axis, 4)
        taken.append((low, along.inside((at * -1) // 1024 * -1), part, part * -1 + 1024))
    (top, bottom, down, up), (left, right, across, back) = taken
    wide = x.cast(DType.INT64)
    sides = [wide.at(1, top).at(2, each) * up + wide.at(1, bottom).at(2, each) * down for each in (left, right)]
    total = sides[0] * back + sides[1] * across
    magnitude = (total.most(total * -1) + (1 << 19)) // (1 << 20)
    return _stored(magnitude * total.least(1).most(-1), x)


def _stored(result: _Numbers, x: _Numbers) -> _Numbers:
    """Numbers as elements of a tensor's type."""
    w, type_ = x.w, x.w.types[x.operand]
    cast = result.cast(type_.dtype)
    return _Numbers(w, w.add(Copy(), cast.operand, quantization=type_.quantization)) if type_.quantization else cast


def _places(op: Interpolate, along: _Along) -> _Numbers:
    """For each element of the result along an axis, where it lies among those of `x`."""
    dtype = DType.FLOAT32 if op.interpolation is Interpolation.NEAREST else DType.FLOAT64
    before, after = along.before.cast(DType.FLOAT64), along.after.cast(DType.FLOAT64)
    index, scale = along.indices(dtype), (after / before).cast(dtype)
    if op.coordinates is Coordinates.ALIGN_CORNERS:
        return index * (before - 1).cast(dtype) / (after - 1).most(1).cast(dtype)
    if op.coordinates is Coordinates.ASYMMETRIC:
        return index / scale
    where = (index + 0.5) / scale - 0.5
    return where if op.coordinates is Coordinates.HALF_PIXEL else along.after.if_above(1, where, where * 0)


def _rounded(rounding: Rounding, where: _Numbers) -> _Numbers:
    match rounding:
        case Rounding.FLOOR:
            return where.down()
        case Rounding.CEIL:
            return where.up()
        case Rounding.UP_AT_HALF:
            return (where + 0.5).down()
        case _:
            return (where - 0.5).up()


def _between(op: Interpolate, x: _Numbers, alongs: list[_Along]) -> _Numbers:
    """Averages of two neighbours along each axis; an axis that stays as long as it is is not looked at."""
    wide, rank = x.cast(DType.FLOAT64), x.w.types[x.operand].rank
    for along in alongs:
        where = _places(op, along)
        first = where.down()
        terms = []
        for tap in (first, first + 1):
            far = tap - where
            share = (far.most(far * -1) * -1 + 1).most(0)
            terms.append((wide.at(along.axis, along.inside(tap)), share.along(along.axis, rank)))
        (near, share), (next_, rest) = terms
        changed = along.after - along.before
        wide = changed.most(changed * -1).if_above(0, near * share + next_ * rest, near)
    return _stored(wide, x)
