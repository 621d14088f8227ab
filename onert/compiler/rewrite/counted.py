"""Operations that take first entries together, written on whole tensors of which the first entries count."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from onert.ir import DType, Op, Operation, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.element_indices import Combination
from onert.ir.ops.data_movement.fill import CountedWhere, Fill, Range, TopK, Unique, Within
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice, Gather, GatherNd
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, StridedSlice
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.reduction.reduce import Reduce, Reduction, identity
from onert.ir.shape import normalize_axes, normalize_axis
from onert.ir.symbolic.trace import hint

from .counting import Counted, Writer
from .edit import definer

Given = Sequence[Counted | None]
Written = tuple[Counted | int, ...]
"""For each result a whole tensor of which first entries count, or one that is the result itself."""
Rule = Callable[[Writer, Operation, Given], Written | None]


COUNTING = (TopK, Unique, UniqueSlices, StridedSlice, Range, Fill, BroadcastTo)
"""Kinds of which only a run may know how much they give, though they are given no first entries."""


def written(w: Writer, operation: Operation, given: Given) -> Written | None:
    """The operation on whole tensors, in `w.made`; None where it is none of those that are known.

    `given` says which operands are known to be first entries, of static tensors; all others are static too.
    """
    rule = _RULES.get(type(operation.op))
    return None if rule is None else rule(w, operation, given)


def _concat(w: Writer, operation: Operation, given: Given) -> Written | None:
    """Each whole tensor is put where the entries of those before it end, over what does not count of these."""
    op = operation.op
    assert isinstance(op, Concat)
    wholes = [i if c is None else c.operand for i, c in zip(operation.used, given, strict=True)]
    types = [w.types[i] for i in wholes]
    along = normalize_axis(op.axis, types[0].rank)
    if any(c is not None and c.axis != along for c in given) or op.activation is not Activation.NONE:
        return None
    out = w.edit.subgraph.type(operation.outputs[0])
    if any(t.quantization != out.quantization or t.dtype.is_handle or 0 in t.shape for t in types):
        return None
    whole = w.add(op, *wholes, quantization=out.quantization)
    rank = types[0].rank
    count = w.constant(np.array(0, np.int64))
    moved = False
    for part, type_, counted in zip(wholes, types, given, strict=True):
        if moved:
            at: list[int] = [w.constant(np.array([0], np.int64)) for _ in range(rank)]
            at[along] = w.add(Reshape(), count, w.constant(np.array([1], np.int32)))
            start = at[0] if rank == 1 else w.add(Concat(0), *at)
            whole = w.add(DynamicUpdateSlice(), whole, part, start, quantization=out.quantization)
        count = w.sum(count, w.constant(np.array(type_.shape[along], np.int64)) if counted is None else counted.count)
        moved = moved or counted is not None
    return (Counted(whole, count, along, False),)


def _neutral(kind: Reduction, type_: TensorType) -> float | None:
    """What changes nothing in a reduction, as it is stored; None where that is not known."""
    if kind in (Reduction.ANY, Reduction.ALL) or type_.dtype is DType.BOOL:
        return kind in (Reduction.ALL, Reduction.PROD, Reduction.MIN)
    if type_.quantization is not None:
        return None
    if kind in (Reduction.SUM, Reduction.PROD):
        return 0 if kind is Reduction.SUM else 1
    if kind is Reduction.MEAN:
        return 0 if type_.dtype in (DType.FLOAT32, DType.FLOAT64) else None
    return identity(kind, type_.dtype.numpy) if type_.dtype.numpy.kind in "fiu" else None


def _reduce(w: Writer, operation: Operation, given: Given) -> Written | None:
    """What does not count is made neutral."""
    op, (counted, other) = operation.op, given
    assert isinstance(op, Reduce)
    axes = w.types[operation.used[1]].value
    if counted is None or other is not None or axes is None:
        return None
    x = w.types[counted.operand]
    gone = normalize_axes(tuple(int(a) for a in axes.reshape(-1)), x.rank)
    value = _neutral(op.kind, x)
    if counted.axis not in gone or value is None:
        return None
    whole = w.zeroed(counted) if value == 0 else w.filled(counted, value)
    if op.kind is not Reduction.MEAN:
        return (w.add(op, whole, operation.used[1]),)
    total = w.add(Reduce(Reduction.SUM, op.keep_dims), whole, operation.used[1])
    others = math.prod(x.shape[a] or 0 for a in gone if a != counted.axis)
    number = w.add(Binary(BinaryKind.MUL), w.add(Cast(x.dtype), counted.count), w.like(x, others))
    return (w.add(Binary(BinaryKind.DIV), total, number),)


def _gather(w: Writer, operation: Operation, given: Given) -> Written | None:
    """Indices are checked against how many entries there are to gather from."""
    op, (x, indices) = operation.op, given
    at = operation.used[1] if indices is None else indices.operand
    places = w.types[at]
    if x is None or (indices is not None and indices.axis) or 0 in (*w.types[x.operand].shape, *places.shape):
        return None
    if isinstance(op, Gather):
        along = normalize_axis(op.axis, w.types[x.operand].rank)
        if along != x.axis or op.batch_dims:
            return None
    else:
        along = 0
        if x.axis or places.shape[-1] != 1 or (indices is not None and places.rank == 1):
            return None
    if places.dtype not in (DType.INT32, DType.INT64):
        return None
    checked = w.add(Within(), at, x.count, None if indices is None else indices.count)
    found = w.add(op, x.operand, checked, quantization=w.types[x.operand].quantization)
    return (found if indices is None else Counted(found, indices.count, along, False),)


def _top(w: Writer, operation: Operation, given: Given) -> Written | None:
    """All are put into order, of which as many count as are asked for: a number that only the run tells."""
    op, (x, wanted) = operation.op, given
    whole = operation.used[0] if x is None else x.operand
    type_, k = w.types[whole], operation.used[1]
    last = type_.rank - 1
    if wanted is not None or not type_.rank or w.types[k].value is not None or 0 in type_.shape:
        return None
    if x is not None:
        if x.axis != last or type_.quantization is not None or type_.dtype.numpy.kind not in "fiu":
            return None
        whole = w.filled(x, identity(Reduction.MAX, type_.dtype.numpy))
    number = w.add(Reshape(()), k) if w.types[k].shape else k
    number = number if w.types[number].dtype is DType.INT64 else w.add(Cast(DType.INT64), number)
    most = w.constant(np.array(type_.shape[last], np.int64))
    count = w.add(Within(inclusive=True), number, most if x is None else x.count)
    all_ = w.constant(np.array(type_.shape[last], np.int32))
    values, places = w.add_many(op, whole, all_, quantization=type_.quantization)
    return Counted(values, count, last, False), Counted(places, count, last, False)


def _unique(w: Writer, operation: Operation, given: Given) -> Written | None:
    """The elements in falling order, in which equal ones are neighbours: each difference begins a group.

    Of equal elements the one that stands first comes first, so a group begins with its first place.
    """
    op, x = operation.op, operation.used[0]
    type_ = w.types[x]
    count = math.prod(d or 0 for d in type_.shape)
    flat = isinstance(op, Unique) or op == UniqueSlices(None, op.sorted) or type_.rank == 1  # type: ignore[attr-defined]
    real = type_.dtype.is_float and not isinstance(op, Unique)  # of which NaN is told from NaN
    if any(given) or not flat or real or not count or type_.quantization is not None:
        return None
    x = x if type_.rank == 1 else w.add(Reshape((count,)), x)
    values, places = w.add_many(TopK(DType.INT64), x, w.constant(np.array(count, np.int32)))
    begins = w.constant(np.ones(1, np.bool_))
    if count > 1:
        begins = w.add(Concat(0), begins, _differ(w, w.part(values, 0, count - 1), w.part(values, 1, count - 1)))
    minus, nothing = w.constant(np.array(-1, np.int64)), w.constant(np.zeros(count, np.int64))
    group = w.sum(w.running(begins), minus)
    if isinstance(op, UniqueSlices) and op.sorted:
        last = w.part(group, count - 1, 1)
        group = w.add(Binary(BinaryKind.SUB), last, group)
        firsts = w.put(nothing, w.add(Select(), begins, group, minus), places)
        number, inverse = w.sum(last, w.constant(np.array([1], np.int64))), w.put(nothing, places, group)
        number = w.add(Reshape(()), number)
    else:
        ones = w.constant(np.ones(count, np.int64))
        first_in_order = w.put(nothing, w.add(Select(), begins, group, minus), places)
        mask = w.add(Cast(DType.BOOL), w.put(nothing, w.add(Select(), begins, places, minus), ones))
        found, number = w.add_many(CountedWhere(), mask)
        firsts = w.add(Reshape((count,)), found)
        rank = w.sum(w.running(mask), minus)
        own = w.add(Gather(0), first_in_order, w.put(nothing, places, group))
        inverse = w.add(Gather(0), rank, own)
    different = Counted(w.add(Gather(0), x, firsts), number, 0, False)
    if isinstance(op, Unique):
        return different, inverse if op.index is DType.INT64 else w.add(Cast(op.index), inverse)
    ones = w.constant(np.ones(count, np.int64))
    often = w.put(nothing, inverse, ones, Combination.ADD)
    return different, Counted(firsts, number, 0, True), inverse, Counted(often, number, 0, True)


def _differ(w: Writer, a: int, b: int) -> int:
    """Where two tensors differ; what is not a number is like what is not one."""
    differ = w.add(Comparison(ComparisonKind.NOT_EQUAL), a, b)
    if not w.types[a].dtype.is_float:
        return differ
    numbers = (w.add(Comparison(ComparisonKind.EQUAL), each, each) for each in (a, b))
    return w.add(Binary(BinaryKind.LOGICAL_AND), differ, w.add(Binary(BinaryKind.LOGICAL_OR), *numbers))


def _range(w: Writer, operation: Operation, given: Given) -> Written | None:
    """The numbers below the most that there can be, of which as many count as entries do."""
    start, limit, delta = operation.used
    counted = _length(w, limit)
    first, step = (w.types[i].value for i in (start, delta))
    kind = w.types[limit].dtype
    if counted is None or first is None or step is None or kind not in (DType.INT32, DType.INT64):
        return None
    if int(first.reshape(())) or int(step.reshape(())) != 1:
        return None
    numbers = w.add(Copy(), w.constant(np.arange(w.bound(counted), dtype=kind.numpy)))
    return (Counted(numbers, counted.count, 0, False),)


def _fill(w: Writer, operation: Operation, given: Given) -> Written | None:
    """A tensor in the shape of one of which first entries count."""
    op, used = operation.op, operation.used
    value, dims = used if isinstance(op, BroadcastTo) else used[::-1]
    made = _through(w, dims, (Cast,))
    counted = w.known.get(made.used[0]) if made is not None and isinstance(made.op, ShapeOf) else None
    if counted is None or any(given):
        return None
    shape = w.constant(np.array(w.types[counted.operand].shape, np.int64))
    whole = w.add(BroadcastTo(), value, shape, quantization=w.types[value].quantization)
    return (Counted(whole, counted.count, counted.axis, False),)


def _through(w: Writer, operand: int, kinds: tuple[type[Op], ...]) -> Operation | None:
    """The operation that makes an operand of the graph, behind some of these kinds."""
    made = definer(w.edit.subgraph, operand)
    while made is not None and isinstance(made.op, kinds):
        made = definer(w.edit.subgraph, made.used[0])
    return made


def _length(w: Writer, operand: int) -> Counted | None:
    """The tensor of which an operand is the number of entries that count; None if it is another number."""
    made = _through(w, operand, (Cast, Reshape, Squeeze, ExpandDims))
    if made is None or not isinstance(made.op, Gather | StridedSlice):
        return None
    masks = isinstance(made.op, StridedSlice) and made.op.begin_mask | made.op.ellipsis_mask | made.op.new_axis_mask
    one = math.prod(d or 0 for d in w.edit.subgraph.type(made.outputs[0]).shape) == 1
    chosen = w.types[made.used[1]].value
    if masks or not one or chosen is None or chosen.size != 1:
        return None
    shape = _through(w, made.used[0], (Cast,))
    counted = w.known.get(shape.used[0]) if shape is not None and isinstance(shape.op, ShapeOf) else None
    rank = 0 if counted is None else w.types[counted.operand].rank
    return counted if counted is not None and int(chosen.reshape(())) in (counted.axis, counted.axis - rank) else None


MOST_SLICED = 1 << 16
"""Bytes of a tensor that is taken as a whole where a run asks for a slice of it: to move them takes less time than an
operation in NumPy."""


def _sliced(w: Writer, operation: Operation, given: Given) -> Written | None:
    """A slice along one axis, whose bounds only the run tells: what it begins with is moved to the front."""
    op, (x, begin, end, strides) = operation.op, operation.used
    assert isinstance(op, StridedSlice)
    type_, (low, high, step) = w.types[x], (w.types[i].value for i in (begin, end, strides))
    strange = op.ellipsis_mask | op.new_axis_mask | op.shrink_axis_mask or op.offset
    if (
        any(given)
        or strange
        or step is None
        or (step != 1).any()
        or 0 in type_.shape
        or hint(type_.nbytes) > MOST_SLICED
    ):
        return None
    cut = [a for a in range(step.size) if not (op.begin_mask & op.end_mask) >> a & 1]
    if len(cut) != 1 or (low is not None and high is not None):
        return None
    (axis,) = cut
    size = type_.shape[axis] or 0
    front = op.begin_mask >> axis & 1 or (low is not None and not low.reshape(-1)[axis])
    last = w.number(size) if op.end_mask >> axis & 1 else _clipped(w, end, axis, size)
    if front:
        return (Counted(x, last, axis, False),)
    first = _clipped(w, begin, axis, size)
    count = w.add(Binary(BinaryKind.MAXIMUM), w.add(Binary(BinaryKind.SUB), last, first), w.number(0))
    places = w.sum(w.constant(np.arange(size, dtype=np.int64)), first)
    places = w.add(Binary(BinaryKind.MINIMUM), places, w.number(size - 1))
    return (Counted(w.add(Gather(axis), x, places, quantization=type_.quantization), count, axis, False),)


def _clipped(w: Writer, bounds: int, axis: int, size: int) -> int:
    """A bound of a slice as a place from 0 to a size; one below 0 counts from the end."""
    found = w.add(Reshape(()), w.part(bounds, axis, 1))
    found = found if w.types[found].dtype is DType.INT64 else w.add(Cast(DType.INT64), found)
    below = w.add(Comparison(ComparisonKind.LESS), found, w.number(0))
    found = w.add(Select(), below, w.sum(found, w.number(size)), found)
    found = w.add(Binary(BinaryKind.MAXIMUM), found, w.number(0))
    return w.add(Binary(BinaryKind.MINIMUM), found, w.number(size))


_RULES: dict[type[Op], Rule] = {
    StridedSlice: _sliced,
    Range: _range,
    **dict.fromkeys((Fill, BroadcastTo), _fill),
    Unique: _unique,
    UniqueSlices: _unique,
    Concat: _concat,
    Reduce: _reduce,
    Gather: _gather,
    GatherNd: _gather,
    TopK: _top,
}
