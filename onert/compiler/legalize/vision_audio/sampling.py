"""Sampling images at computed points: the neighbouring elements are gathered and summed by their weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product

import numpy as np
from attrs import field, frozen

from onert.compiler.legalize.decomposition import MOST_TABLED, Decomposition, only_float32
from onert.compiler.legalize.draft import Draft
from onert.ir import Array, CallTypes, DType, Op, TensorType
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.vision_audio.interpolate import Interpolation
from onert.ir.ops.vision_audio.sampling import DeformConv, GridSample, Outside, RoiAlign
from onert.ir.shape import static
from onert.ir.symbolic.functions import of_lengths
from onert.ir.symbolic.trace import hint
from onert.ir.value import Value

_MOST_TAPS = 16
"""The most elements that one sample is interpolated from: the graph has a few operations for each."""
_MOST_SAMPLES = 4
"""The most samples along each side of a region's cell, for the same reason."""
_FAR = 1e9
"""Coordinates are clamped to this magnitude; NaN and infinite ones become its negative."""


@frozen
class Tap(Value):
    """Positions along an axis as int32, their float weights (None if all are 1), and a mask of those that count (None
    if all do, or the weights account for it)."""

    index: int
    weight: int | None
    mask: int | None = field(default=None)


def _combined(d: Draft, x: int | None, y: int | None, kind: BinaryKind) -> int | None:
    """A binary function if both operands are present, otherwise the one that is."""
    return y if x is None else x if y is None else d.binary(kind, x, y)


def weighted_sum(d: Draft, rows: int, taps: Sequence[Sequence[Tap]], sizes: Sequence[int]) -> int:
    """The sum of Gather(rows, places) times weights over all combinations of one tap per axis.

    `rows` is float32 [batch, elements of the image, channels], places and weights are [batch, points]; the result is
    [batch, points, channels].
    """
    total: int | None = None
    for first, *others in product(*taps):
        flat, weight, mask = first.index, first.weight, first.mask
        for tap, size in zip(others, sizes[1:], strict=True):
            flat = d.sum(d.product(flat, d.number(size)), tap.index)
            weight = _combined(d, weight, tap.weight, BinaryKind.MUL)
            mask = _combined(d, mask, tap.mask, BinaryKind.LOGICAL_AND)
        part = d.gathered(rows, flat, 1, 1)
        if mask is not None:
            part = d.chosen(d.reshaped(mask, *d.shape(flat), 1), part, d.real(0))
        if weight is not None:
            part = d.product(part, d.reshaped(d.cast(weight, DType.FLOAT32), *d.shape(flat), 1))
        total = part if total is None else d.sum(total, part)
    assert total is not None
    return total


def _rows(d: Draft, x: int) -> int:
    """An image [batch, channels, *sizes] as [batch, elements, channels]."""
    batch, channels, *sizes = d.shape(x)
    return d.reshaped(d.transposed(x, (0, *range(2, len(sizes) + 2), 1)), batch, math.prod(sizes), channels)


def coordinate(d: Draft, points: int, axis: int) -> int:
    """One coordinate [batch, count] of points [batch, count, axes]."""
    batch, count, _ = d.shape(points)
    return d.reshaped(d.part(points, (0, 0, axis), (batch, count, 1)), batch, count)


def bounded(d: Draft, position: int) -> int:
    """Coordinates clamped to a range that integers represent; NaN and infinite ones become far outside."""
    finite = d.compared(ComparisonKind.LESS, d.unary(UnaryKind.ABS, position), d.like(position, math.inf))
    return d.clamped(d.chosen(finite, position, d.like(position, -_FAR)), -_FAR, _FAR)


def inside(d: Draft, index: int, size: int) -> int:
    """A mask of the positions from 0 to size - 1."""
    return d.binary(
        BinaryKind.LOGICAL_AND,
        d.compared(ComparisonKind.GREATER_EQUAL, index, d.number(0)),
        d.compared(ComparisonKind.LESS, index, d.number(size)),
    )


def why_not_picked(op: Op, types: CallTypes) -> str | None:
    """Why an operation is not decomposed: there are no elements to pick from, or a tensor is quantised."""
    present = [t for t in (*types.inputs, *types.outputs) if t is not None]
    if any(t.quantization is not None for t in present):
        return "a tensor is quantised"
    empty = any(t is not None and 0 in t.shape for t in types.inputs) and 0 not in types.output.shape
    return "a tensor has no elements" if empty else None


