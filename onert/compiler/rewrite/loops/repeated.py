"""Replace lists of repeated slices that a loop builds by one operation that repeats all slices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import evolve, field, frozen

from onert.compiler.rewrite.called_graphs import with_constants
from onert.compiler.rewrite.edit import Edit, definer
from onert.compiler.rewrite.effects import is_removable
from onert.ir import Array, DType, ModelError, Op, Operand, Operation, RuleError, Shape, Subgraph, Subgraphs, TensorType
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.control import While
from onert.ir.ops.control_flow.sequences import SequenceAt, SequenceJoin, SplitToSequence
from onert.ir.ops.data_movement.fill import Within
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import BroadcastTo, Repeat, Tile
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary
from onert.ir.shape import Dim, normalize_axis, static

from .invariants import constant_state
from .lists import Counted, Simplify, counted, is_list

MOST_OPERATIONS = 100
"""The most operations of a body: its results are followed recursively."""

_ELEMENTWISE = Binary | Comparison | Unary | Cast | Select | Within
_SAME_ORDER = Reshape | ExpandDims | Squeeze


def with_repetitions(model: Subgraphs, graph: Subgraph, at: int, simplify: Simplify) -> Subgraph | None:
    """The graph that computes the joined lists of loop `at` without the loop, if each round adds a slice of a tensor
    that is repeated as often as an integer of that round says. None if the loop does anything else.

        xs = Split(x); ns = Split(n); While {items = SequenceInsert(items, BroadcastTo(xs[i], [ns[i], 8]))};
        y = SequenceJoin(items)   -->   y = Repeat(x, n)

    What the body computes from the integer is computed from all integers at once, so that it has the same errors.
    """
    operation = graph.operations[at]
    op = operation.op
    if not isinstance(op, While) or None in operation.inputs:
        return None
    operands = operation.used
    condition, body = model[op.condition], model[op.body]
    lists = [k for k, o in enumerate(operation.outputs) if o in graph.uses or o in graph.kept]
    if not lists or not all(
        graph.type(operands[k]).dtype is DType.VARIANT and is_list(graph, condition, body, operation, k, _is_joined)
        for k in lists
    ):
        return None
    if body.state or not all(map(is_removable, (*condition.operations, *body.operations))):
        return None
    types = {i: graph.type(g).with_data(None) for i, g in zip(body.inputs, operands, strict=True)}
    fixed = constant_state([graph.operands[i].data for i in operands], body)
    try:
        simplified = simplify(with_constants(body.with_types(types), fixed))
    except (ModelError, RuleError):
        return None
    rounds = counted(condition, simplified, [graph.operands[i].known for i in operands], fixed, simplify)
    if rounds is None or rounds.first or rounds.rounds < 1 or len(simplified.operations) > MOST_OPERATIONS:
        return None
    loop = _Loop(graph, operation, simplified, rounds)
    edit = Edit(graph)
    readers = [(reader, k) for k in lists for reader in graph.uses[operation.outputs[k]]]
    if not all(loop.replace_join(reader, k, edit) for reader, k in readers):
        return None
    edit.remove(at)
    return infer_alone(edit.done())


def _is_joined(join: SequenceJoin) -> bool:
    return not join.new


@frozen
class _Slice:
    """A tensor of which each round takes a slice of size 1 along `axis`."""

    tensor: int
    axis: int


@frozen
class _Vector:
    """The integers that one round computes if its slice of `counts` is 1, and which of them depend on that slice."""

    values: Array
    depends: Array
    counts: _Slice | None


@frozen
class _Loop:
    """A loop, its body after the passes, and what was found out about the body's operands."""

    graph: Subgraph
    operation: Operation
    body: Subgraph
    counted: Counted
    vectors: dict[int, _Vector | None] = field(factory=dict)
    columns: dict[tuple[int, int], int] = field(factory=dict)

    def replace_join(self, reader: int, k: int, edit: Edit) -> bool:
        """Whether operation `reader`, which joins list `k`, was replaced."""
        join = self.graph.operations[reader]
        added = definer(self.body, self.body.outputs[k])
        assert isinstance(join.op, SequenceJoin)
        assert added is not None
        item = self.body.type(added.used[1])
        ordered = self.ordered(added.used[1])
        grown = definer(self.body, ordered)
        if not item.ranked or grown is None or not isinstance(grown.op, BroadcastTo | Tile):
            return False
        source, sizes = grown.used
        taken, vector = self.slice(self.ordered(source)), self.vector(sizes)
        if taken is None or vector is None or vector.counts is None or not self.body.type(source).is_static:
            return False
        dims = _grown(static(self.body.type(source).shape), vector, tiled=isinstance(grown.op, Tile))
        if dims is None:
            return False
        shape = dims if ordered == added.used[1] else item.shape
        axis = normalize_axis(join.op.axis, len(shape))
        if shape.count(None) != 1 or shape[axis] is not None:
            return False
        x = self.graph.type(taken.tensor).with_data(None)
        if x.dtype is not join.op.dtype:
            return False
        if not _around(shape, axis) == _around(dims, dims.index(None)) == _around(x.shape, taken.axis):
            return False
        operations: list[Operation] = []
        counts = self.column(sizes, dims.index(None), edit, operations)
        repeated = edit.operand(Operand(x.with_shape((*x.shape[: taken.axis], None, *x.shape[taken.axis + 1 :]))))
        operations.append(Operation(Repeat(taken.axis), (taken.tensor, counts), (repeated,), join.location))
        wanted = np.array([*shape[:axis], -1, *shape[axis + 1 :]])  # may contain symbolic numbers
        made = Operation(Reshape(), (repeated, edit.constant(wanted, DType.INT64)), join.outputs, join.location)
        edit.replace(reader, *operations, made)
        return True

    def ordered(self, operand: int) -> int:
        """The operand that this one has the elements of, in the same order."""
        producer = definer(self.body, operand)
        while producer is not None and isinstance(producer.op, _SAME_ORDER):
            operand = producer.used[0]
            producer = definer(self.body, operand)
        return operand

    def slice(self, operand: int) -> _Slice | None:
        """The tensor of which each round takes the next slice as this operand."""
        producer = definer(self.body, operand)
        if producer is None or not isinstance(producer.op, SequenceAt):
            return None
        items, index = producer.used
        if items not in self.body.inputs or self.ordered(index) != self.body.inputs[self.counted.counter]:
            return None
        k = self.body.inputs.index(items)
        split = definer(self.graph, self.operation.used[k])
        if self.body.outputs[k] != items or split is None or not isinstance(split.op, SplitToSequence):
            return None
        x = self.graph.type(split.used[0])
        if not x.is_static or x.quantization is not None or x.dtype is not self.body.type(operand).dtype:
            return None
        axis = normalize_axis(split.op.axis, x.rank)
        if x.shape[axis] != self.counted.rounds or not self.in_ones(split, x.shape[axis]):
            return None
        return _Slice(split.used[0], axis)

    def in_ones(self, split: Operation, length: int | None) -> bool:
        """Whether a tensor of this length is split into parts of size 1."""
        if len(split.used) < 2:
            return True
        sizes = self.graph.operands[split.used[1]].known.value
        return sizes is not None and (sizes.ndim == 0 or sizes.size == length) and bool(np.all(sizes == 1))

    def vector(self, operand: int) -> _Vector | None:
        """What a round computes as this operand from one integer, element by element."""
        if operand not in self.vectors:
            self.vectors[operand] = self._vector(operand)
        return self.vectors[operand]

    def _vector(self, operand: int) -> _Vector | None:
        type_ = self.body.type(operand)
        data = self.body.operands[operand].data
        if not type_.is_static or type_.rank > 1 or type_.quantization is not None:
            return None
        if data is not None:
            array = data.array
            return None if array.dtype.hasobject else _Vector(array, np.zeros(array.shape, bool), None)
        taken = self.slice(operand)
        if taken is not None:
            fits = type_.dtype.is_integer and self.graph.type(taken.tensor).rank == 1
            ones = np.ones(static(type_.shape), type_.dtype.numpy)
            return _Vector(ones, ones.astype(bool), taken) if fits else None
        producer = definer(self.body, operand)
        if producer is None or None in producer.inputs or producer.op.evaluate is None:
            return None
        known = [each for each in map(self.vector, producer.used) if each is not None]
        sources = {each.counts for each in known} - {None}
        if len(known) != len(producer.used) or len(sources) > 1:
            return None
        depends = _depends(producer.op, known)
        if depends is None:
            return None
        try:
            values = producer.op.evaluate(*(each.values for each in known))
        except (RuleError, ValueError):
            return None
        if not isinstance(values, np.ndarray):
            return None
        return _Vector(values, depends.reshape(values.shape), next(iter(sources), None))

    def column(self, operand: int, at: int, edit: Edit, operations: list[Operation]) -> int:
        """An operand of `edit` with element `at` of one of the body's for all rounds; one element if all are the same.

        `vector` has found that the operand is computed element by element.
        """
        key = operand, at
        if key not in self.columns:
            self.columns[key] = self._column(operand, at, edit, operations)
        return self.columns[key]

    def _column(self, operand: int, at: int, edit: Edit, operations: list[Operation]) -> int:
        data, type_ = self.body.operands[operand].data, self.body.type(operand)
        if data is not None:
            return edit.constant(data.array.reshape(-1)[at : at + 1], type_.dtype)
        taken = self.slice(operand)
        if taken is not None:
            return taken.tensor
        producer = definer(self.body, operand)
        assert producer is not None
        if isinstance(producer.op, _SAME_ORDER):
            return self.column(producer.used[0], at, edit, operations)
        sizes = [math.prod(static(self.body.type(i).shape)) for i in producer.used]
        if isinstance(producer.op, Concat):
            part = next(n for n in range(len(sizes)) if at < sum(sizes[: n + 1]))
            return self.column(producer.used[part], at - sum(sizes[:part]), edit, operations)
        places = (at if size > 1 else 0 for size in sizes)
        used = (self.column(i, n, edit, operations) for i, n in zip(producer.used, places, strict=True))
        inputs = tuple(used)
        out = edit.operand(Operand(TensorType(type_.dtype, (None,))))
        operations.append(evolve(producer, inputs=inputs, outputs=(out,)))
        return out


