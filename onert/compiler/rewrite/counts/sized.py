"""Operations whose results are as large as a run computes, on whole tensors for the most this can be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import evolve

from onert.ir import DType, Op, Operation, TensorType
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Fill, Range, Within
from onert.ir.ops.data_movement.gather import Gather, OneHot
from onert.ir.ops.data_movement.joining import SplitV
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.shape import normalize_axis
from onert.ir.symbolic.trace import hint

from .counting import MOST_SIZED, Counted, Given, Rule, Writer, Written
from .extents import Cells, Extent, added, sure
from .reshaped import reshaped

MOST_SLICED = 1 << 16
"""Bytes of a tensor that is taken as a whole where a run asks for a slice of it: to move them takes less time than an
operation in NumPy."""


def _open(w: Writer, dims: int, rank: int) -> tuple[list[Extent], int] | None:
    """What the integers of a row can be, and where the only one is that is not known; None where it has no bound."""
    cells = w.extents.of(dims)
    if cells is None or cells.shape != (rank,) or not rank:
        return None
    found = list(cells)
    unknown = [at for at, each in enumerate(found) if each.exact is None]
    if len(unknown) != 1 or not 0 < found[unknown[0]].high <= MOST_SIZED:
        return None
    return found, unknown[0]


def _number(w: Writer, row: int, at: int, found: Extent) -> int:
    """An integer of a row as a number of entries."""
    return w.length(found, lambda: w.as_count(w.part(row, at, 1)))


def _range(w: Writer, operation: Operation, given: Given) -> Written | None:
    """The numbers up to the most that there can be, of which as many count as lie before the limit."""
    start, limit, _ = operation.used
    first, last, step = (w.extents.one(i) for i in operation.used)
    kind = w.types[limit].dtype
    if any(given) or kind not in (DType.INT32, DType.INT64) or first is None or last is None:
        return None
    distance = added(last, first, -1)
    if step is None or step.exact != 1 or not 0 < distance.high <= MOST_SIZED:
        return None

    def compute() -> int:
        return w.add(Binary(BinaryKind.SUB), w.as_count(limit), w.as_count(start))

    count = w.length(distance, compute)
    numbers = w.add(Copy(), w.constant(np.arange(distance.high, dtype=kind.numpy)))
    return (Counted(numbers if first.exact == 0 else w.sum(numbers, start), count, 0, False),)


def _filled(w: Writer, operation: Operation, given: Given) -> Written | None:
    """A tensor in a shape of which one dimension is computed."""
    value, dims = operation.used if isinstance(operation.op, BroadcastTo) else operation.used[::-1]
    rank = w.types[dims].shape[0] if w.types[dims].rank == 1 else None
    x = w.known.get(value)
    type_ = w.types[value if x is None else x.operand]
    found = None if rank is None else _open(w, dims, rank)
    if found is None or rank is None or not type_.is_static:
        return None
    cells, at = found
    behind = rank - at
    if x is None:
        if type_.rank >= behind and type_.shape[-behind] != 1:
            return None
        count = _number(w, dims, at, cells[at])
    else:
        count = x.count
        if x.axis != type_.rank - behind or cells[at].terms != ((count, 1),) or cells[at].constant:
            return None
    size = cells[at].high if x is None else w.bound(x)
    shape = w.constant(np.array([size if i == at else c.exact for i, c in enumerate(cells)], np.int64))
    whole = w.add(BroadcastTo(), value if x is None else x.operand, shape, quantization=type_.quantization)
    return (Counted(whole, count, at, False),)


def _tiled(w: Writer, operation: Operation, given: Given) -> Written | None:
    """Repeated as often as it can be at most along one axis."""
    x, multiples = operation.used
    type_ = w.types[x]
    found = _open(w, multiples, type_.rank)
    if any(given) or found is None or 0 in type_.shape:
        return None
    cells, at = found
    size = type_.shape[at] or 0
    if size * cells[at].high > MOST_SIZED:
        return None
    most = w.constant(np.array([c.high for c in cells], np.int32))
    number = _number(w, multiples, at, cells[at])
    count = number if size == 1 else w.add(Binary(BinaryKind.MUL), number, w.number(size))
    return (Counted(w.add(Tile(), x, most, quantization=type_.quantization), count, at, False),)


def _padded(w: Writer, operation: Operation, given: Given) -> Written | None:
    """Margins of a computed width behind, or around what counts: they lie over what does not."""
    op, x, value = operation.op, given[0], operation.used[2] if len(operation.used) > 2 else None
    whole, margins = operation.used[0] if x is None else x.operand, operation.used[1]
    type_, cells = w.types[whole], w.extents.of(operation.used[1])
    if cells is None or cells.shape != (type_.rank, 2) or any(given[1:]) or 0 in type_.shape:
        return None
    unknown = {int(at) for at in range(type_.rank) if any(c.exact is None for c in cells[at])} | (
        {x.axis} if x else set()
    )
    if len(unknown) != 1 or type_.quantization is not None:
        return None
    (axis,) = unknown
    before, behind = cells[axis][0].exact, cells[axis][1]
    own = sure(type_.shape[axis] or 0) if x is None else Extent(0, w.bound(x), ((x.count, 1),))
    total = w.extents.bounded(added(added(own, behind, 1), sure(before or 0), 1))
    if before is None or before < 0 or not 0 < total.high <= MOST_SIZED:
        return None
    margin = w.as_count(w.part(w.add(Reshape((cells.size,)), margins), 2 * axis + 1, 1))
    checked = w.add(Within(inclusive=True), margin, w.number(MOST_SIZED))  # it is not negative
    if x is not None:
        stored = w.like(type_, 0) if value is None else w.add(Reshape(()), value)
        whole = w.add(Select(), w.inside(x), whole, stored)
    have = before + (type_.shape[axis] or 0)
    room = max(have, total.high)
    amounts = np.array([[c.high for c in row] for row in cells], np.int32)
    amounts[axis] = before, room - have
    others = () if value is None else (value,)
    whole = w.add(op, whole, w.constant(amounts), *others)
    if room > total.high:
        sizes = [total.high if a == axis else -1 for a in range(type_.rank)]
        begin = w.constant(np.zeros(type_.rank, np.int32))
        whole = w.add(Slice(), whole, begin, w.constant(np.array(sizes, np.int32)))
    number = w.sum(w.sum(checked, own_count(w, x, type_, axis)), w.number(before))
    if total.exact is not None:
        return (w.if_sure(whole, axis, number, total.exact),)
    if w.extents.bounded(behind).low < 0:  # whoever knows the sum does not know this
        total = evolve(total, terms=None)
    return (Counted(whole, w.length(total, lambda: number), axis, False),)


def own_count(w: Writer, x: Counted | None, type_: TensorType, axis: int) -> int:
    """How many entries count along an axis."""
    return w.number(type_.shape[axis] or 0) if x is None else x.count


def _sliced(w: Writer, operation: Operation, given: Given) -> Written | None:
    """A slice whose bounds along one axis only the run tells: what it begins with is moved to the front."""
    op, (x, begin, end, strides) = operation.op, operation.used
    assert isinstance(op, StridedSlice)
    counted = given[0]
    whole = x if counted is None else counted.operand
    type_, step = w.types[whole], w.types[strides].value
    strange = op.ellipsis_mask | op.new_axis_mask or op.offset
    large = counted is None and hint(type_.nbytes) > MOST_SLICED
    if any(given[1:]) or strange or step is None or large or 0 in type_.shape:
        return None
    low, high = (w.extents.of(i) for i in (begin, end))
    if low is None or high is None or low.shape != step.shape or high.shape != step.shape:
        return None
    open_ = [a for a in range(step.size) if _is_open(op, a, low, high, step, counted)]
    if len(open_) != 1 or (counted is not None and open_ != [counted.axis]):
        return None
    (axis,) = open_
    if step.reshape(-1)[axis] != 1:
        return None
    gone = [a for a in range(step.size) if op.shrink_axis_mask >> a & 1]
    others = [
        a for a in range(step.size) if a != axis and not (op.begin_mask & op.end_mask & ~op.shrink_axis_mask) >> a & 1
    ]
    if others:
        bounds = [np.array([0 if a == axis else c.low for a, c in enumerate(cells)], np.int64) for cells in (low, high)]
        rest = StridedSlice(
            op.begin_mask | 1 << axis, op.end_mask | 1 << axis, shrink_axis_mask=op.shrink_axis_mask & ~(1 << axis)
        )
        numbers = [w.constant(b) for b in bounds] + [w.constant(step.astype(np.int64))]
        whole = w.add(rest, whole, *numbers, quantization=type_.quantization)
    size = type_.shape[axis] or 0
    at = axis - sum(a < axis for a in gone)
    count = own_count(w, counted, type_, axis)
    if axis in gone:
        place = _clip(w, begin, axis, count, clipped=False)
        return (w.add(Gather(at), whole, w.add(Within(), place, count), quantization=type_.quantization),)
    last = count if op.end_mask >> axis & 1 else _clip(w, end, axis, count)
    if op.begin_mask >> axis & 1 or low[axis].exact == 0:
        return (Counted(whole, last, at, False),)
    first = _clip(w, begin, axis, count)
    number = w.add(Binary(BinaryKind.MAXIMUM), w.add(Binary(BinaryKind.SUB), last, first), w.number(0))
    return (Counted(_from(w, whole, at, first, size), number, at, False),)


def _is_open(op: StridedSlice, axis: int, low: Cells, high: Cells, step: object, counted: Counted | None) -> bool:
    """Whether only the run tells the bounds of a slice along an axis."""
    if counted is not None and axis == counted.axis:
        return True
    if op.shrink_axis_mask >> axis & 1:
        return low[axis].exact is None
    begins = op.begin_mask >> axis & 1 or low[axis].exact is not None
    return not (begins and (op.end_mask >> axis & 1 or high[axis].exact is not None))


def _from(w: Writer, x: int, axis: int, first: int, size: int) -> int:
    """The entries of a tensor from one on, the last one again and again behind them."""
    places = w.sum(w.constant(np.arange(size, dtype=np.int64)), first)
    places = w.add(Binary(BinaryKind.MINIMUM), places, w.number(size - 1))
    return w.add(Gather(axis), x, places, quantization=w.types[x].quantization)


def _clip(w: Writer, bounds: int, axis: int, count: int, *, clipped: bool = True) -> int:
    """A bound of a slice as a place from 0 to a count; one below 0 counts from the end."""
    found = w.as_count(w.part(bounds, axis, 1))
    below = w.add(Comparison(ComparisonKind.LESS), found, w.number(0))
    found = w.add(Select(), below, w.sum(found, count), found)
    if not clipped:
        return found
    found = w.add(Binary(BinaryKind.MAXIMUM), found, w.number(0))
    return w.add(Binary(BinaryKind.MINIMUM), found, count)


def _cut(w: Writer, operation: Operation, given: Given) -> Written | None:
    """A slice of a computed size along one axis, all of which must be there."""
    x, begin, size = operation.used
    counted = given[0]
    whole = x if counted is None else counted.operand
    type_ = w.types[whole]
    low, sizes = (w.extents.of(i) for i in (begin, size))
    large = counted is None and hint(type_.nbytes) > MOST_SLICED
    if any(given[1:]) or low is None or sizes is None or large or 0 in type_.shape:
        return None
    if low.shape != (type_.rank,) or sizes.shape != (type_.rank,):
        return None
    open_ = {a for a in range(type_.rank) if low[a].exact is None or sizes[a].exact is None}
    open_ |= set() if counted is None else {counted.axis}
    if len(open_) != 1:
        return None
    (axis,) = open_
    length = sizes[axis]
    if length.low < 0 and length.exact != -1:
        return None
    if any(a != axis and (low[a].low or sizes[a].low not in (-1, type_.shape[a])) for a in range(type_.rank)):
        begins = w.constant(np.array([0 if a == axis else c.low for a, c in enumerate(low)], np.int64))
        rest = w.constant(np.array([-1 if a == axis else c.low for a, c in enumerate(sizes)], np.int64))
        whole = w.add(Slice(), whole, begins, rest, quantization=type_.quantization)
    there = own_count(w, counted, type_, axis)
    first = w.add(Within(inclusive=True), w.as_count(w.part(begin, axis, 1)), there)
    left = w.add(Binary(BinaryKind.SUB), there, first)
    entries = type_.shape[axis] or 0
    moved = whole if low[axis].exact == 0 else _from(w, whole, axis, first, entries)
    if length.exact == -1:
        return (Counted(moved, left, axis, False),)
    number = w.add(Within(inclusive=True), w.as_count(w.part(size, axis, 1)), left)
    if length.exact is None:
        return (Counted(moved, number, axis, False),)
    if not 0 < length.exact <= entries:
        return None
    sure_ = [length.exact if a == axis else -1 for a in range(type_.rank)]
    kept = w.constant(np.array(sure_, np.int64)), w.constant(np.zeros(type_.rank, np.int64))
    whole = w.add(Slice(), moved, kept[1], kept[0], quantization=type_.quantization)
    return (w.if_sure(whole, axis, number, length.exact),)


def _parts(w: Writer, operation: Operation, given: Given) -> Written | None:
    """Parts of computed sizes, one behind the other."""
    op, (x, sizes, along) = operation.op, operation.used
    assert isinstance(op, SplitV)
    type_, axis, cells = w.types[x], w.types[along].value, w.extents.of(sizes)
    if any(given) or axis is None or cells is None or cells.shape != (op.count,) or hint(type_.nbytes) > MOST_SLICED:
        return None
    if all(c.exact is not None for c in cells) or any(c.low < 0 and c.exact != -1 for c in cells) or 0 in type_.shape:
        return None
    if [c.exact for c in cells].count(-1) > 1:
        return None
    at = normalize_axis(int(axis.reshape(-1)[0]), type_.rank)
    size = type_.shape[at] or 0
    numbers = [w.as_count(w.part(sizes, i, 1)) for i in range(op.count)]
    left = w.number(size)
    for number, cell in zip(numbers, cells, strict=True):
        if cell.exact != -1:
            left = w.add(Binary(BinaryKind.SUB), left, number)
    rest = [i for i, c in enumerate(cells) if c.exact == -1]
    left = w.add(Within(inclusive=True), left, w.number(size if rest else 0))  # what they do not add up to
    for i in rest:
        numbers[i] = left
    first, found = (w.number(0) if rest else left), []
    for number in numbers:
        count = w.add(Within(inclusive=True), number, w.number(size))
        found.append(Counted(_from(w, x, at, first, size), count, at, False))
        first = w.sum(first, count)
    return tuple(found)


def _hot(w: Writer, operation: Operation, given: Given) -> Written | None:
    """Rows as long as they can be at most."""
    op, (indices, depth, on, off) = operation.op, operation.used
    assert isinstance(op, OneHot)
    most, type_ = w.extents.one(depth), w.types[indices]
    if any(given) or most is None or most.exact is not None or not 0 < most.high <= MOST_SIZED or 0 in type_.shape:
        return None
    count = w.length(most, lambda: w.as_count(depth))
    whole = w.add(op, indices, w.constant(np.array(most.high, np.int32)), on, off)
    return (Counted(whole, count, normalize_axis(op.axis, type_.rank + 1), False),)


SIZED: Mapping[type[Op], Rule] = {
    Range: _range,
    **dict.fromkeys((Fill, BroadcastTo), _filled),
    Tile: _tiled,
    Pad: _padded,
    Reshape: reshaped,
    StridedSlice: _sliced,
    Slice: _cut,
    SplitV: _parts,
    OneHot: _hot,
}
