"""What a loop computes in each of a known number of rounds, as operations on all rounds together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import Factory, evolve, field, frozen

from onert.compiler.rewrite.called_graphs import with_constants
from onert.compiler.rewrite.edit import Edit, definer
from onert.compiler.rewrite.effects import is_removable
from onert.ir import (
    Array,
    Constant,
    DType,
    Op,
    Operand,
    Operation,
    Shape,
    Subgraph,
    Subgraphs,
    TensorType,
)
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.control import If
from onert.ir.ops.control_flow.sequences import SequenceInsert, SequenceJoin
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Range
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, StridedSlice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary
from onert.ir.ops.reduction.reduce import Reduce, axes_of
from onert.ir.ops.reduction.segment import RANGE_KINDS, ReduceRanges
from onert.ir.shape import broadcast, static

from .lists import Counted, Simplify
from .trip_counts import growth

MOST_OPERATIONS = 100
"""The most operations of a body or a branch: its results are followed recursively."""
MOST_WORK = 1 << 36
"""The most additions if all ranges have all rows: a loop adds only those of its ranges."""

_ELEMENTWISE = Binary | Comparison | Unary | Cast | Select


def is_pure(graph: Subgraph) -> bool:
    """Whether nothing but results depends on whether a graph runs; both sides of its branches have yet to be pure."""
    return not graph.state and all(is_removable(each) or isinstance(each.op, If) for each in graph.operations)


@frozen
class _Value:
    """What rounds compute: in all of them `operand`, whose shape this is.

    With `each`, round i computes entry i of the operand, and `shape` is an entry's; it is i + `shift` if that is known.
    With `bounds`, round i computes the rows from entry i of the first bound to entry i of the second one.
    """

    operand: int
    shape: Shape
    each: bool = False
    shift: int | None = None
    bounds: tuple[int, int] | None = None

    @property
    def is_fixed(self) -> bool:
        return not self.each and self.bounds is None


@frozen(eq=False)
class _Frame:
    """A body or a branch, and what its operands are; `certain`: it runs in every round."""

    graph: Subgraph
    values: dict[int, _Value | None]
    certain: bool


@frozen(eq=False)
class AllRounds:
    """A loop, and the operations on all rounds that replace it."""

    model: Subgraphs
    graph: Subgraph
    operation: Operation
    counted: Counted
    simplify: Simplify
    edit: Edit = field(init=False, default=Factory(lambda self: Edit(self.graph), takes_self=True))
    types: dict[int, TensorType] = field(factory=dict, init=False)
    operations: list[Operation] = field(factory=list, init=False)
    reshapes: dict[tuple[int, Shape], int] = field(factory=dict, init=False)

    def replaced(self, at: int, body: Subgraph, lists: Sequence[int], appended: Sequence[int]) -> Subgraph | None:
        """The graph without the loop; None if a result is computed in another way."""
        if len(body.operations) > MOST_OPERATIONS:
            return None
        frame = _Frame(body, {i: self.state(body, k) for k, i in enumerate(body.inputs)}, certain=True)
        for k in (*lists, *appended):
            added = definer(body, body.outputs[k])
            assert added is not None
            assert isinstance(added.op, SequenceInsert | Concat)
            item = self.value(frame, added.used[1])
            if item is None or not item.each:
                return None
            result = self.operation.outputs[k]
            if k in appended:
                self.operations.append(self.joined(item, new=False, outputs=(result,)))
            for reader in self.graph.uses.get(result, ()) if k in lists else ():
                join = self.graph.operations[reader]
                assert isinstance(join.op, SequenceJoin)
                if self.graph.type(join.outputs[0]).dtype is not self.type(item.operand).dtype:
                    return None
                self.edit.replace(reader, self.joined(item, join.op.new, join.outputs))
        if not any(isinstance(each.op, ReduceRanges) for each in self.operations):
            return None
        self.edit.replace(at, *self.operations)
        return infer_alone(self.edit.done())

    def joined(self, item: _Value, new: bool, outputs: tuple[int, ...]) -> Operation:
        """The operation that makes all entries one tensor."""
        rounds, (first, *rest) = self.counted.rounds, (*item.shape, 1) if not item.shape else item.shape
        shape = (rounds, *item.shape) if new else (rounds * (first or 0), *rest)
        return Operation(Reshape(), (item.operand, self.integers(shape)), outputs, self.operation.location)

    def type(self, operand: int) -> TensorType:
        return self.types[operand] if operand in self.types else self.graph.operands[operand].known

    def constant(self, array: Array, dtype: DType) -> int:
        made = self.edit.constant(array, dtype)
        self.types[made] = TensorType(dtype, array.shape).with_data(Constant(array))
        return made

    def integers(self, numbers: Sequence[int | None]) -> int:
        """A constant with these numbers, which may be symbolic."""
        return self.constant(np.array(numbers), DType.INT64)

    def add(self, op: Op, *inputs: int) -> int:
        """The result of one more operation."""
        found = op.infer(*map(self.type, inputs))
        assert isinstance(found, TensorType)
        self.types[made := self.edit.operand(Operand(found.with_data(None)))] = found
        self.operations.append(Operation(op, inputs, (made,), self.operation.location))
        return made

    def shaped(self, operand: int, *shape: int | None) -> int:
        """A tensor with an entry of this shape for each round."""
        wanted = (self.counted.rounds, *shape)
        if self.type(operand).shape == wanted:
            return operand
        if (operand, wanted) not in self.reshapes:  # ranges with the same bounds are then seen to be the same
            self.reshapes[operand, wanted] = self.add(Reshape(), operand, self.integers(wanted))
        return self.reshapes[operand, wanted]

    def state(self, body: Subgraph, k: int) -> _Value | None:
        """Operand `k` of the loop, if it stays the same or counts the rounds."""
        given = self.operation.used[k]
        type_ = self.graph.type(given)
        if body.outputs[k] == body.inputs[k]:
            return None if type_.quantization is not None else _Value(given, type_.shape)
        start = self.graph.operands[given].known.value
        if start is None or start.size != 1 or not type_.dtype.is_integer or growth(body, k) != 1:
            return None
        first = int(start.reshape(-1)[0])
        ends = (np.array(number) for number in (first, first + self.counted.rounds, 1))
        numbers = self.add(Range(), *(self.constant(end, type_.dtype) for end in ends))
        return _Value(self.shaped(numbers, *type_.shape), type_.shape, each=True, shift=first)

    def value(self, frame: _Frame, operand: int) -> _Value | None:
        """What rounds compute as an operand; None if that is not known."""
        if operand not in frame.values:
            frame.values[operand] = self._value(frame, operand)
        return frame.values[operand]

    def _value(self, frame: _Frame, operand: int) -> _Value | None:
        data, type_ = frame.graph.operands[operand].data, frame.graph.type(operand)
        if type_.quantization is not None:
            return None
        if data is not None:
            return self.known(data.array, type_.dtype)
        producer = definer(frame.graph, operand)
        if producer is None or None in producer.inputs:
            return None
        if isinstance(producer.op, If):
            return self.chosen(frame, producer, producer.outputs.index(operand))
        given = [found for i in producer.used if (found := self.value(frame, i)) is not None]
        if len(given) != len(producer.used):
            return None
        match producer.op:
            case Copy():
                return given[0]
            case StridedSlice():
                return self.sliced(producer.op, given)
            case Gather():
                return self.gathered(producer.op, given, frame.certain)
            case Reshape() | ExpandDims() | Squeeze():
                return self.reshaped(producer.op, given, type_.shape)
            case Reduce():
                return self.reduced(producer.op, given)
            case Binary() | Comparison() | Unary() | Cast() | Select():
                return None if producer.op == Select(rows=True) else self.elementwise(producer.op, given)
        return None

    def sliced(self, op: StridedSlice, given: Sequence[_Value]) -> _Value | None:
        """Rows from one number to another, or the one row whose number is the round's plus a constant."""
        x, begin, end, stride = given
        steps = self.type(stride.operand).value
        if op != StridedSlice() or not x.is_fixed or (not stride.each and steps is None):
            return None
        if any(part.bounds is not None or part.shape != (1,) for part in (begin, end, stride)):
            return None
        if steps is None or steps.reshape(-1)[0] != 1:
            return None
        first, last = self.vector(begin), self.vector(end)
        rows, *rest = x.shape
        at = begin.shift if begin.shift is not None and end.shift == begin.shift + 1 else None
        if at is not None and at >= 0 and rows is not None and at + self.counted.rounds <= rows:
            return _Value(self.shaped(self.add(Gather(0), x.operand, first), 1, *rest), (1, *rest), each=True)
        return _Value(x.operand, x.shape, bounds=(first, last))

    def vector(self, number: _Value) -> int:
        """A tensor with one number for each round."""
        if number.each:
            return self.shaped(number.operand)
        return self.add(BroadcastTo(), number.operand, self.integers((self.counted.rounds,)))

    def gathered(self, op: Gather, given: Sequence[_Value], certain: bool) -> _Value | None:
        """Rows with indices from a range, or with the round's; a branch that is not taken may have wrong ones."""
        x, indices = given
        if not (certain and x.is_fixed and op == Gather(0)) or indices.is_fixed:
            return None
        made = self.add(op, x.operand, indices.operand)
        return evolve(indices, operand=made, shape=(*indices.shape, *x.shape[1:]), shift=None)

    def reshaped(self, op: Op, given: Sequence[_Value], shape: Shape) -> _Value | None:
        """An entry in another shape, or rows with more axes."""
        x, *others = given
        if x.each and shape.count(None) <= 1:
            known = math.prod(d for d in shape if d is not None)
            size = math.prod(static(x.shape))
            wanted = tuple(size // max(known, 1) if d is None else d for d in shape)
            return evolve(x, operand=self.shaped(x.operand, *wanted), shape=wanted)
        if x.is_fixed and all(each.is_fixed for each in others):
            return self.fixed(op, given)
        if x.bounds is None:
            return None
        if len(shape) == len(x.shape) == 1:
            return x
        if isinstance(op, ExpandDims) and others[0].is_fixed:
            made = self.add(op, x.operand, others[0].operand)
            found = self.type(made).shape
            return evolve(x, operand=made, shape=found) if found[:1] == x.shape[:1] != (1,) else None
        return None

    def reduced(self, op: Reduce, given: Sequence[_Value]) -> _Value | None:
        """A range of rows reduced to one."""
        x, axes = given
        known = self.type(axes.operand).value
        if x.bounds is None or known is None or op.kind not in RANGE_KINDS:
            return None
        if tuple(axes_of(known, len(x.shape))) != (0,) or self.type(x.operand).dtype is not DType.FLOAT32:
            return None
        if self.counted.rounds * math.prod(static(x.shape)) > MOST_WORK:
            return None
        made = self.add(ReduceRanges(op.kind), x.operand, *x.bounds)
        shape = (1, *x.shape[1:]) if op.keep_dims else x.shape[1:]
        return _Value(self.shaped(made, *shape), shape, each=True)

    def elementwise(self, op: Op, given: Sequence[_Value]) -> _Value | None:
        """A function of elements, of all rows or of those of all rounds."""
        bounds, rank = {x.bounds for x in given} - {None}, max(len(x.shape) for x in given)
        if bounds:
            rows = {x.shape[:1] for x in given if x.bounds is not None}
            spread = all(len(x.shape) < rank or x.shape[0] == 1 for x in given if x.is_fixed)
            same = all(len(x.shape) == rank for x in given if x.bounds is not None)
            if any(x.each for x in given) or len(bounds) > 1 or len(rows) > 1 or not (spread and same):
                return None
            made = self.add(op, *(x.operand for x in given))
            return _Value(made, self.type(made).shape, bounds=next(iter(bounds)))
        if all(x.is_fixed for x in given):
            return self.fixed(op, given)
        if op == Binary(BinaryKind.MUL) and any(
            self.is_zero(x) for x in given
        ):  # as strides of unknown number are made
            type_ = self.type(given[0].operand)
            return self.known(np.zeros(static(broadcast([x.shape for x in given])), type_.dtype.numpy), type_.dtype)
        aligned = [
            self.shaped(x.operand, *(1,) * (rank - len(x.shape)), *x.shape) if x.each else x.operand for x in given
        ]
        shape = broadcast([x.shape for x in given])
        return _Value(self.add(op, *aligned), shape, each=True, shift=self.shifted(op, given))

    def fixed(self, op: Op, given: Sequence[_Value]) -> _Value:
        """What is the same in all rounds; constants are folded."""
        values = [known.array for x in given if (known := self.type(x.operand).data) is not None]
        if len(values) == len(given) and op.evaluate is not None and not any(each.dtype.hasobject for each in values):
            found = op.infer(*(self.type(x.operand) for x in given))
            assert isinstance(found, TensorType)
            return self.known(op.evaluate(*values), found.dtype)
        made = self.add(op, *(x.operand for x in given))
        return _Value(made, self.type(made).shape)

    def known(self, array: Array, dtype: DType) -> _Value:
        """A constant."""
        return _Value(self.constant(array, dtype), array.shape)

    def is_zero(self, x: _Value) -> bool:
        """Whether integers are known to be 0."""
        type_ = self.type(x.operand)
        return x.is_fixed and type_.dtype.is_integer and type_.value is not None and not np.any(type_.value)

    def shifted(self, op: Op, given: Sequence[_Value]) -> int | None:
        """What a sum adds to the number of the round; None if it is another function."""
        for x, y in (given, given[::-1]) if op == Binary(BinaryKind.ADD) else ():
            number = self.type(y.operand).value if y.is_fixed else None
            if x.shift is not None and number is not None and number.size == 1:
                return x.shift + int(number.reshape(-1)[0])
        return None

    def chosen(self, frame: _Frame, branch: Operation, at: int) -> _Value | None:
        """A result of a branch, computed for all rounds by both sides."""
        assert isinstance(branch.op, If)
        condition, *xs = branch.used
        chooses = self.value(frame, condition)
        sides = [self.side(frame, index, xs, at) for index in (branch.op.then, branch.op.otherwise)]
        if chooses is None or not chooses.each or math.prod(static(chooses.shape)) != 1:
            return None
        a, b = sides
        if a is None or b is None or a.shape != b.shape:
            return None
        if a.bounds is not None and b.bounds is not None and a.operand == b.operand:
            picked = self.shaped(chooses.operand)
            first, last = (self.add(Select(), picked, x, y) for x, y in zip(a.bounds, b.bounds, strict=True))
            return evolve(a, bounds=(first, last))
        if a.bounds is not None or b.bounds is not None:
            return None
        picked = self.shaped(chooses.operand, *(1,) * len(a.shape))
        return _Value(self.add(Select(), picked, a.operand, b.operand), a.shape, each=True)

    def side(self, frame: _Frame, index: int, xs: Sequence[int], at: int) -> _Value | None:
        """Result `at` of one side of a branch."""
        graph = self.model[index]
        types = {i: frame.graph.type(x).with_data(None) for i, x in zip(graph.inputs, xs, strict=True)}
        constants = {k: data for k, x in enumerate(xs) if (data := frame.graph.operands[x].data) is not None}
        graph = self.simplify(with_constants(graph.with_types(types), constants))
        if len(graph.operations) > MOST_OPERATIONS or not is_pure(graph):
            return None
        read = [(i, x) for i, x in zip(graph.inputs, xs, strict=True) if i in graph.uses or i in graph.outputs]
        values = {i: self.value(frame, x) for i, x in read}
        return self.value(_Frame(graph, values, certain=False), graph.outputs[at])
