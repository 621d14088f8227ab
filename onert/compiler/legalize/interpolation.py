"""Tensors in another size, as images are resized, and as elements gathered or multiplied along each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from onert.ir import Array, CallTypes
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor
from onert.ir.shape import static

from .decomposition import Decomposition, moves, only_float32
from .draft import Draft

_DENSE = 64
"""Up to so many elements along an axis a product with all shares is less work than gathering those that count."""
_CLOSE = 1e-6
"""Shares that differ by so much at most are the same: what float32 resolves."""
_MODES = tuple(product((False, True), (False, True)))


def _why_not(op: Interpolate, types: CallTypes) -> str | None:
    if any(t is not None and t.value is None for t in types.inputs[1:]):
        return "its sizes are not known before the run"
    if op.coordinates is Coordinates.CROP:
        return "it has elements outside of its operand"
    if 0 in (*types.input(0).shape, *types.output.shape):
        return "a tensor has no elements"
    if op.interpolation is Interpolation.NEAREST:
        return moves(op, types)
    return only_float32(op, CallTypes((types.input(0),), types.outputs))


def _sized(op: Interpolate, types: CallTypes) -> list[tuple[int, int, int, int]]:
    """Each axis: its number among those of the operation, itself, its length before and after."""
    before, after = static(types.input(0).shape), static(types.output.shape)
    return [(at, axis, before[axis], after[axis]) for at, axis in enumerate(op.axes)]


def _with_scales(op: Interpolate, types: CallTypes) -> Interpolate:
    return op.scaled(types.inputs[2] if len(types.inputs) > 2 and types.inputs[1] is None else None)


def _interpolated(d: Draft, op: Interpolate, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """ResizeNearestNeighbor(x) or ResizeBilinear(x) where one has the same rule; else Gather or a product, each axis"""
    op, x = _with_scales(op, types), operands[0]
    axes = _sized(op, types)
    if op.interpolation is Interpolation.NEAREST:
        places = {axis: op.nearest(at, before, after) for at, axis, before, after in axes}
        image = _nearest_image(d, x, types, places)
        if image is not None:
            return [image]
        for axis, taken in places.items():
            x = d.moved(Gather(axis), x, d.constant(taken.astype(np.int32)))
        return [x]
    shares = {axis: op.weights(at, before, after)[0] for at, axis, before, after in axes}
    image = _weighted_image(d, x, types, shares)
    if image is not None:
        return [image]
    for axis, weights in shares.items():
        x = _along(d, x, axis, weights)
    return [x]


def _is_image(types: CallTypes, axes: Sequence[int]) -> bool:
    return types.input(0).rank == 4 and set(axes) <= {1, 2}


def _size(d: Draft, types: CallTypes) -> int:
    _, height, width, _ = static(types.output.shape)
    return d.constant(np.array([height, width], np.int32))


def _nearest_image(d: Draft, x: int, types: CallTypes, places: dict[int, Array]) -> int | None:
    if not _is_image(types, list(places)):
        return None
    before, after = types.input(0).shape, types.output.shape
    for mode in _MODES:
        op = ResizeNearestNeighbor(*mode)
        found = {axis: op.nearest(after[axis] or 0, before[axis] or 0) for axis in (1, 2)}
        wanted = {axis: places.get(axis, np.arange(before[axis] or 0)) for axis in (1, 2)}
        if all(np.array_equal(found[axis], wanted[axis]) for axis in (1, 2)):
            return d.moved(op, x, _size(d, types))
    return None


def _weighted_image(d: Draft, x: int, types: CallTypes, shares: dict[int, Array]) -> int | None:
    if not _is_image(types, list(shares)):
        return None
    before, after = types.input(0).shape, types.output.shape
    for mode in _MODES[:3]:
        op = ResizeBilinear(*mode)
        found = {axis: _shares(op, after[axis] or 0, before[axis] or 0) for axis in (1, 2)}
        wanted = {axis: shares.get(axis, np.eye(before[axis] or 0)) for axis in (1, 2)}
        if all(np.abs(found[axis] - wanted[axis]).max() <= _CLOSE for axis in (1, 2)):
            return d.add(op, x, _size(d, types))
    return None


def _shares(op: ResizeBilinear, count: int, inputs: int) -> Array:
    """The share of each input in each output along an axis."""
    low, high, distance = op.positions(count, inputs)
    out = np.zeros((count, inputs))
    np.add.at(out, (np.arange(count), low), 1 - distance)
    np.add.at(out, (np.arange(count), high), distance)
    return out


def _along(d: Draft, x: int, axis: int, shares: Array) -> int:
    """The sums of elements along an axis by their shares [after, before]."""
    shape = d.shape(x)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    after, before = shares.shape
    result = (*shape[:axis], after, *shape[axis + 1 :])
    if before <= _DENSE:
        weights = d.constant(shares.astype(np.float32))
        if inner == 1:
            return d.reshaped(d.rows_times(d.reshaped(x, outer, before), weights, None), *result)
        return d.reshaped(d.add(BatchMatMul(), weights, d.reshaped(x, outer, before, inner)), *result)
    count = int((shares != 0).sum(axis=1).max())
    taps = np.sort(np.argsort(shares == 0, axis=1, kind="stable")[:, :count], axis=1)
    each = np.take_along_axis(shares, taps, 1).astype(np.float32)
    total: int | None = None
    for i in range(count):
        taken = d.moved(Gather(axis), x, d.constant(taps[:, i].astype(np.int32)))
        column = d.constant(each[:, i].reshape(after, *(1,) * (len(shape) - 1 - axis)))
        part = d.product(taken, column)
        total = part if total is None else d.sum(total, part)
    assert total is not None
    return total


DECOMPOSITIONS = {Interpolate: (Decomposition(_why_not, _interpolated),)}
