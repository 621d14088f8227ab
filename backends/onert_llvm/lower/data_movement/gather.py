"""Gathers: slices selected by indices that are known only at run time, or by a precomputed table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import Array, CallTypes, DType, Op
from onert.ir.ops.data_movement.element_indices import GatherElements, OverwrittenSlices
from onert.ir.ops.data_movement.gather import EmbeddingLookup, Gather, GatherNd, PutRow
from onert.ir.ops.data_movement.part_update import broken_rule, with_size
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation
from onert.ir.ops.vision_audio.resize import ResizeNearestNeighbor
from onert.ir.shape import normalize_axis
from onert.ir.symbolic.functions import of_lengths
from onert.ir.symbolic.trace import hint, is_symbolic
from onert.ir.value import Value
from onert_llvm.command.command import Pointer, Slot
from onert_llvm.kernels.data_movement.gather import Gather as GatherSlices
from onert_llvm.kernels.data_movement.gather import GatherElements as GatherRows
from onert_llvm.kernels.data_movement.gather import PutSlice
from onert_llvm.kernels.data_movement.strided_copy import ELEMENTS
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import move, operand, side

from . import movement, resized
from .movement import why_not as why_not_moved

_PIECE = 1 << 14
"""The number of bytes of slices in a work tile."""

_LEAST_RUN, _MOST_RUNS = 8, 64
"""Constant indices are copied as boxes, one command each, if their runs have at least this average length and there are
at most this many.
"""


def why_not(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not gather the slices; None if it does."""
    if any(t is not None and (t.dtype.is_handle or 0 in t.shape) for t in (*types.inputs, *types.outputs)):
        return "a tensor holds no plain elements"
    if types.output.dtype.itemsize not in ELEMENTS:
        return "elements of this size have no native form"
    if isinstance(op, Interpolate):
        return None
    if isinstance(op, ResizeNearestNeighbor):
        return None if types.input(1).value is not None else "the new size is not known before the run"
    indices = types.input(0 if isinstance(op, EmbeddingLookup) else 1)
    source = types.input(1 if isinstance(op, EmbeddingLookup) else 0)
    if source.dtype is not types.output.dtype:
        return "the rows are dequantised"
    if indices.dtype not in (DType.INT32, DType.INT64):
        return f"indices of {indices.dtype.text} have no native form"
    return None


def why_not_picked(op: Interpolate, types: CallTypes) -> str | None:
    """Why this backend does not select the nearest elements; None if it does."""
    if op.interpolation is not Interpolation.NEAREST or op.coordinates is Coordinates.CROP:
        return "only nearest-neighbour resizing without cropping is native"
    if any(t is not None and t.value is None for t in types.inputs[1:]):
        return "the new size is not known before the run"
    if types.input(0).quantization is not None or types.output.quantization is not None:
        return "its elements are quantised"
    axes = _moving(op.scaled((*types.inputs, None, None)[2]), types.input(0).shape, types.output.shape)
    if len(axes) > 2 or (len(axes) == 2 and op.axes[axes[1]] != op.axes[axes[0]] + 1):
        return "more than two axes change, or two that are not adjacent"
    return why_not(op, types)


def _moving(op: Interpolate, before: Sequence[Any], after: Sequence[Any]) -> list[int]:
    """The axes that change, as indices into the operation's axes."""
    return [i for i, axis in enumerate(op.axes) if not op.stays(i, before[axis], after[axis])]


_WORD = 8
"""The most bytes of an element that a register holds."""


@frozen
class _Slices(Value):
    """What is gathered, in elements: `count` slices of `width` for each of `outer` positions.

    `group` of these share their indices. `axes` are the number of entries along each component of an index, and the
    distance between them.
    """

    outer: int
    group: int
    x_outer: int
    count: int
    width: int
    axes: tuple[tuple[int, int], ...]


def lower_nearest(lowering: Lowering, operations: Sequence[int]) -> None:
    """Nearest-neighbour resizing: a view if pixels are repeated evenly, else a gather with a table of pixels."""
    at, operation, op = lowering.single(operations, ResizeNearestNeighbor)
    if why_not_moved(op, lowering.subgraph.types(operation)) is None:
        movement.lower(lowering, operations)
        return
    n, h, w, c = lowering.shape(operation.used[0])
    _, height, width, _ = lowering.shape(operation.outputs[0])
    table = lowering.computed(partial(_pixels, op), h, w, height, width)
    slices = _Slices(n, n, h * w * c, height * width, c, ((h * w, c),))
    _emit(lowering, at, slices, operation.used[:1], table, True)


