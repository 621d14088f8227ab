"""Data movement (slices, repetitions, reshapes) as gathers with constant index tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType
from onert.ir.ops.data_movement.fill import Fill, Range, Within
from onert.ir.ops.data_movement.gather import Gather, PutRow
from onert.ir.ops.data_movement.joining import Concat, Split
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastArgs, BroadcastTo, Slice, StridedSlice
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import ComparisonKind
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.shape import normalize_axis, static

from .decomposition import Decomposition, moves
from .draft import Draft

MOST_INDICES = 1 << 16
"""The most entries of one index table."""
_EXACT_UP_TO = {DType.FLOAT32: 1 << 24, DType.INT32: 1 << 31, DType.INT64: 1 << 62}
"""Up to which number each type counts exactly."""


def _why_no_tables(types: CallTypes, axes: Sequence[int]) -> str | None:
    """Why the result is not gathered with an index table for each of these axes."""
    if any(t is not None and 0 in t.shape for t in (*types.inputs, *types.outputs)):
        return "a tensor has no elements"
    longest = max((static(types.output.shape)[axis] for axis in axes), default=0)
    return (
        None if longest <= MOST_INDICES else f"a table would have {longest} elements, expected at most {MOST_INDICES}"
    )


def _sliced_axes(types: CallTypes) -> list[int]:
    """The axes along which a slice is shorter than its operand."""
    pairs = zip(static(types.input(0).shape), static(types.output.shape), strict=True)
    return [axis for axis, (before, after) in enumerate(pairs) if before != after]


def _why_no_slice(op: Slice, types: CallTypes) -> str | None:
    if types.input(1).value is None:
        return "its begin is not known before the run"
    return moves(op, types) or _why_no_tables(types, _sliced_axes(types))


def _table(start: int, count: int) -> Array:
    return np.arange(start, start + count, dtype=np.int32)


def _slice(d: Draft, op: Slice, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Gather(x, [begin, begin + 1 ..]), axis by axis"""
    x, begin = operands[0], types.input(1).value
    assert begin is not None
    for axis in _sliced_axes(types):
        table = _table(int(begin.reshape(-1)[axis]), static(types.output.shape)[axis])
        x = d.gathered(x, d.constant(table), axis)
    return [x]


def _why_no_split(op: Split, types: CallTypes) -> str | None:
    if types.input(0).value is None:
        return "the axis is not known before the run"
    return moves(op, CallTypes(types.inputs[1:], types.outputs[:1])) or _why_no_tables(types, ())


