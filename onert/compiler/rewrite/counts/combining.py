"""Operations that combine entries along a counted axis, rewritten for whole tensors with valid first entries."""

from __future__ import annotations

import math

import numpy as np
from attrs import evolve

from onert.ir import DType, Op, Operation, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.element_indices import Combination
from onert.ir.ops.data_movement.fill import CountedWhere, Fill, TopK, Unique, Within
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice, Gather, GatherNd
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice, StridedSlice, Tile
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.rnn import RNN
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction, identity
from onert.ir.ops.reduction.segment import UnsortedSegment
from onert.ir.ops.vision_audio.detection import NonMaxSuppression
from onert.ir.shape import normalize_axes, normalize_axis

from .counting import Counted, CountedInputs, CountedResults, Rule, Writer, existing, first_of
from .extents import added, exactly
from .first_entries import counted_label
from .random_numbers import RANDOM
from .resized import RESIZING, resized
from .scattered import SCATTERED
from .sized import SIZED


def apply_rule(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """The operation on whole tensors, in `w.operations`; None if there is no rule for it.

    `inputs` says which operands are first entries of static tensors; all others are static too. Some layers may
    lack operands.
    """
    rule = _RULES.get(type(operation.op))
    return None if rule is None else rule(w, operation, inputs)


def _concat(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Each whole tensor is written where the valid entries before it end, over their invalid entries."""
    op = operation.op
    assert isinstance(op, Concat)
    parts = [(i if c is None else c.operand, c) for i, c in zip(operation.used, inputs, strict=True)]
    along = normalize_axis(op.axis, w.types[parts[0][0]].rank)
    parts = [(i, c) for i, c in parts if w.types[i].shape[along] != 0]
    wholes, inputs = [i for i, _ in parts], tuple(c for _, c in parts)
    types = [w.types[i] for i in wholes]
    if any(c is not None and c.axis != along for c in inputs) or op.activation is not Activation.NONE:
        return None
    out = w.edit.subgraph.type(operation.outputs[0])
    if any(t.quantization != out.quantization or t.dtype.is_handle or 0 in t.shape for t in types):
        return None
    if len(parts) < 2:
        return None if not inputs or inputs[0] is None else (inputs[0],)
    whole = w.add(op, *wholes, quantization=out.quantization)
    rank = types[0].rank
    count, total = w.integers(0), exactly(0)
    is_counted = False
    for part, type_, counted in zip(wholes, types, inputs, strict=True):
        if is_counted:
            at: list[int] = [w.integers([0]) for _ in range(rank)]
            at[along] = w.add(Reshape(), count, w.integers([1], DType.INT32))
            start = at[0] if rank == 1 else w.add(Concat(0), *at)
            whole = w.add(DynamicUpdateSlice(), whole, part, start, quantization=out.quantization)
        valid = w.number(type_.shape[along] or 0) if counted is None else counted.count
        size = w.extents.one(valid)
        assert size is not None  # every count has a bound
        count, total = w.sum(count, valid), added(total, size, 1)
        is_counted = is_counted or counted is not None
    return (Counted(whole, w.length(total, existing(count)), along, False),)


def _neutral(kind: Reduction, type_: TensorType) -> float | None:
    """The stored neutral element of a reduction; None if unknown."""
    if kind in (Reduction.ANY, Reduction.ALL) or type_.dtype is DType.BOOL:
        return kind in (Reduction.ALL, Reduction.PROD, Reduction.MIN)
    if type_.quantization is not None:
        return None
    if kind in (Reduction.SUM, Reduction.PROD):
        return 0 if kind is Reduction.SUM else 1
    if kind is Reduction.MEAN:
        return 0 if type_.dtype in (DType.FLOAT32, DType.FLOAT64) else None
    return identity(kind, type_.dtype.numpy) if type_.dtype.numpy.kind in "fiu" else None


def _reduce(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Invalid entries are replaced by the neutral element."""
    op, (counted, other) = operation.op, inputs
    assert isinstance(op, Reduce)
    axes = w.types[operation.used[1]].value
    if counted is None or other is not None or axes is None:
        return None
    x = w.types[counted.operand]
    reduced = normalize_axes(tuple(int(a) for a in axes.reshape(-1)), x.rank)
    value = _neutral(op.kind, x)
    reduced_counts = first_of(
        counted.operand, {a: n for a, n in counted.axes.items() if a in reduced}, zeros=counted.zeros
    )
    if isinstance(reduced_counts, int) or value is None:
        return None
    kept_counts = {
        a if op.keep_dims else a - sum(g < a for g in reduced): n for a, n in counted.axes.items() if a not in reduced
    }
    whole = w.zeroed(reduced_counts) if value == 0 else w.filled(reduced_counts, value)
    if op.kind is not Reduction.MEAN:
        return (first_of(w.add(op, whole, operation.used[1]), kept_counts),)
    total = w.add(Reduce(Reduction.SUM, op.keep_dims), whole, operation.used[1])
    number = w.like(x, math.prod(x.shape[a] or 0 for a in reduced if a not in reduced_counts.axes))
    for count in reduced_counts.axes.values():
        number = w.add(Binary(BinaryKind.MUL), w.add(Cast(x.dtype), count), number)
    return (first_of(w.add(Binary(BinaryKind.DIV), total, number), kept_counts),)


def _gather(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Indices are checked against the number of valid entries to gather from."""
    op, (x, indices) = operation.op, inputs
    at = operation.used[1] if indices is None else indices.operand
    index_type = w.types[at]
    if x is None or (indices is not None and indices.axis) or 0 in (*w.types[x.operand].shape, *index_type.shape):
        return None
    if isinstance(op, Gather):
        along = normalize_axis(op.axis, w.types[x.operand].rank)
        if along != x.axis or op.batch_dims:
            return None
    else:
        along = 0
        if x.axis or index_type.shape[-1] != 1 or (indices is not None and index_type.rank == 1):
            return None
    if index_type.dtype not in (DType.INT32, DType.INT64):
        return None
    checked = w.add(Within(), at, x.count, None if indices is None else indices.count)
    found = w.add(op, x.operand, checked, quantization=w.types[x.operand].quantization)
    return (found if indices is None else Counted(found, indices.count, along, False),)


def _sorts_last(op: Op, dtype: DType) -> float:
    """A value that sorts last in the order of TopK."""
    least = isinstance(op, TopK) and op.least
    return np.nan if least and dtype.is_float else identity(Reduction.MIN if least else Reduction.MAX, dtype.numpy)


def _top_k(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """The largest possible number of entries is sorted; the run's k of them are valid."""
    op, (x, counted_k) = operation.op, inputs
    whole = operation.used[0] if x is None else x.operand
    type_, k = w.types[whole], operation.used[1]
    last, known_k = type_.rank - 1, w.types[k].value
    if counted_k is not None or not type_.rank or (x is None and known_k is not None) or 0 in type_.shape:
        return None
    if x is not None:
        if x.axis != last or type_.quantization is not None or type_.dtype.numpy.kind not in "fiu":
            return None
        if known_k is not None:  # k is known: that many entries must be valid
            number = int(known_k.reshape(-1)[0])
            if not 0 < number <= w.bound(x):
                return None
            checked = w.sum(w.add(Within(inclusive=True), w.number(number), x.count), w.number(-number))
            x = evolve(x, count=w.sum(checked, x.count))
        whole = w.filled(x, _sorts_last(op, type_.dtype))
        if known_k is not None:
            return w.add_many(op, whole, k, quantization=type_.quantization)
    number = w.add(Reshape(()), k) if w.types[k].shape else k
    number = number if w.types[number].dtype is DType.INT64 else w.add(Cast(DType.INT64), number)
    size_operand = w.integers(type_.shape[last])
    count = w.add(Within(inclusive=True), number, size_operand if x is None else x.count)
    extent = w.extents.one(k)
    size = type_.shape[last] or 0
    capacity = size if extent is None else min(size, max(extent.high, 1))
    capacity_operand = w.integers(capacity, DType.INT32)
    values, places = w.add_many(op, whole, capacity_operand, quantization=type_.quantization)
    return Counted(values, count, last, False), Counted(places, count, last, False)


def _unique(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """The elements are sorted in descending order, so equal ones are adjacent: each difference starts a group.

    Equal elements keep their order, so a group starts with the first occurrence. Invalid elements become copies of the
    first element, with an occurrence count of 0.
    """
    op, (counted,) = operation.op, inputs
    x = operation.used[0] if counted is None else counted.operand
    type_ = w.types[x]
    count = math.prod(d or 0 for d in type_.shape)
    flat = isinstance(op, Unique) or op == UniqueSlices(None, op.sorted) or type_.rank == 1  # type: ignore[attr-defined]
    nan_unique = type_.dtype.is_float and not isinstance(op, Unique)  # where each NaN is unique
    if (
        not flat
        or nan_unique
        or not count
        or type_.quantization is not None
        or (counted is not None and type_.rank != 1)
    ):
        return None
    x = x if type_.rank == 1 else w.add(Reshape((count,)), x)
    ones = w.repeated(1, count)
    if counted is not None:
        inside = w.valid_mask(counted)
        x, ones = w.add(Select(), inside, x, w.part(x, 0, 1)), w.add(Cast(DType.INT64), inside)
    values, places = w.add_many(TopK(DType.INT64), x, w.integers(count, DType.INT32))
    starts = w.constant(np.ones(1, np.bool_))
    if count > 1:
        starts = w.add(Concat(0), starts, _differ(w, w.part(values, 0, count - 1), w.part(values, 1, count - 1)))
    minus, nothing = w.integers(-1), w.repeated(0, count)
    group = w.sum(w.running_count(starts), minus)
    if isinstance(op, UniqueSlices) and op.sorted:
        last = w.part(group, count - 1, 1)
        group = w.add(Binary(BinaryKind.SUB), last, group)
        first_indices = w.scattered(nothing, w.add(Select(), starts, group, minus), places)
        number, inverse = w.sum(last, w.integers([1])), w.scattered(nothing, places, group)
        number = w.add(Reshape(()), number)
    else:
        first_by_group = w.scattered(nothing, w.add(Select(), starts, group, minus), places)
        is_first = w.scattered(nothing, w.add(Select(), starts, places, minus), w.repeated(1, count))
        mask = w.add(Cast(DType.BOOL), is_first)
        found, number = w.add_many(CountedWhere(), mask)
        first_indices = w.add(Reshape((count,)), found)
        rank = w.sum(w.running_count(mask), minus)
        valid = w.add(Gather(0), first_by_group, w.scattered(nothing, places, group))
        inverse = w.add(Gather(0), rank, valid)
    if counted is not None:
        number = w.add(Binary(BinaryKind.MINIMUM), number, counted.count)
    distinct = Counted(w.add(Gather(0), x, first_indices), number, 0, False)

    def of_each(each: int) -> Counted | int:
        return each if counted is None else Counted(each, counted.count, 0, False)

    if isinstance(op, Unique):
        return distinct, of_each(inverse if op.index is DType.INT64 else w.add(Cast(op.index), inverse))
    occurrences = w.scattered(nothing, inverse, ones, Combination.ADD)
    return distinct, Counted(first_indices, number, 0, True), of_each(inverse), Counted(occurrences, number, 0, True)


def _differ(w: Writer, a: int, b: int) -> int:
    """Where two tensors differ; NaN equals NaN."""
    differ = w.add(Comparison(ComparisonKind.NOT_EQUAL), a, b)
    if not w.types[a].dtype.is_float:
        return differ
    numbers = (w.add(Comparison(ComparisonKind.EQUAL), each, each) for each in (a, b))
    return w.add(Binary(BinaryKind.LOGICAL_AND), differ, w.add(Binary(BinaryKind.LOGICAL_OR), *numbers))


def _reverse(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Entries in reverse order, starting with the last valid one."""
    x, axes = inputs[0], w.types[operation.used[1]].value
    if x is None or axes is None:
        return None
    type_ = w.types[x.operand]
    reversed_axes = normalize_axes(tuple(int(a) for a in axes.reshape(-1)), type_.rank)
    others = [a for a in reversed_axes if a != x.axis]
    if x.axis not in reversed_axes or 0 in type_.shape:
        return None
    whole = w.add(operation.op, x.operand, w.integers(others, DType.INT32)) if others else x.operand
    last = w.sum(x.count, w.number(-1))
    from_last = w.add(Binary(BinaryKind.SUB), last, w.numbers(w.bound(x)))
    places = w.add(Binary(BinaryKind.MAXIMUM), from_last, w.number(0))
    return (Counted(w.add(Gather(x.axis), whole, places, quantization=type_.quantization), x.count, x.axis, False),)


def _arg_reduce(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """The first extreme of the valid entries, which must exist: invalid ones become the worst value."""
    op, x, axis = operation.op, inputs[0], w.types[operation.used[1]].value
    assert isinstance(op, ArgReduce)
    if x is None or inputs[1] is not None or axis is None:
        return None
    type_ = w.types[x.operand]
    if normalize_axis(int(axis.reshape(-1)[0]), type_.rank) != x.axis or type_.dtype.numpy.kind not in "fiu":
        return None
    checked = evolve(x, count=w.sum(w.add(Within(), w.number(0), x.count), x.count))
    whole = w.filled(checked, identity(Reduction.MAX if op.kind is Extreme.MAX else Reduction.MIN, type_.dtype.numpy))
    return (w.add(op, whole, operation.used[1]),)


def _unsorted_segment(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Invalid entries get the segment -1, which is ignored."""
    data, ids, number = inputs
    if data is None or ids is None or number is not None or data.count != ids.count or data.axis != ids.axis:
        return None
    return (w.add(operation.op, data.operand, w.filled(ids, -1), operation.used[2]),)


def _products(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Sums of products along the counted axis: invalid entries become 0."""
    op, axes = operation.op, [None if c is None else c.axis for c in inputs]
    if isinstance(op, Einsum):
        label = counted_label(op, axes)
        along = label is not None and label not in op.equation.partition("->")[2]
    else:
        assert isinstance(op, BatchMatMul)
        ranks = [w.types[i].rank for i in operation.used]
        along = axes == [ranks[0] - (2 if op.adjoint_x else 1), ranks[1] - (1 if op.adjoint_y else 2)]
    counted = [c for c in inputs if c is not None]
    if not along or len({c.count for c in counted}) != 1 or any(w.types[c.operand].quantization for c in counted):
        return None
    return (w.add(op, *(i if c is None else w.zeroed(c) for i, c in zip(operation.used, inputs, strict=True))),)


def _recurrent(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Recurrent layers along the batch axis, whose sequences are independent; operands may be absent."""
    op, x = operation.op, inputs[0]
    states = {GRU: (5,), RNN: (4,), LSTM: (18, 19)}[type(op)]
    if x is None or any((c is not None) != (at in (0, *states)) for at, c in enumerate(inputs)):
        return None
    rank = w.types[x.operand].rank
    batch = 1 if isinstance(op, GRU) or (getattr(op, "time_major", False) and rank == 3) else 0
    valid = [c for c in (inputs[at] for at in states) if c is not None]
    if x.axis != batch or any(c.axis or c.count != x.count or w.types[c.operand].rank != 2 for c in valid):
        return None
    wholes = [i if c is None else c.operand for i, c in zip(operation.inputs, inputs, strict=True)]
    results = w.add_many(op, *wholes)
    return tuple(Counted(y, x.count, 0 if at else batch, False) for at, y in enumerate(results))


def _transposed_convolution(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Pictures are independent; the shape of the result is that of all of them."""
    sizes, weight, _, *bias = operation.used
    x, cells = inputs[2], w.extents.of(sizes)
    if x is None or x.axis or any(c for at, c in enumerate(inputs) if at != 2) or w.types[x.operand].quantization:
        return None
    if cells is None or cells.shape != (4,) or any(c.exact is None for c in cells[1:]):
        return None
    if (cells[0].terms, cells[0].constant) != (((x.count, 1),), 0):
        return None
    whole = w.integers([w.bound(x), *(c.low for c in cells[1:])], DType.INT32)
    return (Counted(w.add(operation.op, whole, weight, x.operand, *bias), x.count, 0, False),)


def _non_max_suppression(w: Writer, operation: Operation, inputs: CountedInputs) -> CountedResults | None:
    """Invalid boxes get the score -inf, which is above no threshold."""
    boxes, scores = inputs[:2]
    if boxes is None or scores is None or any(inputs[2:]) or boxes.count != scores.count or boxes.axis:
        return None
    return w.add_many(operation.op, boxes.operand, w.filled(scores, -math.inf), *operation.used[2:])


_RULES: dict[type[Op], Rule] = {
    **SIZED,
    **RANDOM,
    Reverse: _reverse,
    ArgReduce: _arg_reduce,
    UnsortedSegment: _unsorted_segment,
    **SCATTERED,
    **dict.fromkeys((BatchMatMul, Einsum), _products),
    **dict.fromkeys((RNN, GRU, LSTM), _recurrent),
    NonMaxSuppression: _non_max_suppression,
    TransposeConv2D: _transposed_convolution,
    Unique: _unique,
    UniqueSlices: _unique,
    Concat: _concat,
    Reduce: _reduce,
    Gather: _gather,
    GatherNd: _gather,
    TopK: _top_k,
    **dict.fromkeys(RESIZING, resized),
}

HANDLES_ALL_AXES = (Reduce, Reshape, Fill, BroadcastTo, Tile, Pad, StridedSlice, Slice, *RANDOM, *RESIZING)
"""The kinds whose rules handle all counted axes."""
