"""Operations that take first entries together, written on whole tensors of which the first entries count."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, Constant, DType, Op, Operand, Operation, Quantization, TensorType
from onert.ir.analysis.inference import infer
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.element_indices import Combination, ScatterSlices
from onert.ir.ops.data_movement.fill import CountedWhere, Fill, Range, TopK, Unique, Within
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice, Gather, GatherNd
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, ShapeOf, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, Slice, StridedSlice
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.reduction.reduce import Reduce, Reduction, identity
from onert.ir.ops.reduction.scan import CumSum
from onert.ir.shape import normalize_axes, normalize_axis
from onert.ir.value import Value

from .edit import Edit, definer


@frozen
class Counted(Value):
    """A tensor whose first entries along an axis count: their number is an operand, one int64, and whether 0 lies
    behind."""

    operand: int
    count: int
    axis: int
    zeros: bool


class Writer:
    """Operations written one after the other in the place of one of a graph, the types of all operands, and which of
    the graph's operands are known to be first entries.
    """

    def __init__(self, edit: Edit) -> None:
        self.edit = edit
        self.types: dict[int, TensorType] = {i: o.known for i, o in enumerate(edit.subgraph.operands)}
        self.known: dict[int, Counted] = {}
        self.made: list[Operation] = []
        self.location = ""

    def begin(self, location: str) -> None:
        """In the place of another operation."""
        self.made, self.location = [], location

    def new(self, type_: TensorType) -> int:
        operand = self.edit.operand(Operand(evolve(type_, data=None)))
        self.types[operand] = type_
        return operand

    def constant(self, array: Array, dtype: DType | None = None, quantization: Quantization | None = None) -> int:
        operand = self.edit.constant(array, dtype, quantization)
        self.types[operand] = TensorType(
            dtype or DType.from_numpy(array.dtype), array.shape, quantization, data=Constant(array)
        )
        return operand

    def like(self, type_: TensorType, value: float) -> int:
        """A stored number of a type."""
        return self.constant(np.array(value, type_.dtype.numpy), type_.dtype, type_.quantization)

    def add(self, op: Op, *inputs: int | None, quantization: Quantization | None = None) -> int:
        """An operation with one result."""
        (result,) = self.add_many(op, *inputs, quantization=quantization)
        return result

    def add_many(self, op: Op, *inputs: int | None, quantization: Quantization | None = None) -> tuple[int, ...]:
        """An operation behind those that are there; its results, quantised so where they hold what its first operand
        does."""
        results = infer(op, [None if i is None else self.types[i] for i in inputs])
        assert results is not None
        first = None if inputs[0] is None else self.types[inputs[0]].dtype
        outputs = tuple(self.new(evolve(t, quantization=quantization) if t.dtype is first else t) for t in results)
        self.made.append(Operation(op, inputs, outputs, self.location))
        return outputs

    def sum(self, a: int, b: int) -> int:
        return self.add(Binary(BinaryKind.ADD), a, b)

    def part(self, x: int, begin: int, size: int) -> int:
        """So many entries of a row, from one on."""
        return self.add(Slice(), x, *(self.constant(np.array([each], np.int32)) for each in (begin, size)))

    def running(self, mask: int) -> int:
        """How many of a row are true up to each, itself included."""
        return self.add(CumSum(), self.add(Cast(DType.INT64), mask), self.constant(np.array(0, np.int32)))

    def put(self, row: int, places: int, given: int, combination: Combination = Combination.REPLACE) -> int:
        """A row with elements put at places, but for those below 0."""
        column = self.add(Reshape((self.types[places].shape[0] or 0, 1)), places)
        return self.add(ScatterSlices(combination, skips=True), row, column, given)

    def inside(self, counted: Counted) -> int:
        """Which entries count, in a shape that broadcasts along the others."""
        type_ = self.types[counted.operand]
        number = np.arange(self.bound(counted), dtype=np.int64).reshape(-1, *(1,) * (type_.rank - counted.axis - 1))
        return self.add(Comparison(ComparisonKind.LESS), self.constant(number), counted.count)

    def filled(self, counted: Counted, value: float) -> int:
        """The whole tensor with a stored number behind the entries that count."""
        type_ = self.types[counted.operand]
        behind = self.like(type_, value)
        return self.add(Select(), self.inside(counted), counted.operand, behind, quantization=type_.quantization)

    def zeroed(self, counted: Counted) -> int:
        return counted.operand if counted.zeros else self.filled(counted, 0)

    def bound(self, counted: Counted) -> int:
        """How many entries there are, whether they count or not."""
        return self.types[counted.operand].shape[counted.axis] or 0


Given = Sequence[Counted | None]
Written = tuple[Counted | int, ...]
"""For each result a whole tensor of which first entries count, or one that is the result itself."""
Rule = Callable[[Writer, Operation, Given], Written | None]


COUNTING = (TopK, Unique, UniqueSlices, Range, Fill, BroadcastTo)
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


_RULES: dict[type[Op], Rule] = {
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