def _depends(op: Op, operands: Sequence[_Vector]) -> Array | None:
    """Which elements of a result depend on the round, if it is computed element by element; otherwise None."""
    marks = [each.depends for each in operands]
    if isinstance(op, Concat):
        return np.concatenate(marks)
    if isinstance(op, _SAME_ORDER):
        return marks[0]
    if not isinstance(op, _ELEMENTWISE) or op == Select(rows=True):
        return None
    if isinstance(op, Within) and (len(marks) > 2 or operands[1].counts):
        return None  # a limit holds for all elements
    found: Array = np.any(np.broadcast_arrays(*marks), axis=0)
    return found


def _grown(source: Shape, vector: _Vector, *, tiled: bool) -> Shape | None:
    """The shape of a source of this shape that is broadcast to a vector of sizes, or `tiled` by it, with None for the
    size that depends on the round. None unless there is one, of a dimension of 1, and all others stay as they are."""
    places = np.flatnonzero(vector.depends)
    rank = vector.values.size
    if vector.values.ndim != 1 or len(places) != 1 or rank < len(source):
        return None
    at = int(places[0])
    dims: list[Dim] = [*(1 for _ in range(rank - len(source))), *source]
    others = vector.values.tolist()
    stays = all(n == at or size == (1 if tiled else d) for n, (size, d) in enumerate(zip(others, dims, strict=True)))
    if dims[at] != 1 or not stays:
        return None
    dims[at] = None
    return tuple(dims)


def _around(shape: Shape, axis: int) -> tuple[int, int]:
    """The numbers of elements before and behind an axis."""
    return math.prod(static(shape[:axis])), math.prod(static(shape[axis + 1 :]))
