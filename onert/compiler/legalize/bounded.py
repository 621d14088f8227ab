"""Results of which only a run knows how many there are, in memory for the most there can be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.counted import COUNTING, written
from onert.compiler.rewrite.counting import Counted, Writer
from onert.compiler.rewrite.edit import Edit
from onert.compiler.rewrite.first_entries import moved
from onert.ir import CallTypes, DType, Op, Operation, RuleError, Subgraph
from onert.ir.analysis.inference import infer
from onert.ir.ops.data_movement.fill import CountedWhere, FirstEntries, TopK, Unique, Where
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.data_movement.slicing import StridedSlice
from onert.ir.ops.data_movement.unique import UniqueSlices
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.vision_audio.boxes import BoxesPerClass, CountedBoxes, bound_of

from .legalize import Support, Supports

MOST_BYTES = 1 << 22
"""Of a whole tensor that is computed for its first entries; where it has more it is less work to know their number."""

MOST_PAIRS = 1 << 31
"""Of boxes that may have to be compared: with more of them a run may take as long as a run may, at most."""


def bounded(graph: Subgraph, supports: Supports) -> Subgraph:
    """The graph in which what finds places or boxes has results of known shapes and says how many of their entries
    count, and operations that treat entries alike run on all of them; the first entries are taken at the end.

    Only where what finds them is native. The same object comes back where nothing changes.

        i = Where(m); y = Gather(x, i)    -->    p, n = CountedWhere(m); y = FirstEntries(Gather(x, p), n)
    """
    if not any(isinstance(operation.op, _FIRST) for operation in graph.operations):
        return graph
    return _Bounding(graph, supports).run()


_FIRST = (Where, BoxesPerClass, TopK, Unique, UniqueSlices, StridedSlice)
"""Kinds of which only a run may know how much they give, whatever the others are."""


class _Bounding:
    def __init__(self, graph: Subgraph, supports: Supports) -> None:
        self.graph = graph
        self.supports = supports
        self.edit = Edit(graph)
        self.writer = Writer(self.edit)
        self.types = self.writer.types
        self.known = self.writer.known

    def run(self) -> Subgraph:
        replaced: dict[int, list[Operation]] = {}
        needed = set(self.graph.kept)
        for at, operation in enumerate(self.graph.operations):
            operations = self.instead(operation)
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

    def instead(self, operation: Operation) -> list[Operation]:
        """The operations on whole tensors in the place of one; none where it stays."""
        for each in (self.found, self.followed, self.together):
            self.writer.begin(operation.location)
            if each(operation):
                return self.writer.made
        return []

    def found(self, operation: Operation) -> bool:
        """What finds places or boxes, and counts them, if that is native."""
        op, types, w = operation.op, self.graph.types(operation), self.writer
        if not isinstance(op, Where | BoxesPerClass) or any(t is not None and not t.is_static for t in types.inputs):
            return False
        inputs: tuple[int | None, ...] = operation.inputs
        counting: Op = CountedWhere()
        if isinstance(op, BoxesPerClass):
            bound = bound_of(types.input(0), types.input(1), types.input(2)) or 0
            if bound * (types.input(0).shape[1] or 0) > MOST_PAIRS:
                return False
            counting = CountedBoxes(bound, op.centred)
        elif types.input(0).quantization is not None or types.input(0).rank == 0 or 0 in types.input(0).shape:
            return False
        elif types.input(0).dtype is not DType.BOOL:
            inputs = (w.add(Comparison(ComparisonKind.NOT_EQUAL), operation.used[0], w.like(types.input(0), 0)),)
        counted, count = w.add_many(counting, *inputs)
        whole = CallTypes(
            tuple(None if i is None else self.types[i] for i in inputs), (self.types[counted], self.types[count])
        )
        if self.types[counted].nbytes > MOST_BYTES or self.supports(w.made[-1], whole) is not Support.NATIVE:
            return False
        self.known[operation.outputs[0]] = Counted(counted, count, 0, True)
        return True

    def together(self, operation: Operation) -> bool:
        """Operations that take first entries together, as native ones on whole tensors."""
        given = [None if i is None else self.known.get(i) for i in operation.inputs]
        if None in operation.inputs or not (isinstance(operation.op, COUNTING) or any(given)):
            return False
        wholes = [i if c is None else c.operand for i, c in zip(operation.used, given, strict=True)]
        if not all(self.types[i].is_static for i in wholes):
            return False
        try:
            results = written(self.writer, operation, given)
        except RuleError:
            return False  # the run says so
        made = self.writer.made
        if results is None or not all(map(self.is_native, made)):
            return False
        if any(isinstance(r, Counted) and self.types[r.operand].nbytes > MOST_BYTES for r in results):
            return False
        number: dict[int, int] = {}
        for out, result in zip(operation.outputs, results, strict=True):
            if isinstance(result, Counted):
                self.known[out] = result
            else:
                number[result] = out
        made[:] = (
            evolve(
                each,
                inputs=tuple(None if i is None else number.get(i, i) for i in each.inputs),
                outputs=tuple(number.get(o, o) for o in each.outputs),
            )
            for each in made
        )
        return True

    def is_native(self, operation: Operation) -> bool:
        inputs = tuple(None if i is None else self.types[i] for i in operation.inputs)
        types = CallTypes(inputs, tuple(self.types[o] for o in operation.outputs))
        return self.supports(operation, types) is Support.NATIVE

    def followed(self, operation: Operation) -> bool:
        """What treats first entries alike, on the whole tensors."""
        given = [None if i is None else self.known.get(i) for i in operation.inputs]
        counts = {counted.count for counted in given if counted is not None}
        if len(counts) != 1 or len(operation.outputs) != 1:
            return False
        (count,) = counts
        if isinstance(operation.op, ShapeOf) and given[0] is not None:
            self._shape(operation, given[0])
            return True
        inputs = [i if counted is None else counted.operand for i, counted in zip(operation.inputs, given, strict=True)]
        types = CallTypes(tuple(None if i is None else self.types[i] for i in inputs), ())
        if any(t is not None and not t.is_static for t in types.inputs):
            return False
        try:
            how = moved(operation.op, types, [None if counted is None else counted.axis for counted in given])
            if how is None:
                return False
            for position, array in how.constants.items():
                inputs[position] = self.writer.constant(array)
            (result,) = infer(operation.op, [None if i is None else self.types[i] for i in inputs]) or ()
        except RuleError:
            return False  # the run says so
        known = [c for c in given if c is not None]
        length = self.types[known[0].operand].shape[known[0].axis]
        if not result.is_static or result.nbytes > MOST_BYTES or result.shape[how.axis] != length:
            return False
        for position in how.zeroed:
            counted = given[position]
            if counted is not None and not counted.zeros:
                inputs[position] = self.writer.zeroed(counted)
        declared = self.graph.type(operation.outputs[0])
        out = self.writer.new(evolve(result, dtype=declared.dtype, quantization=declared.quantization))
        self.writer.made.append(evolve(operation, inputs=tuple(inputs), outputs=(out,)))
        zeros = how.keeps_zeros and all(counted.zeros for counted in known)
        self.known[operation.outputs[0]] = Counted(out, count, how.axis, zeros)
        return True

    def _shape(self, operation: Operation, counted: Counted) -> None:
        """The shape of first entries: the number of these among the dimensions that are known."""
        op, w = operation.op, self.writer
        assert isinstance(op, ShapeOf)
        shape = self.types[counted.operand].shape
        count = counted.count if op.to is DType.INT64 else w.add(Cast(op.to), counted.count)
        row = w.add(Reshape(), count, w.constant(np.array([1], np.int32)))
        parts: list[int] = []
        for dims in (shape[: counted.axis], shape[counted.axis + 1 :]):
            if dims:
                parts.append(w.constant(np.array(dims, op.to.numpy)))
        ordered: Sequence[int] = [row, *parts] if counted.axis == 0 else [parts[0], row, *parts[1:]]
        w.made.append(Operation(Concat(0), tuple(ordered), operation.outputs, operation.location))
