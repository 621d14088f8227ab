"""Operations on the first entries of tensors as operations on the whole tensors, of which the first entries count."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import field, frozen

from onert.ir import Array, CallTypes, Op
from onert.ir.ops.arithmetic import shape_values as sv
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.gather import Gather, GatherNd
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import Slice, StridedSlice
from onert.ir.ops.elementwise.binary import AddN, Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary
from onert.ir.ops.reduction.reduce import ArgReduce, Reduce
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.shape import normalize_axes, normalize_axis, static
from onert.ir.value import Value


@frozen
class Moved(Value):
    """How an operation runs on whole tensors: along which axis of the result the entries that count come first, which
    operands must be 0 behind theirs, constants that take the place of operands, and whether zeros behind stay zeros."""

    axis: int
    zeroed: tuple[int, ...] = ()
    constants: Mapping[int, Array] = field(factory=dict)
    keeps_zeros: bool = True


Axes = Sequence[int | None]
"""For each operand the axis along which the first entries count; None where all do."""
Rule = Callable[..., Moved | None]


def moved(op: Op, types: CallTypes, axes: Axes) -> Moved | None:
    """How an operation on first entries runs on the whole tensors, of the types given; None where it cannot.

    All operands of which the first entries count have equally many.
    """
    rule = _RULES.get(type(op))
    return None if rule is None else rule(op, types, axes)


def _each(op: Op, types: CallTypes, axes: Axes) -> Moved | None:
    """Functions of elements of one shape, or broadcast from the back."""
    if isinstance(op, Select) and op.rows and types.input(0).rank == 1 < types.input(1).rank:
        return None
    if isinstance(op, Binary) and op.kind in _REPORTING and types.input(1).dtype.is_integer and axes[1] is not None:
        return None  # what lies behind may be 0, and no divisor
    behind = {types.inputs[i].rank - axis for i, axis in enumerate(axes) if axis is not None}  # type: ignore[union-attr]
    if len(behind) != 1:
        return None
    (distance,) = behind
    for t, axis in zip(types.inputs, axes, strict=True):
        if axis is None and t is not None and t.rank >= distance and t.shape[-distance] != 1:
            return None
    rank = max(t.rank for t in types.inputs if t is not None)
    return Moved(rank - distance, keeps_zeros=isinstance(op, Cast | Copy))


_REPORTING = frozenset((BinaryKind.DIV, BinaryKind.FLOOR_DIV, BinaryKind.FLOOR_MOD, BinaryKind.POW))


def _gather(op: Gather, types: CallTypes, axes: Axes) -> Moved | None:
    x, indices = types.input(0), types.input(1)
    along = normalize_axis(op.axis, x.rank)
    if op.batch_dims or None not in axes:
        return None
    if axes[1] is not None:  # behind the entries that count it is the first slice that is taken
        return Moved(along + axes[1], (1,), keeps_zeros=False) if (x.shape[along] or 0) > 0 else None
    own = axes[0]
    if own is None or own == along:
        return None
    return Moved(own if own < along else own + indices.rank - 1)


def _gather_nd(op: GatherNd, types: CallTypes, axes: Axes) -> Moved | None:
    x, indices = types.input(0), types.input(1)
    own = axes[1]
    if axes[0] is not None or own is None or own == indices.rank - 1 or 0 in x.shape:
        return None
    return Moved(own, (1,), keeps_zeros=False)


def _transpose(op: Transpose, types: CallTypes, axes: Axes) -> Moved | None:
    order = types.input(1).value
    return None if order is None or axes[0] is None else Moved([int(i) for i in order.reshape(-1)].index(axes[0]))


def _squeeze(op: Squeeze, types: CallTypes, axes: Axes) -> Moved | None:
    shape, own = types.input(0).shape, axes[0]
    if not op.axes or own is None:
        return None
    gone = normalize_axes(op.axes, len(shape))
    return None if own in gone else Moved(own - sum(axis < own for axis in gone))


def _expand(op: ExpandDims, types: CallTypes, axes: Axes) -> Moved | None:
    found, own = types.input(1).value, axes[0]
    if found is None or own is None:
        return None
    at = normalize_axis(int(found.reshape(-1)[0]), types.input(0).rank + 1)
    return Moved(own + (at <= own))


def _reshape(op: Reshape, types: CallTypes, axes: Axes) -> Moved | None:
    """Where -1 stands for the entries that count, with as many elements before them and behind."""
    own, shape = axes[0], static(types.input(0).shape)
    given = types.inputs[1].value if len(types.inputs) > 1 and types.inputs[1] is not None else None
    if own is None or given is None or op.new_shape is not None or 0 in shape:
        return None
    wanted = sv.values(given)
    if wanted.count(-1) != 1:
        return None
    at = wanted.index(-1)
    if math.prod(shape[:own]) != math.prod(wanted[:at]) or math.prod(shape[own + 1 :]) != math.prod(wanted[at + 1 :]):
        return None
    return Moved(at, constants={1: np.array((*wanted[:at], shape[own], *wanted[at + 1 :]), np.int64)})


def _slice(op: Slice, types: CallTypes, axes: Axes) -> Moved | None:
    begin, size, own = types.input(1).value, types.input(2).value, axes[0]
    if begin is None or size is None or own is None:
        return None
    return Moved(own) if int(begin.reshape(-1)[own]) == 0 and int(size.reshape(-1)[own]) == -1 else None


def _strided(op: StridedSlice, types: CallTypes, axes: Axes) -> Moved | None:
    """Where the axis is taken whole, however long it is."""
    own, given = axes[0], [types.input(i).value for i in (1, 2, 3)]
    if own is None or any(g is None for g in given) or op.ellipsis_mask or op.new_axis_mask or op.offset:
        return None
    begin, end, strides = (sv.values(g) for g in given if g is not None)
    if own < len(begin):
        length = types.input(0).shape[own] or 0
        starts = op.begin_mask >> own & 1 or begin[own] == 0
        ends = op.end_mask >> own & 1 or end[own] >= length
        if op.shrink_axis_mask >> own & 1 or strides[own] != 1 or not starts or not ends:
            return None
    return Moved(own - sum(op.shrink_axis_mask >> i & 1 for i in range(min(own, len(begin)))))


def _concat(op: Concat, types: CallTypes, axes: Axes) -> Moved | None:
    if None in axes or len(set(axes)) != 1:
        return None
    (own,) = set(axes)
    return None if own is None or normalize_axis(op.axis, types.input(0).rank) == own else Moved(own)


def _reduce(op: Reduce, types: CallTypes, axes: Axes) -> Moved | None:
    own, found = axes[0], types.input(1).value
    if own is None or found is None:
        return None
    gone = normalize_axes(tuple(int(a) for a in found.reshape(-1)), types.input(0).rank)
    if own in gone:
        return None
    return Moved(own if op.keep_dims else own - sum(axis < own for axis in gone), keeps_zeros=False)


def _best(op: ArgReduce, types: CallTypes, axes: Axes) -> Moved | None:
    own, found = axes[0], types.input(1).value
    if own is None or found is None:
        return None
    gone = normalize_axis(int(found.reshape(-1)[0]), types.input(0).rank)
    return None if own == gone else Moved(own - (gone < own))


def _rows(op: Softmax | LogSoftmax, types: CallTypes, axes: Axes) -> Moved | None:
    own = axes[0]
    return None if own is None or own == types.input(0).rank - 1 else Moved(own, keeps_zeros=False)


_RULES: dict[type[Op], Rule] = {
    **dict.fromkeys((Unary, LeakyRelu, Cast, Copy, Binary, AddN, Comparison, Select), _each),
    Gather: _gather,
    GatherNd: _gather_nd,
    Transpose: _transpose,
    Squeeze: _squeeze,
    ExpandDims: _expand,
    Reshape: _reshape,
    Slice: _slice,
    StridedSlice: _strided,
    Concat: _concat,
    Reduce: _reduce,
    ArgReduce: _best,
    **dict.fromkeys((Softmax, LogSoftmax), _rows),
}
