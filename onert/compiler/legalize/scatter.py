"""Scatters: rows are put into a table one after the other, so that rows for the same index combine in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from onert.ir import CallTypes, DType
from onert.ir.ops.data_movement.dense import SparseToDense
from onert.ir.ops.data_movement.element_indices import Combination, ScatterElements, ScatterSlices
from onert.ir.ops.data_movement.gather import PutRow, ScatterNd
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.reduction.segment import SegmentReduction, SegmentSum, UnsortedSegment
from onert.ir.ops.stablehlo.with_bodies import HloScatter
from onert.ir.shape import normalize_axis, static
from onert.ir.symbolic.trace import hint

from .decomposition import MOST_TABLED, Decomposition, moves
from .draft import Draft

Combine = Callable[[Draft, int, int], int]
"""Drafts the combination of a row of the table and the row that is put there."""


def replace_row(d: Draft, old: int, new: int) -> int:
    return new


def put_rows(d: Draft, table: int, places: int, rows: int, combine: Combine) -> int:
    """`table` [n, width] with each of `rows` [count, width] combined into the row that `places` [count] gives.

    Places are checked when they are used: an invalid row number is a run-time error.
    """
    count, width = d.shape(rows)
    if count == 0:
        return table
    if count == 1:
        return _put(d, table, places, rows, combine)

    def step(b: Draft, at: int, carried: Sequence[int]) -> Sequence[int]:
        table, places, rows = carried
        place = b.reshaped(b.gathered(places, at, 0), 1)
        row = b.reshaped(b.gathered(rows, at, 0), 1, width)
        return _put(b, table, place, row, combine), places, rows

    return d.counted_loop(count, (table, places, rows), step)[0]


def _put(d: Draft, table: int, place: int, row: int, combine: Combine) -> int:
    if combine is not replace_row:
        row = combine(d, d.gathered(table, place, 0), row)
    return d.moved(PutRow(), table, row, place)


def _combined(kind: BinaryKind) -> Combine:
    return lambda d, old, new: d.binary(kind, old, new)


def _flat(d: Draft, columns: Sequence[int], sizes: Sequence[int]) -> tuple[int, int]:
    """Flat row numbers of indices along several dimensions, and whether all indices are in range."""
    flat, inside = -1, -1
    for column, size in zip(columns, sizes, strict=True):
        column_inside = d.binary(
            BinaryKind.LOGICAL_AND,
            d.compared(ComparisonKind.GREATER_EQUAL, column, d.like(column, 0)),
            d.compared(ComparisonKind.LESS, column, d.like(column, size)),
        )
        inside = column_inside if inside < 0 else d.binary(BinaryKind.LOGICAL_AND, inside, column_inside)
        flat = column if flat < 0 else d.sum(d.product(flat, d.like(column, size)), column)
    return flat, inside


def _columns(d: Draft, vectors: int) -> list[int]:
    """The vectors' elements, one column `[count]` each."""
    count, depth = d.shape(vectors)
    return [d.reshaped(d.part(vectors, (0, axis), (count, 1)), count) for axis in range(depth)]


def _filled(d: Draft, value: int, *shape: int) -> int:
    return d.broadcast(d.reshaped(value, *(1,) * len(shape)), shape)


def _wide(d: Draft, indices: int, elements: int) -> int:
    """Indices in a type that can count `elements` elements."""
    return d.index(indices) if elements < 1 << 31 else d.cast(indices, DType.INT64)


# ---- StableHLO's scatter


def _why_not(op: HloScatter, types: CallTypes) -> str | None:
    x, updates = types.input(0), types.input(2)
    if op.function is None and not op.replaces:
        return "its function is a graph"
    if 0 in (*x.shape, *types.input(1).shape, *updates.shape):
        return "a tensor has no elements"
    if not op.replaces and x.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL):
        return f"elements of {x.dtype.text} are computed in another type"
    first = min(op.update_window_dims, default=updates.rank)
    if op.replaces and first < updates.rank - len(op.update_window_dims) and _indexed(op, types):
        return "its updates have window dimensions before scatter dimensions"
    return moves(op, types)