@of_lengths
def _pixels(op: ResizeNearestNeighbor, h: int, w: int, height: int, width: int) -> Array:
    """The number of the source pixel for each pixel of the resized image."""
    rows, columns = op.nearest(height, h), op.nearest(width, w)
    return (rows[:, None] * w + columns).astype(np.int64).reshape(-1)


def lower_picked(lowering: Lowering, operations: Sequence[int]) -> None:
    """Nearest elements along one axis or two, gathered with a table."""
    at, operation, op = lowering.single(operations, Interpolate)
    op = op.scaled((*lowering.subgraph.types(operation).inputs, None, None)[2])
    before, after = lowering.shape(operation.used[0]), lowering.shape(operation.outputs[0])
    moving = _moving(op, before, after)
    if not moving:
        movement.copy(lowering, at)
        return
    first, last = op.axes[moving[0]], op.axes[moving[-1]]
    h, height = before[first], after[first]
    w, width = (before[last], after[last]) if last > first else (1, 1)
    n, c = math.prod(before[:first]), math.prod(before[last + 1 :])
    if _evenly(lowering, at, op, tuple(moving), (n, h, w, c), (height, width)):
        return
    unit = lowering.type(operation.outputs[0]).dtype.itemsize
    if unit <= _WORD and len(moving) == 2 and c == 1 and not any(map(is_symbolic, (h, w, height, width, c))):
        rows = resized.repeated(op.nearest(moving[0], h, height))
        columns = op.nearest(moving[1], w, width).astype(np.int64)
        resized.emit(lowering, at, rows, columns, unit, (n, h, w, height))
        return
    table = lowering.computed(partial(_picked, op, tuple(moving)), h, w, height, width)
    slices = _Slices(n, n, h * w * c, height * width, c, ((h * w, c),))
    _emit(lowering, at, slices, operation.used[:1], table, True)


