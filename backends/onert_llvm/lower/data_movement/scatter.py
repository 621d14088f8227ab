"""Scatters: slices stored or accumulated at indices that are known only at run time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from onert.ir import Array, CallTypes, DType, Op
from onert.ir.ops.data_movement.dense import SparseToDense
from onert.ir.ops.data_movement.element_indices import Combination, ScatterSlices
from onert.ir.ops.data_movement.gather import ScatterNd
from onert.ir.ops.data_movement.part_update import with_size
from onert.ir.ops.reduction.segment import SegmentReduction, UnsortedSegment
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.kernels.data_movement.scatter import Join, Scatter
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS
from onert_llvm.lower.strided_copy import move, operand, side

from . import movement

_PIECE = 1 << 10
"""The number of elements of each slice in a work tile."""

_JOINS: Mapping[SegmentReduction, Join] = {
    SegmentReduction.SUM: Join.ADD,
    SegmentReduction.PROD: Join.MUL,
    SegmentReduction.MAX: Join.MAX,
    SegmentReduction.MIN: Join.MIN,
}
_COMBINED: Mapping[Combination, Join] = {
    Combination.REPLACE: Join.PUT,
    Combination.ADD: Join.ADD,
    Combination.MUL: Join.MUL,
    Combination.MAX: Join.MAXIMUM,
    Combination.MIN: Join.MINIMUM,
}
_STORED = {1: Kind.U8, 2: Kind.U16, 4: Kind.U32, 8: Kind.U64}
"""The types under which elements are moved unchanged, by size."""


def why_not(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not run the scatter; None if it does."""
    indices = types.input(0 if isinstance(op, ScatterNd | SparseToDense) else 1)
    if any(t is not None and (t.dtype.is_handle or 0 in t.shape) for t in (*types.inputs, *types.outputs)):
        return "a tensor holds no plain elements"
    if indices.dtype not in (DType.INT32, DType.INT64):
        return f"indices of {indices.dtype.text} have no native form"
    dtype = types.output.dtype
    if isinstance(op, SparseToDense) or (isinstance(op, ScatterSlices) and op.combination is Combination.REPLACE):
        return None if dtype.itemsize in _STORED else "elements of this size have no native form"
    return None if dtype in KINDS else "elements of this type have no native form"


def why_not_combined(op: ScatterSlices, types: CallTypes) -> str | None:
    """Why this backend does not combine the slices; None if it does."""
    given = (types.input(0), types.input(2), types.output)
    if any(t.quantization != given[0].quantization for t in given):
        return "quantisation parameters differ"
    moved = op.combination is Combination.REPLACE
    if not moved and (given[0].dtype is DType.BOOL or given[0].quantization is not None):
        return "elements of this type need arithmetic of their own"
    return why_not(op, types)


def lower_combined(lowering: Lowering, operations: Sequence[int]) -> None:
    """Copy all elements, then combine slices with those that are there."""
    at, operation, op = lowering.single(operations, ScatterSlices)
    x, indices, updates = operation.used
    movement.copy(lowering, at)
    dtype = lowering.type(x).dtype
    kind = _STORED[dtype.itemsize] if op.combination is Combination.REPLACE else KINDS[dtype]
    depth = lowering.shape(indices)[-1]
    _emit(lowering, at, _COMBINED[op.combination], kind, (indices, updates), lowering.shape(x), depth, op.skips)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Sums at indices, starting from 0."""
    at, operation, _ = lowering.single(operations, Op)
    indices, updates = operation.used[:2]
    shape = lowering.shape(operation.outputs[0])
    truths = lowering.type(updates).dtype is DType.BOOL
    kind = Kind.U8 if truths else KINDS[lowering.type(updates).dtype]
    _fill(lowering, at, np.zeros(16, lowering.type(updates).dtype.numpy))
    index = lowering.shape(indices)
    _emit(lowering, at, Join.MAX if truths else Join.ADD, kind, (indices, updates), shape, index[-1])


def lower_sparse(lowering: Lowering, operations: Sequence[int]) -> None:
    """One value everywhere, then others at indices."""
    at, operation, _ = lowering.single(operations, Op)
    indices, _, values, default = operation.used
    shape, result = lowering.shape(operation.outputs[0]), operation.outputs[0]
    kind = _STORED[lowering.type(values).dtype.itemsize]
    everywhere, one = operand(lowering, result), operand(lowering, default)
    move(lowering, at, one.at(one.view.reshape(()).broadcast_to(everywhere.view.shape)), everywhere, (default,))
    index = lowering.shape(indices)
    single = math.prod(lowering.shape(values)) == 1
    depth = index[1] if len(index) == 2 else 1
    _emit(lowering, at, Join.PUT, kind, (indices, values), shape, depth, repeated=single)


def lower_segments(lowering: Lowering, operations: Sequence[int]) -> None:
    """Reduce the rows of each segment."""
    at, operation, op = lowering.single(operations, Op)
    data, ids = operation.used[:2]
    how = op.kind if isinstance(op, UnsortedSegment) else SegmentReduction.SUM
    dtype = lowering.type(data).dtype
    _fill(lowering, at, np.full(16, how.initial(dtype.numpy), dtype.numpy))
    shape = lowering.shape(operation.outputs[0])
    skip = isinstance(op, UnsortedSegment)
    _emit(lowering, at, _JOINS[how], KINDS[dtype], (ids, data), shape, 1, skip=skip)


def _fill(lowering: Lowering, at: int, elements: Array) -> None:
    """Set the whole result to one element."""
    result = operand(lowering, lowering.operation(at).outputs[0])
    one = side(lowering.constant(elements), (1,), elements.itemsize)
    move(lowering, at, one.at(one.view.broadcast_to(result.view.shape)), result)


def _emit(
    lowering: Lowering,
    at: int,
    join: Join,
    kind: Kind,
    reads: tuple[int, int],
    shape: Sequence[int],
    depth: int,
    skip: bool = False,
    repeated: bool = False,
) -> None:
    """Emit a scatter of `reads`, which are indices and slices; with `repeated`, all slices are the same."""
    indices, rows = reads
    (result,) = lowering.operation(at).outputs
    count, width = math.prod(lowering.shape(indices)) // max(depth, 1), math.prod(shape[depth:])
    if not depth:
        count = math.prod(lowering.shape(rows)) // width
    what = " and ".join(with_size(f"dimension {i}", n) for i, n in enumerate(shape[:depth]))
    segments = isinstance(lowering.operation(at).op, UnsortedSegment)
    if segments:
        rule = (
            "segment {} is beyond the last" if is_symbolic(shape[0]) else f"segment {{}} is named, there are {shape[0]}"
        )
    else:
        rule = f"index {{}} is outside of {what}"
    slots: dict[str, Slot] = {
        "report": lowering.check(at, rule),
        "count": count,
        "row_step": 0 if repeated else width,
        "width": width,
        "piece": _PIECE,
    }
    for i in range(depth):
        slots |= {f"limit{i}": shape[i], f"step{i}": math.prod(shape[i + 1 :])}
    algorithm = Scatter(join, kind, depth, lowering.type(indices).dtype is DType.INT64, skip)
    lowering.run(at, algorithm, -(-width // _PIECE), {"index": indices, "rows": rows}, {"out": result}, slots)
