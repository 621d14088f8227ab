"""Scatters whose number of updates, or whose result size, is known only at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import evolve

from onert.ir import DType, Operation
from onert.ir.ops.data_movement.element_indices import ScatterElements, ScatterSlices
from onert.ir.ops.data_movement.fill import Within
from onert.ir.ops.data_movement.gather import Gather, ScatterNd
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.slicing import Pad, Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.reduction.segment import SegmentReduction, SegmentSum, UnsortedSegment
from onert.ir.shape import normalize_axis

from .counting import Counted, CountedInputs, CountedResults, Rule, Writer, first_of
from .sized import number_at, open_sizes

Matched = tuple[int, int, Counted | None, Counted | None]
"""Indices and updates as whole tensors, and which of their entries are valid."""


def _matched(w: Writer, at: int, updates: int, inputs: CountedInputs) -> Matched | None:
    """Indices and updates with the same number of valid entries along the same axis; None if their axes differ.

    If the model counts them separately (the places of a mask, and the rows to put there), both are cut to the shorter
    one, and the run checks that the numbers are equal.
    """
    indices, counted_updates = inputs
    at, updates = (i if c is None else c.operand for i, c in ((at, indices), (updates, counted_updates)))
    counted = counted_updates if indices is None else indices
    if counted is None or (
        indices and counted_updates and (indices.count, indices.axis) == (counted_updates.count, counted_updates.axis)
    ):
        return at, updates, indices, counted_updates
    axis = counted.axis
    if any(c is not None and c.axis != axis for c in inputs) or any(w.types[i].rank <= axis for i in (at, updates)):
        return None
    sizes = [w.types[i].shape[axis] or 0 for i in (at, updates)]
    common_size = min(sizes)
    if any(c is None and size > common_size for c, size in zip(inputs, sizes, strict=True)):
        return None  # the numbers are never equal
    counts = [w.number(size) if c is None else c.count for c, size in zip(inputs, sizes, strict=True)]
    difference = w.add(Binary(BinaryKind.SUB), *counts)
    checked = w.sum(w.add(Within(inclusive=True), difference, w.number(0)), counts[1])
    at, updates = (w.shortened(i, axis, common_size) for i in (at, updates))
    return at, updates, Counted(at, checked, axis, False), Counted(updates, checked, axis, False)


def _checked_indices(w: Writer, at: int, limits: Mapping[int, int], rows: int | None) -> int:
    """Index rows with each limited column checked, in the first `rows` rows (all if None)."""
    *front, depth = w.types[at].shape
    if not limits:
        return at
    columns = []
    for axis in range(depth or 0):
        begin, size = (w.integers(each, DType.INT32) for each in ([0] * len(front) + [axis], [-1] * len(front) + [1]))
        column = at if depth == 1 else w.add(Slice(), at, begin, size)
        columns.append(w.add(Within(), column, limits[axis], rows) if axis in limits else column)
    return columns[0] if depth == 1 else w.add(Concat(len(front)), *columns)


_Parts = tuple[int, dict[int, int], int, int, Counted | None]
"""The tensor that is updated, its count by axis, and indices and updates with the indices' count, as `_matched`."""