# ---- grids of points


def _why_not_sampled(op: GridSample, types: CallTypes) -> str | None:
    x, grid = types.input(0), types.input(1)
    if x.dtype is not DType.FLOAT32 or grid.dtype not in (DType.FLOAT32, DType.FLOAT64):
        return f"{x.dtype.text} at points in {grid.dtype.text} has no decomposition"
    taps = {Interpolation.NEAREST: 1, Interpolation.LINEAR: 2, Interpolation.CUBIC: 4}[op.sampling] ** (x.rank - 2)
    return why_not_picked(op, types) if taps <= _MOST_TAPS else f"each sample is interpolated from {taps} elements"


def _sampled(d: Draft, op: GridSample, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Transpose of the samples at the grid's points"""
    x, grid = operands
    batch, _, *sizes = d.shape(x)
    axes, points = len(sizes), math.prod(static(types.output.shape)[2:])
    grid_points = d.reshaped(d.cast(grid, DType.FLOAT64), batch, points, axes)
    taps = []
    for axis, size in enumerate(sizes):
        position = _position(d, coordinate(d, grid_points, axes - 1 - axis), size, op.corners)
        taps.append([_in_range(d, op.outside, op.corners, tap, size) for tap in _neighbours(d, op.sampling, position)])
    found = weighted_sum(d, _rows(d, x), taps, sizes)
    return [d.reshaped(d.transposed(found, (0, 2, 1)), *static(types.output.shape))]


def _position(d: Draft, at: int, size: int, corners: bool) -> int:
    """Points from -1 to 1 as positions among `size` elements."""
    one, two = d.like(at, 1), d.like(at, 2)
    shifted = d.sum(at, one)
    if corners:
        position = d.product(d.binary(BinaryKind.DIV, shifted, two), d.like(at, size - 1))
    else:
        position = d.binary(BinaryKind.DIV, d.difference(d.product(shifted, d.like(at, size)), one), two)
    return bounded(d, position)


def _neighbours(d: Draft, sampling: Interpolation, position: int) -> list[Tap]:
    """The elements beside coordinates, which must be in the range of integers."""
    if sampling is Interpolation.NEAREST:
        return [Tap(d.cast(d.unary(UnaryKind.ROUND, position), DType.INT32), None)]
    low = d.unary(UnaryKind.FLOOR, position)
    first, t = d.cast(low, DType.INT32), d.difference(position, low)
    if sampling is Interpolation.LINEAR:
        return [Tap(first, d.difference(d.like(t, 1), t)), Tap(d.sum(first, d.number(1)), t)]
    return [Tap(d.sum(first, d.number(k)), _keys(d, t, k)) for k in (-1, 0, 1, 2)]


def _keys(d: Draft, t: int, k: int) -> int:
    """The weight, by Keys' kernel with a = -0.75, of the element at distance `k - t`; t is from 0 to 1."""
    a = -0.75
    x = d.difference(t, d.like(t, k)) if k <= 0 else d.difference(d.like(t, k), t)
    cubic = (a + 2, -(a + 3), 0.0, 1.0) if k in (0, 1) else (a, -5 * a, 8 * a, -4 * a)
    out = d.like(t, cubic[0])
    for factor in cubic[1:]:
        out = d.sum(d.product(out, x), d.like(t, factor))
    return out


def _in_range(d: Draft, outside: Outside, corners: bool, tap: Tap, size: int) -> Tap:
    """A tap with its positions mapped into 0 .. size - 1; with `Outside.ZEROS`, those outside get weight 0."""
    index, weight = tap.index, tap.weight
    if outside is Outside.ZEROS:
        is_inside = inside(d, index, size)
        weight = d.cast(is_inside, DType.FLOAT64) if weight is None else d.chosen(is_inside, weight, d.like(weight, 0))
    elif outside is Outside.REFLECTION:
        period = max(2 * (size - 1) if corners else 2 * size, 1)
        phase = d.binary(BinaryKind.FLOOR_MOD, index, d.number(period))
        mirrored = d.difference(d.number(period - (0 if corners else 1)), phase)
        index = d.chosen(d.compared(ComparisonKind.LESS, phase, d.number(size)), phase, mirrored)
    return Tap(d.clamped(index, 0, size - 1), weight)


# ---- deformable convolutions


def _why_not_deformed(op: DeformConv, types: CallTypes) -> str | None:
    if 2 ** (types.input(0).rank - 2) > _MOST_TAPS:
        return "each sample is interpolated from too many elements"
    offsets = math.prod(static(types.input(2).shape))
    if hint(offsets) > MOST_TABLED:
        return f"it has {offsets} offsets"
    return why_not_picked(op, types) or only_float32(op, types)


def _deformed(d: Draft, op: DeformConv, types: CallTypes, operands: Sequence[int | None]) -> Sequence[int]:
    """FullyConnected(samples at the moved taps), group by group"""
    x, weight, offset, bias, mask = [*operands, None, None][:5]
    assert x is not None
    assert weight is not None
    assert offset is not None
    (batch, channels, *sizes), (outputs, _, *kernel), spatial = d.shape(x), d.shape(weight), d.shape(offset)[2:]
    axes, taps, count = len(sizes), math.prod(kernel), math.prod(spatial)
    displacements = d.reshaped(offset, batch, op.offset_groups, taps, axes, count)
    displacements = d.cast(
        d.transposed(displacements, (1, 3, 0, 4, 2)), DType.FLOAT64
    )  # [groups, axes, batch, count, taps]
    weights = None if mask is None else d.reshaped(mask, batch, op.offset_groups, taps, count)
    rows, per = _rows(d, x), channels // op.offset_groups
    columns = []
    type_, window = TensorType(DType.FLOAT64, (1, count * taps)), tuple(kernel)
    positions = [d.per_length(type_, partial(_tap_positions, op, window, axis), *spatial) for axis in range(axes)]
    for group in range(op.offset_groups):
        sides = []
        for axis, size in enumerate(sizes):
            displacement = d.part(displacements, (group, axis, 0, 0, 0), (1, 1, batch, count, taps))
            position = d.sum(d.reshaped(displacement, batch, count * taps), positions[axis])
            neighbours = _neighbours(d, Interpolation.LINEAR, bounded(d, position))
            sides.append([_in_range(d, Outside.ZEROS, False, tap, size) for tap in neighbours])
        group_rows = d.part(rows, (0, 0, group * per), (batch, math.prod(sizes), per))
        found = weighted_sum(d, group_rows, sides, sizes)
        if weights is not None:
            factor = d.transposed(d.part(weights, (0, group, 0, 0), (batch, 1, taps, count)), (0, 3, 2, 1))
            found = d.product(found, d.reshaped(factor, batch, count * taps, 1))
        columns.append(d.reshaped(found, batch * count, taps, per))
    samples = columns[0] if len(columns) == 1 else d.add(Concat(2), *columns)
    each, wide = outputs // op.groups, channels // op.groups
    results = []
    for group in range(op.groups):
        terms = d.part(samples, (0, 0, group * wide), (batch * count, taps, wide))
        filters = d.part(weight, (group * each, *[0] * (axes + 1)), (each, wide, *kernel))
        filters = d.transposed(d.reshaped(filters, each, wide, taps), (0, 2, 1))
        terms, filters = d.reshaped(terms, batch * count, taps * wide), d.reshaped(filters, each, taps * wide)
        results.append(d.rows_times(terms, filters, None))
    out = results[0] if len(results) == 1 else d.add(Concat(1), *results)
    out = out if bias is None else d.sum(out, bias)
    return [d.reshaped(d.transposed(d.reshaped(out, batch, count, outputs), (0, 2, 1)), *static(types.output.shape))]


@of_lengths
def _tap_positions(op: DeformConv, kernel: tuple[int, ...], axis: int, *spatial: int) -> Array:
    """The position along an axis of each tap of each result before it is moved: float64 [1, results * taps]."""
    first = np.indices(spatial)[axis].reshape(-1, 1) * op.strides[axis] - op.pads[axis]
    taps = np.indices(kernel)[axis].reshape(-1) * op.dilations[axis]
    positions: Array = (first + taps).reshape(1, -1).astype(np.float64)
    return positions


# ---- regions


def _why_not_aligned(op: RoiAlign, types: CallTypes) -> str | None:
    if not 1 <= op.samples <= _MOST_SAMPLES:
        return f"a cell has {op.samples or 'a size-dependent number of'} samples along each side"
    floats = CallTypes(types.inputs[:2], types.outputs)
    return why_not_picked(op, types) or only_float32(op, floats)


def _aligned(d: Draft, op: RoiAlign, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """The mean, or the maximum, of Gather(x, places) times weights, over a cell's samples and the pixels beside them

    A region with an invalid image number or a non-finite corner reads an invalid pixel, which is a run-time error.
    """
    x, regions, batches = operands
    (images, channels, *sizes), count = d.shape(x), d.shape(regions)[0]
    wide = d.cast(regions, DType.FLOAT64)
    finite = d.compared(ComparisonKind.LESS, d.unary(UnaryKind.ABS, wide), d.like(wide, math.inf))
    corners = d.difference(d.product(wide, d.like(wide, op.scale)), d.like(wide, 0.5 * op.half_pixel))
    image_index = d.cast(d.clamped(batches, -1, images), DType.INT32)
    image_index = d.chosen(d.reduced(Reduction.ALL, finite, (1,)), image_index, d.number(-1))
    first = d.reshaped(d.product(image_index, d.number(math.prod(sizes))), count, 1, 1)
    cells = op.rows, op.columns
    sides = [_cells(d, op, corners, 1 - axis, n, size) for axis, (n, size) in enumerate(zip(cells, sizes, strict=True))]
    rows = d.reshaped(_rows(d, x), images * math.prod(sizes), channels)
    total: int | None = None
    for down, across in product(*sides):
        lines = d.sum(d.product(d.reshaped(down.index, count, op.rows, 1), d.number(sizes[1])), first)
        flat = d.sum(lines, d.reshaped(across.index, count, 1, op.columns))
        assert down.weight is not None
        assert across.weight is not None
        weight = d.product(d.reshaped(down.weight, count, op.rows, 1), d.reshaped(across.weight, count, 1, op.columns))
        factors = d.reshaped(d.cast(weight, DType.FLOAT32), count, *cells, 1)
        part = d.product(d.gathered(rows, flat, 0), factors)
        kind = BinaryKind.MAXIMUM if op.largest else BinaryKind.ADD
        total = part if total is None else d.binary(kind, total, part)
    assert total is not None
    out = total if op.largest else d.product(total, d.real(1 / op.samples**2))
    return [d.transposed(out, (0, 3, 1, 2))]


def _cells(d: Draft, op: RoiAlign, corners: int, start: int, cells: int, size: int) -> Iterable[Tap]:
    """The two pixels beside each sample of the regions' cells along one side, as [regions, cells]."""
    count = d.shape(corners)[0]
    begin, end = (d.part(corners, (0, at), (count, 1)) for at in (start, start + 2))
    side = d.difference(end, begin)
    if not op.half_pixel:
        side = d.binary(BinaryKind.MAXIMUM, side, d.like(side, 1))
    found = []
    for sample in range(op.samples):
        steps = d.constant(np.arange(cells)[None] + (sample + 0.5) / op.samples)
        at = d.sum(begin, d.binary(BinaryKind.DIV, d.product(steps, side), d.like(side, cells)))
        is_inside = d.binary(
            BinaryKind.LOGICAL_AND,
            d.compared(ComparisonKind.GREATER_EQUAL, at, d.like(at, -1)),
            d.compared(ComparisonKind.LESS_EQUAL, at, d.like(at, size)),
        )
        for tap in _neighbours(d, Interpolation.LINEAR, d.clamped(at, 0, size - 1)):
            assert tap.weight is not None
            weight = d.chosen(is_inside, tap.weight, d.like(tap.weight, 0))
            found.append(Tap(d.clamped(tap.index, 0, size - 1), weight))
    return found


DECOMPOSITIONS = {
    GridSample: (Decomposition(_why_not_sampled, _sampled),),
    DeformConv: (Decomposition(_why_not_deformed, _deformed),),
    RoiAlign: (Decomposition(_why_not_aligned, _aligned),),
}
