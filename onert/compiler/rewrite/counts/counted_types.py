"""Inputs and outputs of subgraphs with valid first entries: whole tensors and their numbers of valid entries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce

from attrs import evolve, frozen

from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import DType, Operand, Operation, Subgraph, TensorType
from onert.ir.ops.data_movement.fill import FirstEntries, Within
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice
from onert.ir.shape import static
from onert.ir.value import Value

from .counting import Writer, first_entries, with_open_axis

COUNT = TensorType(DType.INT64, ())

MOST_BYTES = 1 << 22
"""The largest whole tensor that is computed for its first entries; beyond it, knowing their number first is cheaper."""
FEW, MOST_BYTES_OF_FEW = 1 << 11, 1 << 26
"""Few entries, such as a detector's regions, are mostly valid, so their tensors may be larger."""


def is_too_large(whole: TensorType, axes: Iterable[int]) -> bool:
    """Whether a tensor is too large to be computed whole for its first entries along some axes."""
    few = math.prod(whole.shape[axis] or 0 for axis in axes) <= FEW
    return whole.nbytes > (MOST_BYTES_OF_FEW if few else MOST_BYTES)


@frozen
class CountedType(Value):
    """The type of an input or output, and its counted axes, along which only first entries are valid.

    `same_counts` has, for each counted axis, the index of the first equal count among all that a graph is given, if
    known.
    """

    type: TensorType
    axes: tuple[int, ...] = ()
    same_counts: tuple[int, ...] = ()

    def sized(self, shape: Sequence[int]) -> CountedType | None:
        """The type with another shape; None if it has counted axes and exceeds `MOST_BYTES`."""
        type_ = self.type.with_shape(tuple(shape))
        return CountedType(type_, self.axes) if not self.axes or type_.nbytes <= MOST_BYTES else None


@frozen
class CountedOperand(Value):
    """A tensor in a graph, and the operands with the numbers of valid entries along its counted axes."""

    counted: CountedType
    operand: int
    counts: tuple[int, ...] = ()


def counted_operand(graph: Subgraph, operand: int) -> CountedOperand | None:
    """An operand of known type, or one that is first entries of such an operand; otherwise None."""
    if graph.type(operand).dtype.is_handle:
        return None
    axes: dict[int, int] = {}
    while not graph.operands[operand].known.is_static:
        producer = definer(graph, operand)
        if producer is None or not isinstance(producer.op, FirstEntries):
            return None
        operand, count = producer.used
        axis = producer.op.axis % max(1, graph.type(operand).rank)
        if graph.type(count) != COUNT or axis in axes:
            return None
        axes[axis] = count
    order = sorted(axes)
    type_ = graph.type(operand) if axes else graph.operands[operand].known
    return CountedOperand(CountedType(type_, tuple(order)), operand, tuple(axes[axis] for axis in order))


def counted_types(operands: Sequence[CountedOperand]) -> list[CountedType]:
    """The types of a graph's operands; `same_counts` tells which share a count."""
    first: dict[int, int] = {}
    numbers = [first.setdefault(count, at) for at, count in enumerate(c for each in operands for c in each.counts)]
    found = []
    for each in operands:
        found.append(evolve(each.counted, same_counts=tuple(numbers[: len(each.counts)])))
        del numbers[: len(each.counts)]
    return found


def outputs_of(graph: Subgraph) -> list[CountedOperand] | None:
    """A graph's outputs; None if a type is unknown."""
    found = [counted_operand(graph, o) for o in graph.outputs]
    return None if None in found else [f for f in found if f is not None]


def is_known(graph: Subgraph) -> bool:
    """Whether all types are known, except for first entries that the graph returns and does not otherwise use."""
    return all(
        not operand.variable
        and not operand.type.dtype.is_handle
        and (operand.type.is_static or (_is_only_cut(graph, at) and counted_operand(graph, at) is not None))
        for at, operand in enumerate(graph.operands)
    )


def _is_only_cut(graph: Subgraph, operand: int) -> bool:
    """Whether a graph only takes first entries of an operand, or only returns it."""
    users = graph.uses.get(operand, ())
    return all(isinstance(graph.operations[at].op, FirstEntries) for at in users) if users else operand in graph.outputs


def common_type(a: CountedType, b: CountedType) -> CountedType | None:
    """A type that both fit into, counted along the axes in which they differ; None if there is none, or too large."""
    x, y = evolve(a.type, data=None), evolve(b.type, data=None)
    if x == y and not a.axes and not b.axes:
        return CountedType(x)
    if x.rank != y.rank or x.with_shape(y.shape) != y:
        return None
    differ = {axis for axis, (m, n) in enumerate(zip(x.shape, y.shape, strict=True)) if m != n}
    axes = tuple(sorted({*a.axes, *b.axes, *differ}))
    return CountedType(x, axes).sized([*map(max, static(x.shape), static(y.shape))])