def _of_parts(rule: Callable[[Writer, Any, _Parts], CountedResults | None]) -> Rule:
    """A rule in terms of the operation kind and these parts."""

    def whole(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
        (x, at, updates), counted = operation.used, inputs[0]
        matched = _matched(w, at, updates, inputs[1:])
        if matched is None:
            return None
        x, limits = (x, {}) if counted is None else (counted.operand, {counted.axis: counted.count})
        return rule(w, operation.op, (x, limits, *matched[:3]))

    return whole


def _slices(w: Writer, op: ScatterSlices, parts: _Parts) -> CountedResults | None:
    """ScatterSlices: invalid updates get the index -1, which is skipped."""
    x, limits, at, updates, indices = parts
    type_ = w.types[at]
    if any(axis >= (type_.shape[-1] or 0) for axis in limits):
        return None
    if indices is not None and (indices.axis >= type_.rank - 1 or (limits and indices.axis)):
        return None
    if limits and (op.skips or type_.dtype not in (DType.INT32, DType.INT64)):
        return None
    at = _checked_indices(w, at, limits, None if indices is None else indices.count)
    if indices is not None:
        op, at = evolve(op, skips=True), w.filled(evolve(indices, operand=at), -1)
    return (first_of(w.add(op, x, at, updates, quantization=w.types[x].quantization), limits),)


def _sums(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """ScatterNd: invalid updates become zeros that are added at index 0."""
    at, updates, shape = operation.used
    matched = _matched(w, at, updates, inputs[:2])
    if inputs[2] is not None or matched is None:
        return None
    at, updates, indices, counted_updates = matched
    type_, stored = w.types[at], w.types[updates]
    if stored.quantization is not None:
        return None
    if not stored.dtype.is_numeric or (indices is not None and indices.axis >= type_.rank - 1):
        return None
    sizes, limits = w.types[shape].value, dict[int, int]()
    if sizes is None:
        found = open_sizes(w, shape, w.types[shape].shape[0] or 0) if w.types[shape].rank == 1 else None
        if found is None:
            return None
        cells, unknown = found
        sizes, limits = (
            np.array([c.high for c in cells]),
            {axis: number_at(w, shape, axis, cells[axis]) for axis in unknown},
        )
        if any(axis >= (type_.shape[-1] or 0) for axis in limits) or (indices is not None and indices.axis):
            return None
        shape = w.constant(sizes)
    if 0 in sizes or (limits and type_.dtype not in (DType.INT32, DType.INT64)):
        return None
    at = _checked_indices(w, at, limits, None if indices is None else indices.count)
    if indices is not None and counted_updates is not None:
        at, updates = w.zeroed(evolve(indices, operand=at)), w.zeroed(counted_updates)
    return (first_of(w.add(operation.op, at, updates, shape), limits),)


def _elements(w: Writer, op: ScatterElements, parts: _Parts) -> CountedResults | None:
    """ScatterElements: invalid updates go to an extra last entry, which is cut off afterwards."""
    x, limit, at, updates, indices = parts
    type_ = w.types[x]
    axis = normalize_axis(op.axis, type_.rank)
    size = type_.shape[axis] or 0
    if any(each != axis for each in limit) or not size:
        return None
    if limit:
        if w.types[at].dtype not in (DType.INT32, DType.INT64) or (indices is not None and indices.axis):
            return None
        at = w.add(Within(), at, limit[axis], None if indices is None else indices.count)
    if indices is None:
        return (first_of(w.add(op, x, at, updates, quantization=type_.quantization), limit),)
    margins, begin = np.zeros((type_.rank, 2), np.int32), np.zeros(type_.rank, np.int32)
    margins[axis, 1] = 1
    padded = w.add(Pad(), x, w.constant(margins), quantization=type_.quantization)
    padded_indices = w.filled(evolve(indices, operand=at), size)
    scattered = w.add(op, padded, padded_indices, updates, quantization=type_.quantization)
    sizes = w.integers(type_.shape, DType.INT32)
    return (first_of(w.add(Slice(), scattered, w.constant(begin), sizes, quantization=type_.quantization), limit),)


def _segments(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """SegmentSum: there may be as many segments as rows; those up to the last row's are valid.

    Each segment is that of the row before plus the step from it, because steps are checked, and so is the first one.
    Invalid rows get the segment -1, which is ignored.
    """
    data, ids = operation.used
    matched = _matched(w, ids, data, inputs[::-1])
    if matched is None or (matched[2] is not None and matched[2].axis):
        return None
    ids, data, valid, _ = matched
    type_, rows = w.types[ids], w.types[ids].shape[0] or 0
    if not rows or type_.dtype not in (DType.INT32, DType.INT64):
        return None
    one = None if valid is None else w.add(Binary(BinaryKind.MINIMUM), valid.count, w.number(1))
    before = w.add(Within(inclusive=True), w.part(ids, 0, 1), w.number(0), one)
    if rows > 1:
        before = w.add(Concat(0), before, w.part(ids, 0, rows - 1))
    steps = w.add(Binary(BinaryKind.SUB), ids, before)
    segments = w.sum(before, w.add(Within(inclusive=True), steps, w.number(1), None if valid is None else valid.count))
    last = w.number(rows - 1)
    if valid is not None:
        segments = w.filled(evolve(valid, operand=segments), -1)
        last = w.add(Binary(BinaryKind.MAXIMUM), w.sum(valid.count, w.number(-1)), w.number(0))
    most = w.integers([rows], DType.INT32)
    sums = w.add(UnsortedSegment(SegmentReduction.SUM), data, segments, most, quantization=w.types[data].quantization)
    return (Counted(sums, w.sum(w.as_count(w.add(Gather(0), segments, last)), w.number(1)), 0, True),)


SCATTERED: Mapping[type, Rule] = {
    SegmentSum: _segments,
    ScatterSlices: _of_parts(_slices),
    ScatterNd: _sums,
    ScatterElements: _of_parts(_elements),
}
