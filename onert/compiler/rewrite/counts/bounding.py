"""Rewrite a graph so that results of run-time size are whole tensors of the largest size, with valid first entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import CallTypes, DType, Op, Operation, RuleError, Subgraph, TensorType
from onert.ir.analysis.inference import infer
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.fill import CountedWhere, FirstEntries, Where, Within
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.vision_audio.boxes import BoxesPerClass, CountedBoxes, bound_of
from onert.ir.shape import normalize_axis

from .assigned import assigned_slice
from .axes import MatchedAxes, axis_choices, match_axes
from .combining import HANDLES_ALL_AXES, apply_rule
from .counted_types import COUNT, is_too_large
from .counting import Counted, CountedInputs, CountedResults, Writer, first_entries, first_of, is_open

_LOWEST = float.fromhex("-0x1.fffffep+127")
"""The lowest finite float32."""


class Bounding:
    """The rewriting of one graph; `native` says which operations run natively, and `affords` which ones may take their
    largest possible work."""

    def __init__(
        self,
        graph: Subgraph,
        native: Callable[[Operation, CallTypes], bool],
        affords: Callable[[Op, CallTypes], bool],
    ) -> None:
        self.graph = graph
        self.affords = affords
        self.native = native
        self.edit = Edit(graph)
        self.writer = Writer(self.edit)
        self.types = self.writer.types
        self.counted = self.writer.counted
        self.checked: dict[tuple[int, int], int] = {}  # checked counts, by count and size of the axis

    def run(self) -> Subgraph:
        replaced: dict[int, list[Operation]] = {}
        needed = set(self.graph.kept)
        for at, operation in enumerate(self.graph.operations):
            operations = self.replacement(operation)
            if operations is not None:
                replaced[at] = operations
            else:
                needed.update(operation.used)
                self.infer_again(operation)
        for at, operations in replaced.items():
            for out in self.graph.operations[at].outputs:
                counted = self.counted.get(out)
                if counted is not None and out in needed and not isinstance(self.graph.operations[at].op, FirstEntries):
                    found = first_entries(
                        counted.operand, self.types[counted.operand], counted.axes, out, self.writer.new
                    )
                    operations += (evolve(each, location=self.graph.operations[at].location) for each in found)
            self.edit.replace(at, *operations)
        return self.edit.done()

    def infer_again(self, operation: Operation) -> None:
        """Infer the results of an operation that stays, if more is now known about its operands."""
        if operation.op.subgraphs or all(self.types[o].is_static for o in operation.outputs):
            return
        types = [None if i is None else self.types[i] for i in operation.inputs]
        if all(t is None or t.is_static for t in types):
            try:
                results = infer(operation.op, types)
            except RuleError:
                return  # the run will report it
            for out, result in zip(operation.outputs, results or (), strict=False):
                self.types[out] = evolve(result, dtype=self.types[out].dtype, quantization=self.types[out].quantization)

    def replacement(self, operation: Operation) -> list[Operation] | None:
        """The operations on whole tensors that replace one; None if it stays."""
        for each in (self.cut_first_entries, self.counting_form, self.assign_slice, self.run_by_entry, self.apply_rule):
            self.writer.begin(operation.location)
            if each(operation):
                self.writer.commit()
                return self.writer.operations
        return None

    def cut_first_entries(self, operation: Operation) -> bool:
        """Handle first entries taken in the original graph; check their number unless it is known to be in range."""
        op, w = operation.op, self.writer
        if not isinstance(op, FirstEntries):
            return False
        whole, count = operation.used
        inner = self.counted.get(whole)
        type_ = self.types[whole if inner is None else inner.operand]
        if not type_.is_static or self.types[count].with_data(None) != COUNT:
            return False
        axis = normalize_axis(op.axis, type_.rank)
        if inner is not None and axis in inner.axes:
            return False
        extent = w.extents.one(count)
        is_in_range = extent is not None and extent.low >= 0 and extent.high <= (type_.shape[axis] or 0)
        key = count, type_.shape[axis] or 0
        if not is_in_range and key in self.checked:
            count = self.checked[key]
        elif not is_in_range:
            count = w.add(Within(inclusive=True), count, w.number(key[1]))
            if not self.is_native(w.operations[-1]):
                return False
            self.checked[key] = count
        producer = definer(self.graph, whole)
        zeros = producer is not None and isinstance(producer.op, CountedWhere | CountedBoxes)
        counted = Counted(whole, count, axis, zeros)
        self.record(
            operation.outputs[0], counted if inner is None else evolve(inner, more=(*inner.more, (axis, count)))
        )
        if not is_in_range:
            w.operations.append(evolve(operation, inputs=(whole, count)))
        return not is_in_range

    def record(self, operand: int, counted: Counted) -> None:
        """Record that an operand is first entries of a tensor."""
        self.counted[operand] = counted
        bounds, shape = self.writer.count_bounds, self.types[counted.operand].shape
        own = tuple(None if axis in counted.axes else size for axis, size in enumerate(shape))
        self.types[operand] = self.types[operand].with_shape(own)
        for axis, count in counted.axes.items():
            bounds[count] = min(shape[axis] or 0, bounds.get(count, 1 << 62))

    def counting_form(self, operation: Operation) -> bool:
        """Replace an operation that finds positions or boxes by one that also counts them, if that is native."""
        op, w = operation.op, self.writer
        if not isinstance(op, Where | BoxesPerClass):
            return False
        found = self.counting_where(operation) if isinstance(op, Where) else self.counting_boxes(op, operation)
        if found is None:
            return False
        counting, inputs = found
        counted, count = w.add_many(counting, *inputs)
        whole = CallTypes(
            tuple(None if i is None else self.types[i] for i in inputs), (self.types[counted], self.types[count])
        )
        if is_too_large(self.types[counted], (0,)) or not self.native(w.operations[-1], whole):
            return False
        self.record(operation.outputs[0], Counted(counted, count, 0, True))
        return True

    def counting_where(self, operation: Operation) -> tuple[Op, tuple[int | None, ...]] | None:
        """The counting form of `Where`; invalid entries are masked so that nothing is found in them."""
        w, x = self.writer, operation.used[0]
        counted = self.counted.get(x)
        x = x if counted is None else counted.operand
        type_ = self.types[x]
        if not type_.is_static or type_.quantization is not None or type_.rank == 0 or 0 in type_.shape:
            return None
        if type_.dtype is not DType.BOOL:
            x = w.add(Comparison(ComparisonKind.NOT_EQUAL), x, w.like(type_, 0))
        if counted is not None:
            x = w.filled(evolve(counted, operand=x), 0)
        return CountedWhere(), (x,)

    def counting_boxes(self, op: BoxesPerClass, operation: Operation) -> tuple[Op, tuple[int | None, ...]] | None:
        """The counting form of `BoxesPerClass`. Invalid boxes get the score -inf, which is above no threshold. If there
        is no threshold, it becomes -inf, and valid scores are raised to at least the lowest finite number."""
        w, inputs = self.writer, list(operation.inputs)
        boxes, scores = (self.counted.get(i) for i in operation.used[:2])
        if boxes is not None and scores is not None:
            same_boxes = boxes.count == scores.count and (boxes.axis, scores.axis) == (1, 2)
            if not same_boxes or boxes.more or scores.more:
                return None
            if len(inputs) < 5 or inputs[4] is None:
                lowest_score, lowest = (w.like(self.types[scores.operand], n) for n in (-math.inf, _LOWEST))
                above = w.add(Comparison(ComparisonKind.GREATER), scores.operand, lowest_score)
                scores = evolve(scores, operand=w.add(Select(), above, scores.operand, lowest))
                inputs[3:] = [*(inputs[3:4] or [None]), lowest_score]
            inputs[:2] = boxes.operand, w.filled(scores, -math.inf)
        types = [None if i is None else self.types[i] for i in inputs]
        if any(t is not None and not t.is_static for t in types):
            return None
        x, y, max_boxes = (types[i] for i in range(3))
        assert x is not None
        assert y is not None
        assert max_boxes is not None
        bound = bound_of(x, y, max_boxes) or 0
        counted_op = CountedBoxes(bound, op.centred)
        if not self.affords(counted_op, CallTypes(tuple(types), counted_op.infer(x, y, max_boxes, *types[3:]))):
            return None
        return counted_op, tuple(inputs)

    def assign_slice(self, operation: Operation) -> bool:
        """Replace elements scattered to a range of indices by a selection, if that is native."""
        result = assigned_slice(self.writer, operation)
        operations = self.writer.operations
        if result is None or not all(map(self.is_native, operations)):
            return False
        (out,) = operation.outputs
        self.types[out] = self.types[result]
        operations[-1] = evolve(operations[-1], outputs=(out,))
        return True

    def apply_rule(self, operation: Operation) -> bool:
        """Rewrite an operation that combines entries by its rule, as native operations on whole tensors."""
        counted = [None if i is None else self.counted.get(i) for i in operation.inputs]
        has_open_size = is_open(self.graph, operation)
        absent = None in operation.inputs and not isinstance(operation.op, LSTM | GRU | TransposeConv2D)
        if absent or not (has_open_size or any(counted)):
            return False
        wholes = [i if c is None else c.operand for i, c in zip(operation.inputs, counted, strict=True)]
        if not all(i is None or self.types[i].is_static for i in wholes):
            return False
        try:
            results = self._rewritten(operation, counted, wholes)
        except RuleError:
            return False  # the run will report it
        operations = self.writer.operations
        if results is None or not all(map(self.is_native, operations)):
            return False
        if any(isinstance(r, Counted) and is_too_large(self.types[r.operand], r.axes) for r in results):
            return False
        number: dict[int, int] = {}
        for out, result in zip(operation.outputs, results, strict=True):
            if isinstance(result, Counted):
                self.record(out, result)
            else:
                number[result] = out
                self.types[out] = self.types[result]
        operations[:] = (each.with_operands(lambda i: number.get(i, i)) for each in operations)
        return True

    def _rewritten(
        self, operation: Operation, counted: CountedInputs, wholes: Sequence[int | None]
    ) -> CountedResults | None:
        """The operation as written by its rule. A rule for a single axis gets one axis of each operand; along the other
        axes the operation must treat entries independently."""
        if isinstance(operation.op, HANDLES_ALL_AXES):
            return apply_rule(self.writer, operation, counted)
        types = CallTypes(tuple(None if i is None else self.types[i] for i in wholes), ())
        for chosen in axis_choices([{} if c is None else c.axes for c in counted]):
            other_axes = [
                {} if c is None else {a: n for a, n in c.axes.items() if a != axis}
                for c, axis in zip(counted, chosen, strict=True)
            ]
            found = match_axes(operation.op, types, other_axes)
            if found is None or any(each.rule.filled or each.rule.constants for each in found):
                continue
            inputs = [
                None if c is None or axis is None else Counted(c.operand, c.axes[axis], axis, c.zeros)
                for c, axis in zip(counted, chosen, strict=True)
            ]
            self.writer.begin(operation.location)
            results = apply_rule(self.writer, evolve(operation, inputs=tuple(wholes)), inputs)
            if results is not None:
                other_counts = {each.rule.axis: each.count for each in found}
                return tuple(
                    first_of(r, other_counts) if isinstance(r, int) else first_of(r.operand, {**r.axes, **other_counts})
                    for r in results
                )
        return None

    def is_native(self, operation: Operation) -> bool:
        inputs = tuple(None if i is None else self.types[i] for i in operation.inputs)
        types = CallTypes(inputs, tuple(self.types[o] for o in operation.outputs))
        return self.native(operation, types)

    def run_by_entry(self, operation: Operation) -> bool:
        """Run an operation that treats entries independently on the whole tensors."""
        counted = [None if i is None else self.counted.get(i) for i in operation.inputs]
        if not any(counted):
            return False
        if isinstance(operation.op, ShapeOf) and counted[0] is not None:
            self._shape(operation, counted[0])
            return True
        inputs = [i if entry is None else entry.operand for i, entry in zip(operation.inputs, counted, strict=True)]
        types = CallTypes(tuple(None if i is None else self.types[i] for i in inputs), ())
        if any(t is not None and not t.is_static for t in types.inputs):
            return False
        try:
            found = match_axes(operation.op, types, [{} if c is None else c.axes for c in counted])
            if found is None or (len(found) > 1 and any(each.rule.constants for each in found)):
                return False
            for position, integers in found[0].rule.constants.items():
                inputs[position] = self.writer.integers(integers)
            results = infer(operation.op, [None if i is None else self.types[i] for i in inputs])
        except RuleError:
            return False  # the run will report it
        along = {each.rule.axis: each.count for each in found}
        sizes = {each.rule.axis: self._size(each, types) for each in found}
        if not results or len(along) < len(found) or not all(self._fits(r, sizes) for r in results):
            return False
        for each in found:
            for position, value in each.rule.filled.items():
                x, operand, axis = counted[position], inputs[position], each.axes[position]
                if x is not None and operand is not None and axis is not None and (value or not x.zeros):
                    inputs[position] = self.writer.filled(Counted(operand, each.count, axis, False), value)
        outputs = []
        zeros = all(each.rule.keeps_zeros for each in found) and all(c.zeros for c in counted if c is not None)
        for output, result in zip(operation.outputs, results, strict=True):
            declared = self.graph.type(output)
            outputs.append(self.writer.new(evolve(result, dtype=declared.dtype, quantization=declared.quantization)))
            whole = first_of(outputs[-1], along, zeros=zeros)
            assert isinstance(whole, Counted)
            self.record(output, whole)
        self.writer.operations.append(evolve(operation, inputs=tuple(inputs), outputs=tuple(outputs)))
        return True

    @staticmethod
    def _size(each: MatchedAxes, types: CallTypes) -> int | None:
        """The size of matching axes."""
        return next(types.input(at).shape[axis] for at, axis in enumerate(each.axes) if axis is not None)

    @staticmethod
    def _fits(result: TensorType, sizes: Mapping[int, int | None]) -> bool:
        plain = result.is_static and not is_too_large(result, sizes)
        return plain and all(result.shape[axis] == size for axis, size in sizes.items())

    def _shape(self, operation: Operation, x: Counted) -> None:
        """Write the shape of first entries: their numbers, combined with the known dimensions."""
        op, w = operation.op, self.writer
        assert isinstance(op, ShapeOf)
        parts: list[int] = []
        shape = self.types[x.operand].shape
        for counts, axes in groupby(range(len(shape)), lambda axis: axis in x.axes):
            if not counts:
                parts.append(w.constant(np.array([shape[axis] for axis in axes], op.to.numpy)))
                continue
            for axis in axes:
                count = x.axes[axis] if op.to is DType.INT64 else w.add(Cast(op.to), x.axes[axis])
                parts.append(w.add(Reshape(), count, w.integers([1], DType.INT32)))
        w.operations.append(Operation(Concat(0), tuple(parts), operation.outputs, operation.location))
