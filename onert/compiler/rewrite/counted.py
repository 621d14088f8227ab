"""Operations that take first entries together, written on whole tensors of which the first entries count."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, Constant, DType, Op, Operand, Operation, Quantization, TensorType
from onert.ir.analysis.inference import infer
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.fill import TopK, Within
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice, Gather, GatherNd
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.reduction.reduce import Reduce, Reduction, identity
from onert.ir.shape import normalize_axes, normalize_axis
from onert.ir.value import Value

from .edit import Edit


@frozen
class Counted(Value):
    """A tensor whose first entries along an axis count: their number is an operand, one int64, and whether 0 lies
    behind."""

    operand: int
    count: int
    axis: int
    zeros: bool


class Writer:
    """Operations written one after the other in the place of one of a graph, and the types of all operands."""

    def __init__(self, edit: Edit) -> None:
        self.edit = edit
        self.types: dict[int, TensorType] = {i: o.known for i, o in enumerate(edit.subgraph.operands)}
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


_RULES: dict[type[Op], Rule] = {
    Concat: _concat,
    Reduce: _reduce,
    Gather: _gather,
    GatherNd: _gather,
    TopK: _top,
}
