"""Assignments to slices with run-time bounds, as exporters write them: elements scattered to a range of indices."""

from __future__ import annotations

from attrs import frozen

from onert.compiler.rewrite.edit import definer
from onert.ir import DType, Op, Operation
from onert.ir.ops.data_movement.element_indices import Combination, ScatterElements
from onert.ir.ops.data_movement.fill import Range, Within
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape
from onert.ir.ops.data_movement.slicing import Tile
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.shape import normalize_axis
from onert.ir.value import Value

from .counting import Counted, Writer


@frozen
class _Rows(Value):
    """Updates of the rows `start` to `limit` - 1 along an axis; negative numbers may count from the end."""

    updates: Counted
    axis: int
    start: int
    limit: int
    may_be_negative: bool
    may_be_empty: bool


def assigned_slice(w: Writer, operation: Operation) -> int | None:
    """Replace ScatterElements by a selection between old and new rows; the result, or None if it stays.

        y = ScatterElements(x, Tile(Reshape(Range(s, e))), v[:c])   -->   y = Select(s <= i < e, Gather(v, i - s), x)

    A range of unknown length has no room, but there are as many indices as updates, or the operation fails.
    """
    rows = _rows(w, operation)
    if rows is None:
        return None
    x, count, type_ = operation.used[0], rows.updates.count, w.types[operation.used[0]]
    size, room = type_.shape[rows.axis] or 0, w.types[rows.updates.operand].shape[rows.axis] or 0
    begin, end = (w.as_count(i) for i in (rows.start, rows.limit))
    indices = _binary(w, BinaryKind.SUB, end, begin)  # negative for a range that fails
    indices = _binary(w, BinaryKind.MAXIMUM, indices, w.number(0)) if rows.may_be_empty else indices
    zero = w.add(Within(inclusive=True), _binary(w, BinaryKind.SUB, indices, count), w.number(0))
    any_ = _compared(w, ComparisonKind.GREATER, count, w.number(0))
    first = w.sum(w.add(Select(), any_, begin, w.number(0)), zero)
    below = size if rows.may_be_negative else 0
    most = _binary(w, BinaryKind.SUB, w.number(size + below), count)
    shifted = w.add(Within(inclusive=True), w.sum(first, w.number(below)), most)
    places = _binary(w, BinaryKind.SUB, w.numbers(size, type_.rank - rows.axis - 1), shifted)
    if rows.may_be_negative:
        from_start = w.sum(places, w.number(size))
        counts_from_start = _in_range(w, from_start, count)
        assigned = _binary(w, BinaryKind.LOGICAL_OR, counts_from_start, _in_range(w, places, count))
        places = w.add(Select(), counts_from_start, from_start, places)
    else:
        assigned = _in_range(w, places, count)
    places = _binary(w, BinaryKind.MINIMUM, _binary(w, BinaryKind.MAXIMUM, places, w.number(0)), w.number(room - 1))
    places = w.add(Reshape((size,)), places)
    new = w.add(Gather(rows.axis), rows.updates.operand, places, quantization=type_.quantization)
    return w.add(Select(), assigned, new, x, quantization=type_.quantization)


def _rows(w: Writer, operation: Operation) -> _Rows | None:
    """What a ScatterElements assigns to whole rows; None if it does anything else, or shapes are unknown."""
    op = operation.op
    if not isinstance(op, ScatterElements) or op.combination is not Combination.REPLACE:
        return None
    x, at, updates = operation.used
    type_, counted = w.types[x], w.counted.get(updates)
    if counted is None or not type_.is_static or w.types[at].is_static:
        return None
    axis, new = normalize_axis(op.axis, type_.rank), w.types[counted.operand]
    sizes = [(a, b) for i, (a, b) in enumerate(zip(type_.shape, new.shape, strict=False)) if i != axis]
    size, room = type_.shape[axis] or 0, new.shape[axis] if new.rank == type_.rank else 0
    if set(counted.axes) != {axis} or any(a != b for a, b in sizes) or not 0 < (room or 0) <= size:
        return None
    plain = _maybe_negative(w, at, size)
    found = _range(w, plain, axis)
    if found is None:
        return None
    start, limit, _ = found.used
    assert isinstance(found.op, Range)
    return _Rows(counted, axis, start, limit, plain != at, found.op.may_be_empty)


def _range(w: Writer, indices: int, axis: int) -> Operation | None:
    """The range of integers that is repeated along all other axes; None if the indices are anything else."""
    shape = w.types[indices].shape
    tiled = _made_by(w, indices, Tile)
    if tiled is not None:
        repeats = w.extents.of(tiled.used[1])
        if repeats is None or repeats.shape != (len(shape),) or repeats[axis].exact != 1:
            return None
        indices = tiled.used[0]
    row = w.types[indices].shape
    if any(n != 1 for i, n in enumerate(row) if i != axis) or len(row) != len(shape):
        return None
    reshaped = _made_by(w, indices, Reshape, ExpandDims)
    if reshaped is not None:
        indices = reshaped.used[0]
    found = _made_by(w, indices, Range)
    step = None if found is None else w.extents.one(found.used[2])
    if found is None or step is None or step.exact != 1:
        return None
    return found if w.types[found.used[0]].dtype in (DType.INT32, DType.INT64) else None


def _maybe_negative(w: Writer, indices: int, size: int) -> int:
    """The indices to whose negative ones the size of their axis was added."""
    selected = _made_by(w, indices, Select)
    if selected is None:
        return indices
    condition, raised, plain = selected.used
    compared, sum_ = _made_by(w, condition, Comparison), _made_by(w, raised, Binary)
    if compared is None or sum_ is None or compared.op != Comparison(ComparisonKind.LESS):
        return indices
    zero, added = (w.extents.one(i) for i in (compared.used[1], sum_.used[1]))
    if compared.used[0] != plain or sum_.used[0] != plain or sum_.op != Binary(BinaryKind.ADD):
        return indices
    is_raised = zero is not None and zero.exact == 0 and added is not None and added.exact == size
    return plain if is_raised else indices


def _made_by(w: Writer, operand: int, *kinds: type[Op]) -> Operation | None:
    """The operation of one of these kinds that an operand is a result of; None if it is of another kind."""
    found = definer(w.edit.subgraph, operand)
    return found if found is not None and isinstance(found.op, kinds) and None not in found.inputs else None


def _binary(w: Writer, kind: BinaryKind, a: int, b: int) -> int:
    return w.add(Binary(kind), a, b)


def _compared(w: Writer, kind: ComparisonKind, a: int, b: int) -> int:
    return w.add(Comparison(kind), a, b)


def _in_range(w: Writer, numbers: int, count: int) -> int:
    """Which numbers are at least 0 and below a count."""
    low = _compared(w, ComparisonKind.GREATER_EQUAL, numbers, w.number(0))
    return _binary(w, BinaryKind.LOGICAL_AND, low, _compared(w, ComparisonKind.LESS, numbers, count))
