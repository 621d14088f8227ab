"""Inputs and outputs of subgraphs with valid first entries: whole tensors and their numbers of valid entries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from attrs import evolve, frozen

from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import DType, Operand, Operation, Subgraph, TensorType
from onert.ir.ops.data_movement.fill import FirstEntries, Within
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice
from onert.ir.shape import static
from onert.ir.value import Value

from .counting import Writer, first_entries, opened

COUNT = TensorType(DType.INT64, ())

MOST_BYTES = 1 << 22
"""The largest whole tensor that is computed for its first entries; beyond it, knowing their number first is cheaper."""


@frozen
class End(Value):
    """The type of an input or output, and its counted axes, along which only first entries are valid.

    `like` has, for each counted axis, the index of the first equal count among all that a graph is given, if known.
    """

    type: TensorType
    axes: tuple[int, ...] = ()
    like: tuple[int, ...] = ()

    def sized(self, shape: Sequence[int]) -> End | None:
        """The end with another shape; None if it has counted axes and exceeds `MOST_BYTES`."""
        type_ = self.type.with_shape(tuple(shape))
        return End(type_, self.axes) if not self.axes or type_.nbytes <= MOST_BYTES else None


@frozen
class Given(Value):
    """A tensor in a graph, and the operands with the numbers of valid entries along the axes of its end."""

    end: End
    operand: int
    counts: tuple[int, ...] = ()


def given(graph: Subgraph, operand: int) -> Given | None:
    """An operand of known type, or one that is first entries of such an operand; otherwise None."""
    if graph.type(operand).dtype.is_handle:
        return None
    axes: dict[int, int] = {}
    while not graph.operands[operand].known.is_static:
        made = definer(graph, operand)
        if made is None or not isinstance(made.op, FirstEntries):
            return None
        operand, count = made.used
        axis = made.op.axis % max(1, graph.type(operand).rank)
        if graph.type(count) != COUNT or axis in axes:
            return None
        axes[axis] = count
    order = sorted(axes)
    type_ = graph.type(operand) if axes else graph.operands[operand].known
    return Given(End(type_, tuple(order)), operand, tuple(axes[axis] for axis in order))


def ends_of(givens: Sequence[Given]) -> list[End]:
    """The ends of a graph's operands; `like` tells which share a count."""
    first: dict[int, int] = {}
    numbers = [first.setdefault(count, at) for at, count in enumerate(c for each in givens for c in each.counts)]
    found = []
    for each in givens:
        found.append(evolve(each.end, like=tuple(numbers[: len(each.counts)])))
        del numbers[: len(each.counts)]
    return found


def left(graph: Subgraph) -> list[Given] | None:
    """A graph's outputs; None if a type is unknown."""
    found = [given(graph, o) for o in graph.outputs]
    return None if None in found else [f for f in found if f is not None]


def is_known(graph: Subgraph) -> bool:
    """Whether all types are known, except for first entries that the graph returns and does not otherwise use."""
    return all(
        not operand.variable
        and not operand.type.dtype.is_handle
        and (operand.type.is_static or (_is_only_taken(graph, at) and given(graph, at) is not None))
        for at, operand in enumerate(graph.operands)
    )


def _is_only_taken(graph: Subgraph, operand: int) -> bool:
    """Whether a graph only takes first entries of an operand, or only returns it."""
    users = graph.uses.get(operand, ())
    return all(isinstance(graph.operations[at].op, FirstEntries) for at in users) if users else operand in graph.outputs


def unified(a: End, b: End) -> End | None:
    """An end that both fit into, counted along the axes in which they differ; None if there is none, or too large."""
    x, y = evolve(a.type, data=None), evolve(b.type, data=None)
    if x == y and not a.axes and not b.axes:
        return End(x)
    if x.rank != y.rank or x.with_shape(y.shape) != y:
        return None
    differ = {axis for axis, (m, n) in enumerate(zip(x.shape, y.shape, strict=True)) if m != n}
    axes = tuple(sorted({*a.axes, *b.axes, *differ}))
    return End(x, axes).sized([*map(max, static(x.shape), static(y.shape))])


