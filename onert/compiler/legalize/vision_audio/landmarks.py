"""Landmark transforms and image warping as matrix products and bilinear sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onert.compiler.legalize.decomposition import Decomposition
from onert.compiler.legalize.draft import Draft
from onert.ir import Array, CallTypes, DType, TensorType
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.vision_audio.landmarks import DenseImageWarp, LandmarksToMatrix, TransformLandmarks, TransformTensor
from onert.ir.shape import static
from onert.ir.symbolic.functions import of_lengths

from .sampling import Tap, bounded, coordinate, inside, weighted_sum, why_not_picked


def _to_matrix(d: Draft, op: LandmarksToMatrix, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Concat(axes times sizes, corner, rows of the identity matrix)"""
    (landmarks,) = operands
    batch = d.shape(landmarks)[0]
    points = d.part(landmarks, (0, 0, 0), (batch, d.shape(landmarks)[1], 2))
    left, right = (d.part(points, (0, at, 0), (batch, 1, 2)) for at in (op.left, op.right))
    along = d.difference(right, left)
    length = d.unary(UnaryKind.SQRT, d.reduced(Reduction.SUM, d.product(along, along), (2,), keep_dims=True))
    u = d.binary(BinaryKind.DIV, along, length)
    x, y = (d.part(u, (0, 0, at), (batch, 1, 1)) for at in (0, 1))
    axes = d.add(Concat(1), u, d.add(Concat(2), d.unary(UnaryKind.NEG, y), x))
    subset = d.gathered(points, d.constant(np.array(op.subset, np.int32)), 1)
    rotated = d.add(BatchMatMul(adjoint_y=True), subset, axes)
    low, high = (d.reduced(kind, rotated, (1,), keep_dims=True) for kind in (Reduction.MIN, Reduction.MAX))
    center = d.product(d.add(BatchMatMul(), d.sum(low, high), axes), d.real(0.5))
    scales = np.array([op.scale_x / op.width, op.scale_y / op.height], np.float32)
    size = d.transposed(d.product(d.difference(high, low), d.constant(scales)), (0, 2, 1))
    steps = d.product(axes, size)
    halves = d.constant(np.array([[[op.width / 2], [op.height / 2]]], np.float32))
    corner = d.difference(center, d.reduced(Reduction.SUM, d.product(steps, halves), (1,), keep_dims=True))
    upper = d.add(Concat(1), steps, d.broadcast(d.constant(np.zeros((1, 1, 2), np.float32)), (batch, 1, 2)), corner)
    lower = np.array([[[0, 0], [0, 0], [1, 0], [0, 1]]], np.float32)
    columns = d.add(Concat(2), upper, d.broadcast(d.constant(lower), (batch, 4, 2)))
    return [d.transposed(columns, (0, 2, 1))]


def _transformed_points(d: Draft, points: int, matrix: int) -> int:
    """Points `[batch, count, 2]` transformed by the matrix: times its rotation, plus its translation."""
    batch = d.shape(matrix)[0]
    rotated = d.add(BatchMatMul(adjoint_y=True), points, d.part(matrix, (0, 0, 0), (batch, 2, 2)))
    return d.sum(rotated, d.transposed(d.part(matrix, (0, 0, 3), (batch, 2, 1)), (0, 2, 1)))


def _landmarks(d: Draft, op: TransformLandmarks, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Concat(Add(BatchMatMul(points, matrix), translation), rest)"""
    points, matrix = operands
    batch, count, parts = d.shape(points)
    transformed = _transformed_points(d, d.part(points, (0, 0, 0), (batch, count, 2)), matrix)
    return [
        transformed
        if parts == 2
        else d.add(Concat(2), transformed, d.part(points, (0, 0, 2), (batch, count, parts - 2)))
    ]


def _transformed(d: Draft, op: TransformTensor, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Bilinear samples at the places that the matrix maps to; 0 outside"""
    features, matrix = operands
    batch, *sizes, channels = d.shape(features)
    rows, columns = np.mgrid[0 : op.height, 0 : op.width].astype(np.float32)
    grid = d.constant(np.stack([columns.reshape(-1), rows.reshape(-1)], axis=1)[None])
    source = _transformed_points(d, d.broadcast(grid, (batch, op.height * op.width, 2)), matrix)
    taps = []
    for axis, size in enumerate(sizes):
        position = coordinate(d, source, 1 - axis)
        fraction = d.difference(position, d.unary(UnaryKind.FLOOR, position))
        floor = d.cast(d.unary(UnaryKind.FLOOR, bounded(d, position)), DType.INT32)
        neighbours = (floor, d.difference(d.real(1), fraction)), (d.sum(floor, d.number(1)), fraction)
        taps.append([Tap(d.clamped(at, 0, size - 1), part, inside(d, at, size)) for at, part in neighbours])
    found = weighted_sum(d, d.reshaped(features, batch, math.prod(sizes), channels), taps, sizes)
    return [d.reshaped(found, *static(types.output.shape))]


@of_lengths
def _grid(*sizes: int) -> Array:
    """The places of a picture's elements: float32 [1, height, width, 2]."""
    return np.moveaxis(np.indices(sizes), 0, -1)[None].astype(np.float32)


def _warped(d: Draft, op: DenseImageWarp, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Bilinear samples at the places that the flow gives"""
    image, flow = operands
    batch, *sizes, channels = d.shape(image)
    grid = d.per_length(TensorType(DType.FLOAT32, (1, *sizes, 2)), _grid, *sizes)
    source = d.reshaped(d.difference(grid, flow), batch, math.prod(sizes), 2)
    source = d.chosen(d.compared(ComparisonKind.EQUAL, source, source), source, d.real(0))
    taps = []
    for axis, size in enumerate(sizes):
        position = coordinate(d, source, axis)
        base = d.clamped(d.unary(UnaryKind.FLOOR, position), 0, size - 2)
        fraction, first = d.clamped(d.difference(position, base), 0, 1), d.cast(base, DType.INT32)
        taps.append([Tap(first, d.difference(d.real(1), fraction)), Tap(d.sum(first, d.number(1)), fraction)])
    found = weighted_sum(d, d.reshaped(image, batch, math.prod(sizes), channels), taps, sizes)
    return [d.reshaped(found, *static(types.output.shape))]


DECOMPOSITIONS = {
    LandmarksToMatrix: (Decomposition(why_not_picked, _to_matrix),),
    TransformLandmarks: (Decomposition(why_not_picked, _landmarks),),
    TransformTensor: (Decomposition(why_not_picked, _transformed),),
    DenseImageWarp: (Decomposition(why_not_picked, _warped),),
}
