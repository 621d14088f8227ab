"""Results of which only a run knows how many there are, in memory for the most there can be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.compiler.rewrite.edit import Edit
from onert.compiler.rewrite.first_entries import moved
from onert.ir import Array, CallTypes, Constant, DType, Op, Operand, Operation, RuleError, Subgraph, TensorType
from onert.ir.analysis.inference import infer
from onert.ir.ops.data_movement.fill import CountedWhere, FirstEntries, Where
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.vision_audio.boxes import BoxesPerClass, CountedBoxes, bound_of
from onert.ir.value import Value

from .legalize import Support, Supports

MOST_BYTES = 1 << 22
"""Of a whole tensor that is computed for its first entries; where it has more it is less work to know their number."""

MOST_PAIRS = 1 << 31
"""Of boxes that may have to be compared: with more of them a run may take as long as a run may, at most."""


@frozen
class _Counted(Value):
    """A tensor whose first entries along an axis count: their number is an operand, and whether 0 lies behind."""

    operand: int
    count: int
    axis: int
    zeros: bool


def bounded(graph: Subgraph, supports: Supports) -> Subgraph:
    """The graph in which what finds places or boxes has results of known shapes and says how many of their entries
    count, and operations that treat entries alike run on all of them; the first entries are taken at the end.

    Only where what finds them is native. The same object comes back where nothing changes.

        i = Where(m); y = Gather(x, i)    -->    p, n = CountedWhere(m); y = FirstEntries(Gather(x, p), n)
    """
    if not any(isinstance(operation.op, Where | BoxesPerClass) for operation in graph.operations):
        return graph
    return _Bounding(graph, supports).run()


class _Bounding:
    def __init__(self, graph: Subgraph, supports: Supports) -> None:
        self.graph = graph
        self.supports = supports
        self.edit = Edit(graph)
        self.types: dict[int, TensorType] = {i: operand.known for i, operand in enumerate(graph.operands)}
        self.known: dict[int, _Counted] = {}
        self.masks: dict[tuple[int, int, int], int] = {}
        self.location = ""

    def run(self) -> Subgraph:
        replaced: dict[int, list[Operation]] = {}
        needed = set(self.graph.kept)
        for at, operation in enumerate(self.graph.operations):
            self.location = operation.location
            operations = self.found(operation) or self.followed(operation)
            if operations:
                replaced[at] = operations
            else:
                needed.update(operation.used)
        for at, operations in replaced.items():
            for out in self.graph.operations[at].outputs:
                counted = self.known.get(out)
                if counted is not None and out in needed:
                    taken = FirstEntries(counted.axis), (counted.operand, counted.count), (out,)
                    operations.append(Operation(*taken, self.graph.operations[at].location))
            self.edit.replace(at, *operations)
        return self.edit.done()

    def new(self, type_: TensorType) -> int:
        operand = self.edit.operand(Operand(evolve(type_, data=None)))
        self.types[operand] = type_
        return operand

    def constant(self, array: Array) -> int:
        operand = self.edit.constant(array)
        self.types[operand] = TensorType(DType.from_numpy(array.dtype), array.shape, data=Constant(array))
        return operand

    def nothing(self, like: TensorType) -> int:
        """A stored 0 of a type."""
        array = np.zeros((), like.dtype.numpy)
        operand = self.edit.constant(array, like.dtype, like.quantization)
        self.types[operand] = TensorType(like.dtype, (), like.quantization)
        return operand

    def add(self, into: list[Operation], op: Op, *inputs: int | None) -> tuple[int, ...]:
        """An operation behind those in a list; its results."""
        results = infer(op, [None if i is None else self.types[i] for i in inputs])
        assert results is not None
        outputs = tuple(self.new(t) for t in results)
        into.append(Operation(op, inputs, outputs, self.location))
        return outputs

    def found(self, operation: Operation) -> list[Operation]:
        """The operations that find places or boxes, and count them; none where that is not native."""
        op, types = operation.op, self.graph.types(operation)
        made: list[Operation] = []
        if not isinstance(op, Where | BoxesPerClass) or any(t is not None and not t.is_static for t in types.inputs):
            return made
        inputs: tuple[int | None, ...] = operation.inputs
        counting: Op = CountedWhere()
        if isinstance(op, BoxesPerClass):
            bound = bound_of(types.input(0), types.input(1), types.input(2)) or 0
            if bound * (types.input(0).shape[1] or 0) > MOST_PAIRS:
                return made
            counting = CountedBoxes(bound, op.centred)
        elif types.input(0).quantization is not None or types.input(0).rank == 0 or 0 in types.input(0).shape:
            return made
        elif types.input(0).dtype is not DType.BOOL:
            zero = self.nothing(types.input(0))
            inputs = self.add(made, Comparison(ComparisonKind.NOT_EQUAL), operation.used[0], zero)
        counted, count = self.add(made, counting, *inputs)
        whole = CallTypes(
            tuple(None if i is None else self.types[i] for i in inputs), (self.types[counted], self.types[count])
        )
        if self.types[counted].nbytes > MOST_BYTES or self.supports(made[-1], whole) is not Support.NATIVE:
            return []
        self.known[operation.outputs[0]] = _Counted(counted, count, 0, True)
        return made

    def followed(self, operation: Operation) -> list[Operation]:
        """The operations on whole tensors in the place of one on first entries; none where that cannot be."""
        given = [None if i is None else self.known.get(i) for i in operation.inputs]
        counts = {counted.count for counted in given if counted is not None}
        made: list[Operation] = []
        if len(counts) != 1 or len(operation.outputs) != 1:
            return made
        (count,) = counts
        if isinstance(operation.op, ShapeOf) and given[0] is not None:
            self._shape(made, operation, given[0])
            return made
        inputs = [i if counted is None else counted.operand for i, counted in zip(operation.inputs, given, strict=True)]
        types = CallTypes(tuple(None if i is None else self.types[i] for i in inputs), ())
        if any(t is not None and not t.is_static for t in types.inputs):
            return made
        try:
            how = moved(operation.op, types, [None if counted is None else counted.axis for counted in given])
            if how is None:
                return made
            for position, array in how.constants.items():
                inputs[position] = self.constant(array)
            (result,) = infer(operation.op, [None if i is None else self.types[i] for i in inputs]) or ()
        except RuleError:
            return made  # the run says so
        known = [c for c in given if c is not None]
        length = self.types[known[0].operand].shape[known[0].axis]
        if not result.is_static or result.nbytes > MOST_BYTES or result.shape[how.axis] != length:
            return made
        for position in how.zeroed:
            counted = given[position]
            if counted is not None and not counted.zeros:
                inputs[position] = self.zeroed(made, counted)
        declared = self.graph.type(operation.outputs[0])
        out = self.new(evolve(result, dtype=declared.dtype, quantization=declared.quantization))
        made.append(evolve(operation, inputs=tuple(inputs), outputs=(out,)))
        zeros = how.keeps_zeros and all(counted.zeros for counted in known)
        self.known[operation.outputs[0]] = _Counted(out, count, how.axis, zeros)
        return made

    def zeroed(self, made: list[Operation], counted: _Counted) -> int:
        """The whole tensor with 0 behind the entries that count."""
        type_ = self.types[counted.operand]
        behind = type_.rank - counted.axis - 1
        number = np.arange(type_.shape[counted.axis] or 0, dtype=np.int64).reshape(-1, *(1,) * behind)
        (inside,) = self.add(made, Comparison(ComparisonKind.LESS), self.constant(number), counted.count)
        (kept,) = self.add(made, Select(), inside, counted.operand, self.nothing(type_))
        return kept

    def _shape(self, made: list[Operation], operation: Operation, counted: _Counted) -> None:
        """The shape of first entries: the number of these among the dimensions that are known."""
        op = operation.op
        assert isinstance(op, ShapeOf)
        shape = self.types[counted.operand].shape
        count: int = counted.count
        if op.to is not DType.INT64:
            (count,) = self.add(made, Cast(op.to), count)
        (row,) = self.add(made, Reshape(), count, self.constant(np.array([1], np.int32)))
        parts: list[int] = []
        for dims in (shape[: counted.axis], shape[counted.axis + 1 :]):
            if dims:
                parts.append(self.constant(np.array(dims, op.to.numpy)))
        ordered: Sequence[int] = [row, *parts] if counted.axis == 0 else [parts[0], row, *parts[1:]]
        made.append(Operation(Concat(0), tuple(ordered), operation.outputs, operation.location))