def with_inputs(graph: Subgraph, counted: Sequence[CountedType]) -> Subgraph:
    """The graph for operands of these types: after its inputs come the counts, one per counted axis."""
    types = {i: graph.type(i).with_shape(t.type.shape) for i, t in zip(graph.inputs, counted, strict=True)}
    if not any(t.axes for t in counted):
        return graph.with_types(types)
    operands, inputs, first = list(graph.operands), list(graph.inputs), list[Operation]()
    counts: list[int] = []

    def new(type_: TensorType) -> int:
        operands.append(Operand(evolve(type_, data=None)))
        return len(operands) - 1

    for at, (i, each) in enumerate(zip(graph.inputs, counted, strict=True)):
        operands[i] = evolve(operands[i], type=reduce(with_open_axis, each.axes, types[i]))
        if not each.axes:
            continue
        inputs[at] = len(operands)
        operands.append(Operand(evolve(types[i], data=None), graph.operands[i].name))
        begin = len(counts)
        counts += [new(COUNT) for _ in each.axes]
        axis_counts = [counts[same] for same in each.same_counts or range(begin, len(counts))]
        first += first_entries(inputs[at], types[i], dict(zip(each.axes, axis_counts, strict=True)), i, new)
    inputs += counts
    return evolve(graph, operands=tuple(operands), operations=(*first, *graph.operations), inputs=tuple(inputs))


def with_outputs(graph: Subgraph, counted: Sequence[CountedType]) -> Subgraph:
    """The graph returning outputs of these types, followed by the counts, one per counted axis.

    The run fails if there are more valid entries than room. Precondition: the outputs fit by `outputs_of` and
    `common_type`.
    """
    outputs = outputs_of(graph)
    assert outputs is not None
    if not any(t.axes for t in counted):
        return graph
    w = Writer(Edit(graph))
    pairs = [fitted(w, each, type_) for each, type_ in zip(outputs, counted, strict=True)]
    for operation in w.operations:
        w.edit.insert(len(graph.operations), operation)
    counts = [count for _, axis_counts in pairs for count in axis_counts]
    w.edit.end_with([whole for whole, _ in pairs] + counts, graph.state)
    return w.edit.done()


def fitted(w: Writer, each: CountedOperand, target: CountedType) -> tuple[int, tuple[int, ...]]:
    """A tensor fitted into the room of a type, and its counts."""
    if not target.axes:
        return each.operand, ()
    own_sizes, target_sizes = static(each.counted.type.shape), static(target.type.shape)
    axis_counts, quantization = dict(zip(each.counted.axes, each.counts, strict=True)), each.counted.type.quantization
    counts = tuple(axis_counts[axis] if axis in axis_counts else w.number(own_sizes[axis]) for axis in target.axes)
    counts = tuple(
        w.add(Within(inclusive=True), count, w.number(target_sizes[axis]))
        if own_sizes[axis] > target_sizes[axis]
        else count
        for axis, count in zip(target.axes, counts, strict=True)
    )
    whole, common = each.operand, tuple(map(min, own_sizes, target_sizes))
    if 0 in own_sizes and own_sizes != target_sizes:
        nothing, shape = w.like(each.counted.type, 0), w.integers(target_sizes, DType.INT32)
        return w.add(BroadcastTo(), nothing, shape, quantization=quantization), counts
    if common != own_sizes:
        appended = _appended(w, whole, target)
        if appended is not None:
            return w.add(DynamicUpdateSlice(), *appended, quantization=quantization), counts
        begin, sizes = w.integers((0,) * len(common), DType.INT32), w.integers(common, DType.INT32)
        whole = w.add(Slice(), whole, begin, sizes, quantization=quantization)
    if common != target_sizes:
        margins = [(0, size - keep) for size, keep in zip(target_sizes, common, strict=True)]
        whole = w.add(Pad(), whole, w.integers(margins, DType.INT32), quantization=quantization)
    return whole, counts


def _appended(w: Writer, whole: int, target: CountedType) -> tuple[int, ...] | None:
    """The operands of a DynamicUpdateSlice on a tensor of the target's size, if `whole` appends to such a tensor by way
    of a larger concatenation, which is then not needed; otherwise None."""
    update = definer(w.edit.subgraph, whole)
    if update is None or not isinstance(update.op, DynamicUpdateSlice):
        return None
    concatenated, part, start = update.used
    producer = definer(w.edit.subgraph, concatenated)
    if producer is None or not isinstance(producer.op, Concat) or producer.used[1:] != (part,):
        return None
    return (producer.used[0], part, start) if w.types[producer.used[0]].shape == target.type.shape else None