def entered(graph: Subgraph, ends: Sequence[End]) -> Subgraph:
    """The graph for operands with these ends: after its inputs come the counts, one per counted axis."""
    types = {i: graph.type(i).with_shape(e.type.shape) for i, e in zip(graph.inputs, ends, strict=True)}
    if not any(e.axes for e in ends):
        return graph.with_types(types)
    operands, inputs, first = list(graph.operands), list(graph.inputs), list[Operation]()
    counts: list[int] = []

    def new(type_: TensorType) -> int:
        operands.append(Operand(evolve(type_, data=None)))
        return len(operands) - 1

    for at, (i, end) in enumerate(zip(graph.inputs, ends, strict=True)):
        operands[i] = evolve(operands[i], type=reduce(opened, end.axes, types[i]))
        if not end.axes:
            continue
        inputs[at] = len(operands)
        operands.append(Operand(evolve(types[i], data=None), graph.operands[i].name))
        begin = len(counts)
        counts += [new(COUNT) for _ in end.axes]
        own = [counts[like] for like in end.like or range(begin, len(counts))]
        first += first_entries(inputs[at], types[i], dict(zip(end.axes, own, strict=True)), i, new)
    inputs += counts
    return evolve(graph, operands=tuple(operands), operations=(*first, *graph.operations), inputs=tuple(inputs))


def leaving(graph: Subgraph, ends: Sequence[End]) -> Subgraph:
    """The graph returning outputs with these ends, followed by the counts, one per counted axis.

    The run fails if there are more valid entries than room. Precondition: the outputs fit by `left` and `unified`.
    """
    found = left(graph)
    assert found is not None
    if not any(e.axes for e in ends):
        return graph
    w = Writer(Edit(graph))
    pairs = [fitted(w, each, end) for each, end in zip(found, ends, strict=True)]
    for operation in w.made:
        w.edit.insert(len(graph.operations), operation)
    counts = [count for _, own in pairs for count in own]
    w.edit.end_with([whole for whole, _ in pairs] + counts, graph.state)
    return w.edit.done()


def fitted(w: Writer, each: Given, end: End) -> tuple[int, tuple[int, ...]]:
    """A tensor fitted into the room of an end, and its counts."""
    if not end.axes:
        return each.operand, ()
    have, room = static(each.end.type.shape), static(end.type.shape)
    own, quantization = dict(zip(each.end.axes, each.counts, strict=True)), each.end.type.quantization
    counts = tuple(own[axis] if axis in own else w.number(have[axis]) for axis in end.axes)
    counts = tuple(
        w.add(Within(inclusive=True), count, w.number(room[axis])) if have[axis] > room[axis] else count
        for axis, count in zip(end.axes, counts, strict=True)
    )
    whole, kept = each.operand, tuple(map(min, have, room))
    if 0 in have and have != room:
        nothing, shape = w.like(each.end.type, 0), w.integers(room, DType.INT32)
        return w.add(BroadcastTo(), nothing, shape, quantization=quantization), counts
    if kept != have:
        appended = _appended(w, whole, end)
        if appended is not None:
            return w.add(DynamicUpdateSlice(), *appended, quantization=quantization), counts
        begin, sizes = np.zeros(len(kept), np.int32), np.array(kept, np.int32)
        whole = w.add(Slice(), whole, w.constant(begin), w.constant(sizes), quantization=quantization)
    if kept != room:
        margins = np.array([(0, size - left) for size, left in zip(room, kept, strict=True)], np.int32)
        whole = w.add(Pad(), whole, w.constant(margins), quantization=quantization)
    return whole, counts


def _appended(w: Writer, whole: int, end: End) -> tuple[int, ...] | None:
    """The operands of a DynamicUpdateSlice on a tensor of the end's size, if `whole` appends to such a tensor by way of
    a larger concatenation, which is then not needed; otherwise None."""
    put = definer(w.edit.subgraph, whole)
    if put is None or not isinstance(put.op, DynamicUpdateSlice):
        return None
    joined, part, start = put.used
    made = definer(w.edit.subgraph, joined)
    if made is None or not isinstance(made.op, Concat) or made.used[1:] != (part,):
        return None
    return (made.used[0], part, start) if w.types[made.used[0]].shape == end.type.shape else None
