"""Operations whose result size is computed at run time, on whole tensors of the largest possible size."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import evolve

from onert.ir import DType, Op, Operation, TensorType
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Fill, Range, Within
from onert.ir.ops.data_movement.gather import Gather, OneHot
from onert.ir.ops.data_movement.joining import SplitV
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.shape import normalize_axis
from onert.ir.symbolic.trace import hint

from .counting import MOST_SIZED, Counted, CountedInputs, CountedResults, Rule, Writer, existing, first_of
from .extents import Cells, Extent, added, exactly
from .reshaped import reshaped

MOST_SLICED = 1 << 16
"""The largest tensor moved whole for a slice with run-time bounds, which is faster than an operation in NumPy."""


def open_sizes(w: Writer, dims: int, rank: int) -> tuple[list[Extent], list[int]] | None:
    """A vector's extents and the positions of unknown ones; None if all are known, or one has no bound."""
    cells = w.extents.of(dims)
    if cells is None or cells.shape != (rank,) or not rank:
        return None
    found = list(cells)
    unknown = [at for at, each in enumerate(found) if each.exact is None]
    if not unknown or not all(0 < found[at].high <= MOST_SIZED for at in unknown):
        return None
    return found, unknown


def number_at(w: Writer, row: int, at: int, found: Extent) -> int:
    """An integer of a vector as a count."""
    return w.length(found, lambda: w.as_count(w.part(row, at, 1)))