def _split(d: Draft, op: Split, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """A Slice for each part"""
    x, axis = operands[1], types.input(0).value
    assert axis is not None
    at, size = normalize_axis(int(axis.reshape(-1)[0]), types.input(1).rank), static(types.output.shape)
    begins = ([n * size[at] if i == at else 0 for i in range(len(size))] for n in range(op.count))
    return [d.part(x, begin, size) for begin in begins]


def _repeated_axes(types: CallTypes) -> list[int]:
    """The axes along which elements are repeated."""
    result = static(types.output.shape)
    operand = (1,) * (len(result) - types.input(0).rank) + static(types.input(0).shape)
    return [axis for axis, (before, after) in enumerate(zip(operand, result, strict=True)) if before != after]


def _why_not_repeated(op: BroadcastTo, types: CallTypes) -> str | None:
    return moves(op, types) or _why_no_tables(types, _repeated_axes(types))


def _repeated(d: Draft, op: BroadcastTo, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Gather(Reshape(x), [0, 0 ..]), axis by axis"""
    shape = d.shape(operands[0])
    x = d.reshaped(operands[0], *(1,) * (types.output.rank - len(shape)), *shape)
    for axis in _repeated_axes(types):
        x = d.gathered(x, d.constant(np.zeros(static(types.output.shape)[axis], np.int32)), axis)
    return [x]


def _why_not_filled(op: Fill, types: CallTypes) -> str | None:
    if not types.output.rank:
        return "its result is a scalar"
    return moves(op, CallTypes(types.inputs[1:], types.outputs))


def _filled(d: Draft, op: Fill, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """BroadcastTo(Reshape(value))"""
    shape = static(types.output.shape)
    return [d.broadcast(d.reshaped(operands[1], *(1,) * len(shape)), shape)]


def _why_no_range(op: Range, types: CallTypes) -> str | None:
    (count,), dtype = types.output.shape, types.output.dtype
    if dtype not in _EXACT_UP_TO:
        return f"running sums of {dtype.text} are not exact"
    if count is None or count == 0:
        return "its number of elements is 0 or unknown"
    largest = _EXACT_UP_TO[dtype]
    return None if count <= largest else f"it has {count} elements, but only numbers up to {largest} are exact"


def _range(d: Draft, op: Range, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """start + CumSum(Fill(count, 1)) * delta, with exclusive sums"""
    start, _, delta = operands
    dtype = types.output.dtype
    (count,) = static(types.output.shape)
    ones = d.broadcast(d.constant(np.ones(1, dtype.numpy)), (count,))
    counts = d.add(CumSum(exclusive=True), ones, d.number(0))
    return [d.sum(d.reshaped(start, 1), d.product(counts, d.reshaped(delta, 1)))]


def _why_no_shape(op: BroadcastArgs, types: CallTypes) -> str | None:
    if types.output.dtype not in (DType.INT32, DType.INT64):
        return f"shapes of {types.output.dtype.text} are not checked natively"
    return None


def _common_shape(d: Draft, op: BroadcastArgs, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Select(Equal(a, 1), b, a), the shorter shape prefixed by ones; Within(0) fails if sizes differ and none is 1.

    A shape without dimensions leaves the other as it is; a scalar is a shape of one dimension.
    """
    a, b = (x if d.shape(x) else d.reshaped(x, 1) for x in operands)
    if 0 in (*d.shape(a), *d.shape(b)):
        return [a if 0 in d.shape(b) else b]
    (rank,), one = static(types.output.shape), np.ones(1, types.output.dtype.numpy)
    a, b = (
        d.add(Concat(0), d.constant(np.repeat(one, rank - d.shape(x)[0])), x) if d.shape(x)[0] < rank else x
        for x in (a, b)
    )
    ones = d.constant(one)
    mismatch = d.compared(ComparisonKind.NOT_EQUAL, a, b)
    for each in (a, b):
        mismatch = d.binary(BinaryKind.LOGICAL_AND, mismatch, d.compared(ComparisonKind.NOT_EQUAL, each, ones))
    checked = d.add(Within(inclusive=True), d.cast(mismatch, types.output.dtype), d.constant(np.array(0, np.int64)))
    return [d.sum(checked, d.chosen(d.compared(ComparisonKind.EQUAL, a, ones), b, a))]


def _put_row(d: Draft, op: PutRow, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Select(Equal([0, 1 ..], Gather([0, 1 ..], index)), row, x): the Gather checks that the index is valid.

    Several rows: Select(And(GreaterEqual([0, 1 ..], first), LessEqual([0, 1 ..], last)), Gather(rows, ..), x), where
    first and last are gathered likewise.
    """
    x, row, index = operands
    shape, count = d.shape(x), d.shape(row)[0]
    positions = d.constant(_table(0, shape[0]))
    first = d.gathered(positions, d.reshaped(index, 1), 0)
    row_numbers = d.constant(_table(0, shape[0]).reshape(-1, *(1,) * (len(shape) - 1)))
    if count == 1:
        return [d.chosen(d.compared(ComparisonKind.EQUAL, row_numbers, first), row, x)]
    last = d.gathered(positions, d.sum(first, d.constant(np.array([count - 1], np.int32))), 0)
    from_first, to_last = (
        d.compared(kind, row_numbers, end)
        for kind, end in ((ComparisonKind.GREATER_EQUAL, first), (ComparisonKind.LESS_EQUAL, last))
    )
    new_rows = d.clamped(d.difference(positions, first), 0, count - 1)
    return [d.chosen(d.binary(BinaryKind.LOGICAL_AND, from_first, to_last), d.gathered(row, new_rows, 0), x)]


def _why_not_reshaped(op: Squeeze | ExpandDims, types: CallTypes) -> str | None:
    return moves(op, types) if types.output.rank else "its result is a scalar"


def _reshaped(d: Draft, op: Squeeze | ExpandDims, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """Reshape(x)"""
    return [d.moved(Reshape(), operands[0], d.integers(*static(types.output.shape)))]


def _why_no_stride(op: Gather, types: CallTypes) -> str | None:
    indices = types.input(1).value
    if indices is None or indices.dtype == object:
        return "its indices are not known before the run"
    if op.batch_dims or indices.ndim > 1:
        return "its indices are not a vector"
    steps = np.diff(indices.reshape(-1))
    is_even = (steps > 0).all() and (steps == steps[:1]).all()
    return moves(op, types) if is_even else "its indices are not evenly spaced"


def _strided(d: Draft, op: Gather, types: CallTypes, operands: Sequence[int]) -> Sequence[int]:
    """StridedSlice(x)"""
    indices, axis = types.input(1).value, normalize_axis(op.axis, types.input(0).rank)
    assert indices is not None
    row = indices.reshape(-1)
    step = int(row[1] - row[0]) if len(row) > 1 else 1
    bounds = np.zeros((3, axis + 1), np.int32)
    bounds[:, axis] = row[0], row[-1] + 1, step
    bounds[2, :axis] = 1
    before = (1 << axis) - 1
    strided = StridedSlice(before, before, shrink_axis_mask=0 if indices.ndim else 1 << axis)
    return [d.moved(strided, operands[0], *(d.constant(each) for each in bounds))]


DECOMPOSITIONS = {
    Gather: (Decomposition(_why_no_stride, _strided, plainer=True),),
    Slice: (Decomposition(_why_no_slice, _slice),),
    Split: (Decomposition(_why_no_split, _split),),
    BroadcastTo: (Decomposition(_why_not_repeated, _repeated),),
    BroadcastArgs: (Decomposition(_why_no_shape, _common_shape),),
    Fill: (Decomposition(_why_not_filled, _filled),),
    Range: (Decomposition(_why_no_range, _range),),
    PutRow: (Decomposition(lambda op, types: moves(op, types) or _why_no_tables(types, (0,)), _put_row),),
    Squeeze: (Decomposition(_why_not_reshaped, _reshaped),),
    ExpandDims: (Decomposition(_why_not_reshaped, _reshaped),),
}