def _indexed(op: HloScatter, types: CallTypes) -> list[int]:
    """The window dimensions along which an update has a position: its window is smaller than the operand, or is
    shifted by an index."""
    x, updates = static(types.input(0).shape), static(types.input(2).shape)
    sizes = iter(updates[axis] for axis in sorted(op.update_window_dims))
    part = [1 if axis in op.inserted_window_dims else next(sizes) for axis in range(len(x))]
    return [
        axis
        for axis, size in enumerate(x)
        if axis not in op.inserted_window_dims and (part[axis] != size or axis in op.scatter_dims_to_operand_dims)
    ]


_COMBINATIONS = {
    None: Combination.REPLACE,
    BinaryKind.ADD: Combination.ADD,
    BinaryKind.MUL: Combination.MUL,
    BinaryKind.MAXIMUM: Combination.MAX,
    BinaryKind.MINIMUM: Combination.MIN,
}


def _why_not_slices(op: HloScatter, types: CallTypes) -> str | None:
    if not op.replaces and op.function not in _COMBINATIONS:
        return "ScatterSlices has no such function"
    return _why_not(op, types)


def _as_slices(d: Draft, op: HloScatter, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """ScatterSlices on rows of `x`; rows out of range are skipped"""

    def put(table: int, rows: int, flat: int, inside: int | None) -> int:
        at = flat if inside is None else d.chosen(inside, flat, d.like(flat, -1))
        combination = Combination.REPLACE if op.replaces else _COMBINATIONS[op.function]
        places = d.reshaped(at, d.shape(rows)[0], 1)
        scatter = ScatterSlices(combination, skips=True)
        return d.add(scatter, table, places, rows, quantization=(d.type(table).quantization,))

    return _scattered(d, op, types, operands, put)


def _scatter(d: Draft, op: HloScatter, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Rows of `x` with the updates' rows put in one after the other; an extra last row receives those out of range"""

    def put(table: int, rows: int, flat: int, inside: int | None) -> int:
        count, width = d.shape(table)
        at = flat if inside is None else d.chosen(inside, flat, d.like(flat, count))
        extra_row = _filled(d, d.like(table, 0), 1, width)
        longer = d.add(Concat(0), table, extra_row, quantization=(d.type(table).quantization,))
        combine = replace_row if op.function is None or op.replaces else _combined(op.function)
        return d.part(put_rows(d, longer, at, rows, combine), (0, 0), (count, width))

    return _scattered(d, op, types, operands, put)


Put = Callable[[int, int, int, int | None], int]
"""Drafts a table with rows put at flat row numbers, given a mask of those in range (None if all are)."""


def _scattered(d: Draft, op: HloScatter, types: CallTypes, operands: Sequence[int], put: Put) -> Sequence[int]:
    """`x` as a table of rows, into which `put` puts the updates' rows."""
    x, indices, updates = operands
    shape, update_shape = d.shape(x), d.shape(updates)
    partial = _indexed(op, types)
    indexed = sorted((*op.inserted_window_dims, *partial))
    full = [axis for axis in range(len(shape)) if axis not in indexed]
    window = dict(
        zip(
            (a for a in range(len(shape)) if a not in op.inserted_window_dims),
            sorted(op.update_window_dims),
            strict=True,
        )
    )
    batch = [axis for axis in range(len(update_shape)) if axis not in op.update_window_dims]
    order = (*batch, *(window[a] for a in partial), *(window[a] for a in full))
    width, count = math.prod(shape[a] for a in full), math.prod(shape[a] for a in indexed)
    rows = d.reshaped(d.transposed(updates, order), math.prod(update_shape) // width, width)
    table = d.reshaped(d.transposed(x, (*indexed, *full)), count, width)
    vectors = _index_vectors(d, op, _wide(d, indices, math.prod(shape)))
    places = [update_shape[axis] for axis in batch], [update_shape[window[a]] for a in partial]
    columns = [_coordinates(d, op, vectors, axis, partial, *places) for axis in indexed]
    if columns:
        flat, inside = _flat(d, columns, [shape[a] for a in indexed])
        found = put(table, rows, flat, inside)
    else:
        found = put(table, rows, d.broadcast(d.like(vectors, 0), (d.shape(rows)[0],)), None)
    split = d.reshaped(found, *(shape[a] for a in (*indexed, *full)))
    return [d.transposed(split, [(*indexed, *full).index(axis) for axis in range(len(shape))])]


def _index_vectors(d: Draft, op: HloScatter, indices: int) -> int:
    """The index vectors as [count, depth]."""
    rank = len(d.shape(indices))
    if op.index_vector_dim < rank:
        order = [axis for axis in range(rank) if axis != op.index_vector_dim]
        indices = d.transposed(indices, (*order, op.index_vector_dim))
        depth = d.shape(indices)[-1]
    else:
        depth = 1
    return d.reshaped(indices, math.prod(d.shape(indices)) // max(depth, 1), depth)


def _coordinates(
    d: Draft,
    op: HloScatter,
    vectors: int,
    axis: int,
    partial: Sequence[int],
    batch: Sequence[int],
    parts: Sequence[int],
) -> int:
    """The position of each row of the updates along a dimension: `[rows]`."""
    count, inner = math.prod(batch), math.prod(parts)
    if axis in op.scatter_dims_to_operand_dims:
        number = op.scatter_dims_to_operand_dims.index(axis)
        start = d.part(vectors, (0, number), (count, 1))
    else:
        start = _filled(d, d.like(vectors, 0), count, 1)
    if axis in partial:
        at = partial.index(axis)
        along = np.arange(parts[at]).reshape([-1 if i == at else 1 for i in range(len(parts))])
        offsets = np.broadcast_to(along, tuple(parts)).reshape(1, inner)
        start = d.sum(start, d.constant(offsets.astype(d.dtype(start).numpy)))
    return d.reshaped(d.broadcast(start, (count, inner)), count * inner)


# ---- TFLite's scatters


def _why_not_placed(op: ScatterNd | SparseToDense, types: CallTypes) -> str | None:
    if any(t is not None and 0 in t.shape for t in (*types.inputs, *types.outputs)):
        return "a tensor has no elements"
    return (
        moves(SparseToDense(), CallTypes((types.input(2),), types.outputs)) if isinstance(op, SparseToDense) else None
    )


def _why_not_added(op: ScatterNd, types: CallTypes) -> str | None:
    updates = types.input(1)
    if updates.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL):
        return f"elements of {updates.dtype.text} are added in another type"
    if updates.quantization is not None:
        return "its elements are quantised"
    return _why_not_placed(op, types)


def _scatter_nd(d: Draft, op: ScatterNd, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Zeros, to which rows are added one after the other"""
    indices, updates, _ = operands
    shape, depth = static(types.output.shape), d.shape(indices)[-1]
    count, width = math.prod(shape[:depth]), math.prod(shape[depth:])
    kind = BinaryKind.LOGICAL_OR if d.dtype(updates) is DType.BOOL else BinaryKind.ADD
    table = _filled(d, d.like(updates, 0), count, width)
    rows = d.reshaped(updates, math.prod(d.shape(updates)) // width, width)
    vectors = d.reshaped(_wide(d, indices, math.prod(shape)), d.shape(rows)[0], depth)
    return [d.reshaped(put_rows(d, table, _checked(d, vectors, shape[:depth]), rows, _combined(kind)), *shape)]


def _checked(d: Draft, vectors: int, sizes: Sequence[int]) -> int:
    """Flat row numbers; an index out of range becomes the row after the last, which does not exist."""
    flat, inside = _flat(d, _columns(d, vectors), sizes)
    return d.chosen(inside, flat, d.like(flat, math.prod(sizes)))


def _sparse(d: Draft, op: SparseToDense, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """The default value everywhere, with values put in one after the other"""
    indices, _, values, default = operands
    shape = static(types.output.shape)
    if not shape:
        shape = (1,)
    vectors = d.reshaped(_wide(d, indices, math.prod(shape)), math.prod(d.shape(indices)) // len(shape), len(shape))
    count = d.shape(vectors)[0]
    rows = d.reshaped(values, count, 1) if d.shape(values) else _filled(d, values, count, 1)
    table = _filled(d, default, math.prod(shape), 1)
    found = put_rows(d, table, _checked(d, vectors, shape), rows, replace_row)
    return [d.reshaped(found, *static(types.output.shape))]


# ---- ONNX's scatter


def _why_no_rows(op: ScatterElements, types: CallTypes) -> str | None:
    places = math.prod(static(types.input(1).shape))
    if 0 in types.input(0).shape and 0 not in types.input(1).shape:
        return "x has no elements, so no index is valid"
    return moves(op, types) if hint(places) <= MOST_TABLED else f"it has {places} indices"


def _scatter_elements(d: Draft, op: ScatterElements, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """ScatterSlices on the flattened elements, with flat indices"""
    x, indices, updates = operands
    shape, index_shape = d.shape(x), d.shape(indices)
    if 0 in index_shape:
        return [x]
    axis, total, count = normalize_axis(op.axis, len(shape)), math.prod(shape), math.prod(index_shape)
    indices = _wide(d, indices, total + 1)
    steps = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    along, inside = _flat(d, [indices], [shape[axis]])
    flat = d.product(along, d.like(indices, steps[axis]))
    for i, size in enumerate(index_shape):
        if i != axis:
            numbers = d.numbers(size, indices, [size if at == i else 1 for at in range(len(index_shape))])
            flat = d.sum(flat, d.product(numbers, d.like(indices, steps[i])))
    places = d.reshaped(d.chosen(inside, flat, d.like(indices, total)), count, 1)
    line = d.reshaped(x, total), places, d.reshaped(updates, count)
    found = d.add(ScatterSlices(op.combination), *line, quantization=(d.type(x).quantization,))
    return [d.reshaped(found, *shape)]


# ---- segments

_FUNCTIONS = {SegmentReduction.SUM: BinaryKind.ADD, SegmentReduction.PROD: BinaryKind.MUL}


def _why_no_segments(op: UnsortedSegment | SegmentSum, types: CallTypes) -> str | None:
    x = types.input(0)
    if x.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64):
        return f"elements of {x.dtype.text} are combined in another type"
    if any(t is not None and 0 in t.shape for t in (*types.inputs, *types.outputs)):
        return "a tensor has no elements"
    return "its elements are quantised" if x.quantization != types.output.quantization else None


def _extreme(kind: ComparisonKind) -> Combine:
    """The larger or smaller of two rows' elements; NaN in the new row is ignored."""
    return lambda d, old, new: d.chosen(d.compared(kind, new, old), new, old)


def _unsorted(d: Draft, op: UnsortedSegment, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """The neutral element everywhere, with rows combined in one by one; an extra first row receives skipped ones"""
    data, ids, _ = operands
    count, *rest = static(types.output.shape)
    width = math.prod(rest)
    start = d.constant(np.array(op.kind.initial(d.dtype(data).numpy), d.dtype(data).numpy))
    total = math.prod(d.shape(ids))
    rows = d.reshaped(data, total, width)
    segments = d.reshaped(d.index(ids), total)
    shifted = d.sum(d.binary(BinaryKind.MINIMUM, segments, d.like(segments, count)), d.like(segments, 1))
    places = d.binary(BinaryKind.MAXIMUM, shifted, d.like(segments, 0))
    if op.kind in _FUNCTIONS:
        combine = _combined(_FUNCTIONS[op.kind])
    else:
        combine = _extreme(ComparisonKind.GREATER if op.kind is SegmentReduction.MAX else ComparisonKind.LESS)
    found = put_rows(d, _filled(d, start, count + 1, width), places, rows, combine)
    return [d.reshaped(d.part(found, (1, 0), (count, width)), count, *rest)]


def _segment_sum(d: Draft, op: SegmentSum, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Zeros, to which rows are added one after the other"""
    data, ids = operands
    count, *rest = static(types.output.shape)
    width = math.prod(rest)
    rows = d.reshaped(data, d.shape(data)[0], width)
    found = put_rows(d, _filled(d, d.like(data, 0), count, width), d.index(ids), rows, _combined(BinaryKind.ADD))
    return [d.reshaped(found, count, *rest)]


DECOMPOSITIONS = {
    ScatterElements: (Decomposition(_why_no_rows, _scatter_elements),),
    HloScatter: (Decomposition(_why_not_slices, _as_slices), Decomposition(_why_not, _scatter)),
    ScatterNd: (Decomposition(_why_not_added, _scatter_nd),),
    SparseToDense: (Decomposition(_why_not_placed, _sparse),),
    UnsortedSegment: (Decomposition(_why_no_segments, _unsorted),),
    SegmentSum: (Decomposition(_why_no_segments, _segment_sum),),
}