def _evenly(
    lowering: Lowering,
    at: int,
    op: Interpolate,
    moving: tuple[int, ...],
    sizes: tuple[int, int, int, int],
    after: tuple[int, int],
) -> bool:
    """Copy elements that are all repeated equally often; False if they are not, or if that is unknown."""
    (n, h, w, c), (height, width) = sizes, after
    if any(map(is_symbolic, (h, w, *after))) or not h or not w or height % h or width % w:
        return False
    rows, columns = (np.repeat(np.arange(count), total // count) for count, total in ((h, height), (w, width)))
    if not np.array_equal(_picked(op, moving, h, w, height, width), (rows[:, None] * w + columns).reshape(-1)):
        return False
    (source,), (result,) = lowering.operation(at).used[:1], lowering.operation(at).outputs
    own, made, shape = operand(lowering, source), operand(lowering, result), (n, h, height // h, w, width // w, c)
    taken = own.at(own.view.reshape(n, h, 1, w, 1, c).broadcast_to(shape))
    move(lowering, at, taken, made.at(made.view.reshape(shape)), (source,))
    return True


@of_lengths
def _picked(op: Interpolate, moving: tuple[int, ...], h: int, w: int, height: int, width: int) -> Array:
    """The number of the source element for each element of the resized plane or line."""
    rows = op.nearest(moving[0], h, height)
    if len(moving) == 1:
        return rows.astype(np.int64)
    return (rows[:, None] * w + op.nearest(moving[1], w, width)).astype(np.int64).reshape(-1)


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower Gather, GatherNd and EmbeddingLookup."""
    at, operation, op = lowering.single(operations, Op)
    source, indices = operation.used[::-1] if isinstance(op, EmbeddingLookup) else operation.used
    if isinstance(op, GatherNd):
        _gather_nd(lowering, at, source, indices)
        return
    x, index = lowering.shape(source), lowering.shape(indices)
    axis = normalize_axis(op.axis, len(x)) if isinstance(op, Gather) else 0
    batch = 0 if not isinstance(op, Gather) else op.batch_dims + (len(index) if op.batch_dims < 0 else 0)
    inner = math.prod(x[axis + 1 :])
    outer, group = math.prod(x[:axis]), math.prod(x[batch:axis]) if batch else math.prod(x[:axis])
    if not batch and _by_runs(lowering, at, (source, indices), (outer, x[axis], inner)):
        return
    slices = _Slices(outer, group, x[axis] * inner, math.prod(index[batch:]), inner, ((x[axis], inner),))
    what = with_size(f"dimension {axis}" if isinstance(op, Gather) else "the table's rows", x[axis])
    _emit_checked(lowering, at, slices, source, indices, what)


def _by_runs(lowering: Lowering, at: int, reads: tuple[int, int], shape: tuple[int, int, int]) -> bool:
    """Copy slices with constant indices that form a few runs (up, down or constant); returns False if they do not."""
    source, indices = reads
    if any(map(is_symbolic, shape)) or not _all_inside(lowering, indices, shape[1:2]):
        return False
    places = lowering.elements(indices).reshape(-1).astype(np.int64)
    steps = np.diff(places)
    if np.count_nonzero(np.abs(steps) > 1) + np.count_nonzero(np.diff(steps)) > 3 * _MOST_RUNS:
        return False
    runs = _runs(steps)
    if len(places) < _LEAST_RUN * len(runs) or len(runs) > _MOST_RUNS:
        return False
    own, made = operand(lowering, source), operand(lowering, lowering.operation(at).outputs[0])
    taken, put = own.view.reshape(shape), made.view.reshape(shape[0], len(places), shape[2])
    for first, last in runs:
        start, count, step = int(places[first]), last - first, int(places[min(first + 1, last - 1)] - places[first])
        part = taken[:, start : start + 1]
        if step:
            behind = start + count * step
            part = taken[:, start : None if behind < 0 else behind : step]
        found = part.broadcast_to((shape[0], count, shape[2]))
        move(lowering, at, own.at(found), made.at(put[:, first:last]), (source,))
    return True


def _runs(steps: Array) -> list[tuple[int, int]]:
    """The bounds of each run of indices that are 1, 0 or -1 apart, from the steps between them."""
    found, first, turns = list[tuple[int, int]](), 0, np.flatnonzero(np.diff(steps)) + 1
    while first <= len(steps):
        last = first + 1
        if first < len(steps) and abs(steps[first]) <= 1:
            behind = np.searchsorted(turns, first, side="right")
            last = 1 + (int(turns[behind]) if behind < len(turns) else len(steps))
        found.append((first, last))
        first = last
    return found


def why_not_elements(op: GatherElements, types: CallTypes) -> str | None:
    """Why this backend does not gather the elements; None if it does."""
    x, indices = types.input(0).shape, types.input(1).shape
    axis = normalize_axis(op.axis, len(x))
    if axis == len(x) - 1:
        return "gathering along the last axis is not native"
    if any(a != b for i, (a, b) in enumerate(zip(x, indices, strict=True)) if i != axis):
        return "the indices are smaller than the tensor along another axis"
    return why_not(op, types)


def lower_elements(lowering: Lowering, operations: Sequence[int]) -> None:
    """Elements along an axis other than the last, row by row."""
    at, operation, op = lowering.single(operations, GatherElements)
    source, indices = operation.used
    x, index = lowering.shape(source), lowering.shape(indices)
    axis = normalize_axis(op.axis, len(x))
    unit, width, rows = lowering.type(source).dtype.itemsize, math.prod(x[axis + 1 :]), math.prod(index[: axis + 1])
    known = _all_inside(lowering, indices, (x[axis],))
    slots: dict[str, Slot] = {
        "report": 0 if known else lowering.check(at, broken_rule(1, axis, x[axis])),
        "width": width,
        "rows": index[axis],
        "x_outer": x[axis] * width * unit,
        "limit0": x[axis],
        "step0": width * unit,
    }
    algorithm = GatherRows(unit, lowering.type(indices).dtype is DType.INT64)
    lowering.run(at, algorithm, rows, {"x": source, "index": indices}, {"out": operation.outputs[0]}, slots)


def _gather_nd(lowering: Lowering, at: int, source: int, indices: int, skip: bool = False) -> None:
    """Slices selected by rows of indices."""
    x, index = lowering.shape(source), lowering.shape(indices)
    depth = index[-1]
    axes = tuple((x[i], math.prod(x[i + 1 :])) for i in range(depth))
    slices = _Slices(1, 1, 0, math.prod(index[:-1]), math.prod(x[depth:]), axes)
    what = " and ".join(with_size(f"dimension {i}", n) for i, n in enumerate(x[:depth]))
    _emit_checked(lowering, at, slices, source, indices, what, skip)


def _emit_checked(
    lowering: Lowering, at: int, slices: _Slices, source: int, indices: int, what: str, skip: bool = False
) -> None:
    wide = lowering.type(indices).dtype is DType.INT64
    limits = [limit for limit, _ in slices.axes]
    rule = "" if _all_inside(lowering, indices, limits) else f"index {{}} is outside of {what}"
    _emit(lowering, at, slices, (source, indices), lowering.operand(indices), wide, rule, skip)


def _all_inside(lowering: Lowering, indices: int, limits: Sequence[int]) -> bool:
    """Whether indices are constants, all of whose components are within the limits."""
    if not lowering.subgraph.operands[indices].is_constant or any(map(is_symbolic, limits)):
        return False
    parts = lowering.elements(indices).reshape(-1, len(limits))
    return bool(((parts >= 0) & (parts < np.array(limits))).all())


def _emit(
    lowering: Lowering,
    at: int,
    s: _Slices,
    reads: Sequence[int],
    index: Pointer,
    wide: bool,
    rule: str = "",
    skip: bool = False,
) -> None:
    """Emit a gather; `rule` is the sentence for an index out of range, empty if all are known to be valid."""
    result = lowering.operation(at).outputs[0]
    unit = lowering.type(result).dtype.itemsize
    single = not is_symbolic(s.width) and s.width * unit in ELEMENTS
    piece = max(1, _PIECE // max(1, hint(s.width) * unit))
    pieces = -(-s.count // piece)
    slots: dict[str, Slot] = {
        "x": lowering.operand(reads[0]),
        "out": lowering.operand(result),
        "index": index,
        "report": lowering.check(at, rule) if rule else 0,
        "width": 1 if single else s.width,
        "count": s.count,
        "piece": piece,
        "pieces": pieces,
        "group": s.group,
        "x_outer": s.x_outer * unit,
        "out_outer": s.count * s.width * unit,
        "out_step": s.width * unit,
    }
    for i, (limit, step) in enumerate(s.axes):
        slots |= {f"limit{i}": limit, f"step{i}": step * unit}
    algorithm = GatherSlices(s.width * unit if single else unit, len(s.axes), wide, skip, single, not rule)
    lowering.emit(at, algorithm, slots, s.outer * pieces, reads, (result,))


def why_not_overwritten(op: OverwrittenSlices, types: CallTypes) -> str | None:
    """Why this backend does not save the slices; None if it does."""
    x, _, indices = types.inputs
    return why_not(GatherNd(), CallTypes((x, indices), types.outputs[:1]))


def lower_overwritten(lowering: Lowering, operations: Sequence[int]) -> None:
    """Save the slices that are about to be overwritten, their indices, and a flag that they were saved."""
    at, operation, op = lowering.single(operations, OverwrittenSlices)
    source, _, indices = operation.used
    parts, places, taken = operation.outputs
    if op.skips:
        unit = lowering.type(source).dtype.itemsize
        nothing, result = side(lowering.constant(np.zeros(unit, np.uint8)), (1,), unit), operand(lowering, parts)
        move(lowering, at, nothing.at(nothing.view.broadcast_to(result.view.shape)), result)
    _gather_nd(lowering, at, source, indices, op.skips)
    move(lowering, at, operand(lowering, indices), operand(lowering, places), (indices,))
    move(lowering, at, side(lowering.constant(np.ones(16, np.bool_)), (), 1), operand(lowering, taken))


def why_not_put(op: PutRow, types: CallTypes) -> str | None:
    """Why this backend does not replace the row; None if it does."""
    if any(t is not None and (t.dtype.is_handle or 0 in t.shape) for t in types.inputs):
        return "a tensor holds no plain elements"
    return None


def lower_put(lowering: Lowering, operations: Sequence[int]) -> None:
    """Copy all rows, then write the new ones."""
    at, operation, _ = lowering.single(operations, PutRow)
    x, row, index = operation.used
    (result,) = operation.outputs
    movement.copy(lowering, at)
    rows, count, width = lowering.shape(x)[0], lowering.shape(row)[0], lowering.type(row).nbytes
    report, wide = lowering.check(at, broken_rule(count, 0, rows)), lowering.type(index).dtype is DType.INT64
    slots: dict[str, Slot] = {"report": report, "limit": rows - count + 1, "step": width // count, "width": width}
    lowering.run(at, PutSlice(wide), 1, {"index": index, "row": row}, {"out": result}, slots)