def _range(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """The longest possible range; the numbers before the run's limit are valid."""
    op, (start, limit, _) = operation.op, operation.used
    assert isinstance(op, Range)
    first, last, step = (w.extents.one(i) for i in operation.used)
    kind = w.types[limit].dtype
    if any(inputs) or kind not in (DType.INT32, DType.INT64) or first is None or last is None:
        return None
    distance = added(last, first, -1)
    if step is None or step.exact != 1 or not 0 < distance.high <= MOST_SIZED:
        return None

    def compute() -> int:
        number = w.add(Binary(BinaryKind.SUB), w.as_count(limit), w.as_count(start))
        return w.add(Binary(BinaryKind.MAXIMUM), number, w.number(0)) if op.may_be_empty else number

    if op.may_be_empty and distance.low < 0:
        distance = Extent(0, distance.high)
    count = w.length(distance, compute)
    numbers = w.add(Copy(), w.numbers(distance.high, dtype=kind))
    return (Counted(numbers if first.exact == 0 else w.sum(numbers, start), count, 0, False),)


def _broadcast(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """A tensor broadcast to a shape with computed dimensions."""
    value, dims = operation.used if isinstance(operation.op, BroadcastTo) else operation.used[::-1]
    rank = w.types[dims].shape[0] if w.types[dims].rank == 1 else None
    x = w.counted.get(value)
    type_ = w.types[value if x is None else x.operand]
    found = None if rank is None else open_sizes(w, dims, rank)
    if found is None or rank is None or not type_.is_static:
        return None
    cells, unknown = found
    sizes, counts = [c.high for c in cells], {}
    counted = {} if x is None else {axis + rank - type_.rank: count for axis, count in x.axes.items()}
    if not counted.keys() <= set(unknown):
        return None
    for at in unknown:
        from_end = rank - at
        if at in counted:
            counts[at], sizes[at] = counted[at], type_.shape[-from_end] or 0
            if cells[at].terms != ((counted[at], 1),) or cells[at].constant:
                return None
        elif type_.rank >= from_end and type_.shape[-from_end] != 1:
            return None
        else:
            counts[at] = number_at(w, dims, at, cells[at])
    shape = w.integers(sizes)
    whole = w.add(BroadcastTo(), value if x is None else x.operand, shape, quantization=type_.quantization)
    return (first_of(whole, counts),)


def _tile(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """A tensor repeated the largest possible number of times along axes that are not counted."""
    (x, multiples), counted = operation.used, inputs[0]
    whole, counts = (x, {}) if counted is None else (counted.operand, dict(counted.axes))
    type_ = w.types[whole]
    found = open_sizes(w, multiples, type_.rank)
    if any(inputs[1:]) or found is None or 0 in type_.shape:
        return None
    cells, unknown = found
    if any(cells[at].exact != 1 for at in counts):
        return None
    if any(c.high * ((type_.shape[at] or 0) if at in unknown else 1) > MOST_SIZED for at, c in enumerate(cells)):
        return None
    most_repeats = w.integers([c.high for c in cells], DType.INT32)
    for at in unknown:
        number, size = number_at(w, multiples, at, cells[at]), type_.shape[at] or 0
        counts[at] = number if size == 1 else w.add(Binary(BinaryKind.MUL), number, w.number(size))
    return (first_of(w.add(Tile(), whole, most_repeats, quantization=type_.quantization), counts),)


def _pad(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Padding with a computed width at the end, or after valid entries, where it overwrites invalid ones."""
    op, x, value = operation.op, inputs[0], operation.used[2] if len(operation.used) > 2 else None
    whole, margins = operation.used[0] if x is None else x.operand, operation.used[1]
    type_, cells = w.types[whole], w.extents.of(operation.used[1])
    if cells is None or cells.shape != (type_.rank, 2) or any(inputs[1:]) or 0 in type_.shape:
        return None
    axes = {} if x is None else x.axes
    unknown = [a for a in range(type_.rank) if a in axes or any(c.exact is None for c in cells[a])]
    known = [[c.exact or 0 for c in row] for row in cells]
    if not unknown or type_.quantization is not None or any(abs(n) > MOST_SIZED for row in known for n in row):
        return None
    amounts, sizes = list(known), [-1] * type_.rank
    totals: dict[int, Extent] = {}
    for axis in unknown:
        before, size = cells[axis][0].exact, type_.shape[axis] or 0
        valid = Extent(0, size, ((axes[axis], 1),)) if axis in axes else exactly(size)
        total = w.extents.bounded(added(added(valid, cells[axis][1], 1), exactly(before or 0), 1))
        if before is None or before < 0 or not 0 < total.high <= MOST_SIZED:
            return None
        totals[axis], padded_size = total, before + size
        amounts[axis] = [before, max(padded_size, total.high) - padded_size]
        sizes[axis] = -1 if padded_size <= total.high else total.high
    if x is not None:
        stored = w.like(type_, 0) if value is None else w.add(Reshape(()), value)
        whole = w.add(Select(), w.valid_mask(x), whole, stored)
    whole = w.add(op, whole, w.integers(amounts, DType.INT32), *(() if value is None else (value,)))
    if any(size >= 0 for size in sizes):
        begin = w.constant(np.zeros(type_.rank, np.int32))
        whole = w.add(Slice(), whole, begin, w.integers(sizes, DType.INT32))
    flat, counts = w.add(Reshape((cells.size,)), margins), {}
    for axis, total in totals.items():
        margin = w.as_count(w.part(flat, 2 * axis + 1, 1))
        checked = w.add(Within(inclusive=True), margin, w.number(MOST_SIZED))  # checks that it is not negative
        number = w.sum(w.sum(checked, _valid_count(w, axes, type_, axis)), w.number(amounts[axis][0]))
        if total.exact is not None:
            whole = w.require_length(whole, axis, number, total.exact)
            continue
        if w.extents.bounded(cells[axis][1]).low < 0:  # equal sums do not imply that this was checked
            total = evolve(total, terms=None)
        counts[axis] = w.length(total, existing(number))
    return (first_of(whole, counts),)


def _valid_count(w: Writer, axes: Mapping[int, int], type_: TensorType, axis: int) -> int:
    """The number of valid entries along an axis."""
    return axes[axis] if axis in axes else w.number(type_.shape[axis] or 0)


def _strided_slice(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """A slice with run-time bounds along some axes: entries from its begin on are moved to the front."""
    op, (x, begin, end, strides) = operation.op, operation.used
    assert isinstance(op, StridedSlice)
    counted = inputs[0]
    whole = x if counted is None else counted.operand
    type_, step = w.types[whole], w.types[strides].value
    unsupported = op.ellipsis_mask | op.new_axis_mask or op.offset
    if any(inputs[1:]) or unsupported or step is None or 0 in type_.shape:
        return None
    low, high = (w.extents.of(i) for i in (begin, end))
    if low is None or high is None or low.shape != step.shape or high.shape != step.shape:
        return None
    axes = {} if counted is None else counted.axes
    open_ = [a for a in range(step.size) if a in axes or _is_open(op, a, low, high)]
    if not open_ or any(step.reshape(-1)[a] != 1 for a in open_):
        return None
    removed = [a for a in range(step.size) if op.shrink_axis_mask >> a & 1]
    is_large = counted is None and hint(type_.nbytes) > MOST_SLICED and not _is_measured(w, operation)
    if is_large and not set(open_) <= set(removed):
        return None
    masks = op.begin_mask & op.end_mask & ~op.shrink_axis_mask
    whole_axes = {*open_, *(a for a in range(step.size) if masks >> a & 1 and step.reshape(-1)[a] == 1)}
    opened = sum(1 << a for a in open_)
    if len(whole_axes) < step.size:
        bounds = [[0 if a in open_ else c.low for a, c in enumerate(cells)] for cells in (low, high)]
        shrunk = op.shrink_axis_mask & ~opened
        known_slice = StridedSlice(op.begin_mask | opened, op.end_mask | opened, shrink_axis_mask=shrunk)
        numbers = [w.integers(b) for b in bounds] + [w.constant(step.astype(np.int64))]
        whole = w.add(known_slice, whole, *numbers, quantization=type_.quantization)
    counts = {a - len(removed): n for a, n in axes.items() if a >= step.size}
    for axis in reversed(open_):  # so that removing an axis does not renumber those still to come
        size, at = type_.shape[axis] or 0, axis - sum(a < axis for a in removed if a not in open_)
        count = _valid_count(w, axes, type_, axis)
        if axis in removed:
            place = w.add(Within(), _clip(w, begin, axis, count, clipped=False), count)
            whole = w.add(Gather(at), whole, place, quantization=type_.quantization)
            continue
        result_axis = axis - sum(a < axis for a in removed)
        last = count if op.end_mask >> axis & 1 else _clip(w, end, axis, count)
        most = size if op.end_mask >> axis & 1 else high[axis].high
        if 0 < most < size and high[axis].low >= 0:  # no more entries than this are needed
            whole, size = w.shortened(whole, at, most), most
        if op.begin_mask >> axis & 1 or low[axis].exact == 0:
            counts[result_axis] = last
            continue
        first = _clip(w, begin, axis, count)
        number = w.add(Binary(BinaryKind.SUB), last, first)
        counts[result_axis] = w.add(Binary(BinaryKind.MAXIMUM), number, w.number(0))
        whole = _from_index(w, whole, at, first, size)
    return (first_of(whole, counts),)


def _is_measured(w: Writer, operation: Operation) -> bool:
    """Whether only the shape of a result is read: nothing is moved then."""
    graph, (out,) = w.edit.subgraph, operation.outputs
    users = (graph.operations[user].op for user in graph.uses.get(out, ()))
    return out not in graph.kept and all(isinstance(op, ShapeOf) for op in users)


def _is_open(op: StridedSlice, axis: int, low: Cells, high: Cells) -> bool:
    """Whether the bounds of a slice along an axis are known only at run time."""
    if op.shrink_axis_mask >> axis & 1:
        return low[axis].exact is None
    begins = op.begin_mask >> axis & 1 or low[axis].exact is not None
    return not (begins and (op.end_mask >> axis & 1 or high[axis].exact is not None))


def _from_index(w: Writer, x: int, axis: int, first: int, size: int) -> int:
    """The entries of a tensor from `first` on, padded by repeating the last one."""
    places = w.sum(w.numbers(size), first)
    places = w.add(Binary(BinaryKind.MINIMUM), places, w.number(size - 1))
    return w.add(Gather(axis), x, places, quantization=w.types[x].quantization)


def _clip(w: Writer, bounds: int, axis: int, count: int, *, clipped: bool = True) -> int:
    """A bound of a slice as an index, clipped to 0 .. count; a negative bound counts from the end."""
    found = w.as_count(w.part(bounds, axis, 1))
    is_negative = w.add(Comparison(ComparisonKind.LESS), found, w.number(0))
    found = w.add(Select(), is_negative, w.sum(found, count), found)
    if not clipped:
        return found
    found = w.add(Binary(BinaryKind.MAXIMUM), found, w.number(0))
    return w.add(Binary(BinaryKind.MINIMUM), found, count)


def _slice(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """A slice with computed begins and sizes, which must be in range."""
    x, begin, size = operation.used
    counted = inputs[0]
    whole = x if counted is None else counted.operand
    type_ = w.types[whole]
    low, sizes = (w.extents.of(i) for i in (begin, size))
    is_large = counted is None and hint(type_.nbytes) > MOST_SLICED
    if any(inputs[1:]) or low is None or sizes is None or is_large or 0 in type_.shape:
        return None
    if low.shape != (type_.rank,) or sizes.shape != (type_.rank,):
        return None
    axes = {} if counted is None else counted.axes
    open_ = [a for a in range(type_.rank) if a in axes or low[a].exact is None or sizes[a].exact is None]
    if not open_ or any(sizes[a].low < 0 and sizes[a].exact != -1 for a in open_):
        return None
    if any(a not in open_ and (low[a].low or sizes[a].low not in (-1, type_.shape[a])) for a in range(type_.rank)):
        begins = w.integers([0 if a in open_ else c.low for a, c in enumerate(low)])
        known_sizes = w.integers([-1 if a in open_ else c.low for a, c in enumerate(sizes)])
        whole = w.add(Slice(), whole, begins, known_sizes, quantization=type_.quantization)
    counts = {}
    for axis in open_:
        valid, entries, exact = _valid_count(w, axes, type_, axis), type_.shape[axis] or 0, sizes[axis].exact
        first = w.add(Within(inclusive=True), w.as_count(w.part(begin, axis, 1)), valid)
        available = w.add(Binary(BinaryKind.SUB), valid, first)
        whole = whole if low[axis].exact == 0 else _from_index(w, whole, axis, first, entries)
        number = (
            available if exact == -1 else w.add(Within(inclusive=True), w.as_count(w.part(size, axis, 1)), available)
        )
        if exact is None or exact == -1:
            counts[axis] = number
            continue
        if not 0 < exact <= entries:
            return None
        kept = [exact if a == axis else -1 for a in range(type_.rank)]
        zeros = w.constant(np.zeros(type_.rank, np.int64))
        whole = w.add(Slice(), whole, zeros, w.integers(kept), quantization=type_.quantization)
        whole = w.require_length(whole, axis, number, exact)
    return (first_of(whole, counts),)


def _split(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Consecutive parts of computed sizes."""
    op, (x, sizes, along) = operation.op, operation.used
    assert isinstance(op, SplitV)
    type_, axis, cells = w.types[x], w.types[along].value, w.extents.of(sizes)
    if any(inputs) or axis is None or cells is None or cells.shape != (op.count,) or hint(type_.nbytes) > MOST_SLICED:
        return None
    if all(c.exact is not None for c in cells) or any(c.low < 0 and c.exact != -1 for c in cells) or 0 in type_.shape:
        return None
    if [c.exact for c in cells].count(-1) > 1:
        return None
    at = normalize_axis(int(axis.reshape(-1)[0]), type_.rank)
    size = type_.shape[at] or 0
    numbers = [w.as_count(w.part(sizes, i, 1)) for i in range(op.count)]
    remainder = w.number(size)
    for number, cell in zip(numbers, cells, strict=True):
        if cell.exact != -1:
            remainder = w.add(Binary(BinaryKind.SUB), remainder, number)
    inferred = [i for i, c in enumerate(cells) if c.exact == -1]
    remainder = w.add(
        Within(inclusive=True), remainder, w.number(size if inferred else 0)
    )  # the remainder, 0 unless one size is -1
    for i in inferred:
        numbers[i] = remainder
    first, found = (w.number(0) if inferred else remainder), []
    for number in numbers:
        count = w.add(Within(inclusive=True), number, w.number(size))
        found.append(Counted(_from_index(w, x, at, first, size), count, at, False))
        first = w.sum(first, count)
    return tuple(found)


def _one_hot(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """One-hot rows of the largest possible depth."""
    op, (indices, depth, on, off) = operation.op, operation.used
    assert isinstance(op, OneHot)
    depth_extent, type_ = w.extents.one(depth), w.types[indices]
    if (
        any(inputs)
        or depth_extent is None
        or depth_extent.exact is not None
        or not 0 < depth_extent.high <= MOST_SIZED
        or 0 in type_.shape
    ):
        return None
    count = w.length(depth_extent, lambda: w.as_count(depth))
    whole = w.add(op, indices, w.integers(depth_extent.high, DType.INT32), on, off)
    return (Counted(whole, count, normalize_axis(op.axis, type_.rank + 1), False),)


SIZED: Mapping[type[Op], Rule] = {
    Range: _range,
    **dict.fromkeys((Fill, BroadcastTo), _broadcast),
    Tile: _tile,
    Pad: _pad,
    Reshape: reshaped,
    StridedSlice: _strided_slice,
    Slice: _slice,
    SplitV: _split,
    OneHot: _one_hot,
}
