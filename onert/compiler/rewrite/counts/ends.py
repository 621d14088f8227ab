"""What subgraphs are given and give of which the first entries count: whole tensors, and how many entries do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve, frozen

from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import DType, Operand, Operation, Subgraph, TensorType
from onert.ir.ops.data_movement.fill import FirstEntries, Within
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice
from onert.ir.value import Value

from .counting import Writer

COUNT = TensorType(DType.INT64, ())

MOST_BYTES = 1 << 22
"""Of a whole tensor that is computed for its first entries; where it has more it is less work to know their number."""


@frozen
class End(Value):
    """A tensor of a known type, of which the first entries along an axis count, or all.

    `like` is the place of an earlier one of which the same number counts, where one is known.
    """

    type: TensorType
    axis: int | None = None
    like: int | None = None

    @property
    def size(self) -> int:
        """How many entries there can be; nothing is counted where there is no axis."""
        return 0 if self.axis is None else self.type.shape[self.axis] or 0

    def sized(self, size: int) -> End | None:
        """The same for so many entries; None if they are more than are worth computing."""
        assert self.axis is not None
        shape = (*self.type.shape[: self.axis], size, *self.type.shape[self.axis + 1 :])
        type_ = self.type.with_shape(shape)
        return End(type_, self.axis) if type_.nbytes <= MOST_BYTES else None


@frozen
class Given(Value):
    """A tensor as a graph has it, and the operand that says how many of its entries count, if only first ones do."""

    end: End
    operand: int
    count: int | None = None


def given(graph: Subgraph, operand: int) -> Given | None:
    """An operand of known type, or first entries of one; None where neither is so."""
    type_ = graph.operands[operand].known
    if type_.is_static:
        return None if type_.dtype.is_handle else Given(End(type_), operand)
    made = definer(graph, operand)
    if made is None or not isinstance(made.op, FirstEntries):
        return None
    whole, count = made.used
    found = graph.type(whole)
    plain = found.is_static and graph.type(count) == COUNT
    return Given(End(found, made.op.axis % found.rank), whole, count) if plain else None


def ends_of(givens: Sequence[Given]) -> list[End]:
    """What a graph is given, of which some tensors may have one number of entries that count."""
    first: dict[int, int] = {}
    found = []
    for at, each in enumerate(givens):
        earlier = at if each.count is None else first.setdefault(each.count, at)
        found.append(each.end if earlier == at else evolve(each.end, like=earlier))
    return found


def left(graph: Subgraph) -> list[Given] | None:
    """What a graph gives; None where a type is not known."""
    found = [given(graph, o) for o in graph.outputs]
    return None if None in found else [f for f in found if f is not None]


def is_known(graph: Subgraph) -> bool:
    """Whether all types are, but for first entries that the graph gives and does not use itself."""
    ends = {
        o
        for o in graph.outputs
        if o not in graph.uses and (found := given(graph, o)) is not None and found.count is not None
    }
    return all(
        not operand.variable and not operand.type.dtype.is_handle and (operand.type.is_static or at in ends)
        for at, operand in enumerate(graph.operands)
    )


def unified(a: End, b: End) -> End | None:
    """What tensors of both kinds fit in: alike, or first entries along the one axis in which they differ."""
    x, y = evolve(a.type, data=None), evolve(b.type, data=None)
    if a.axis is None and b.axis is None and x == y:
        return End(x)
    if x.rank != y.rank or not x.rank or x.with_shape(y.shape) != y:
        return None
    axes = {axis for axis in (a.axis, b.axis) if axis is not None}
    axes |= {axis for axis, (m, n) in enumerate(zip(x.shape, y.shape, strict=True)) if m != n}
    if len(axes) != 1:
        return None
    (axis,) = axes
    return End(x, axis).sized(max(x.shape[axis] or 0, y.shape[axis] or 0))


def entered(graph: Subgraph, ends: Sequence[End]) -> Subgraph:
    """The graph for what it is given so: behind its inputs it has a number for each that is counted."""
    types = {i: graph.type(i).with_shape(e.type.shape) for i, e in zip(graph.inputs, ends, strict=True)}
    if all(e.axis is None for e in ends):
        return graph.with_types(types)
    operands, inputs, first = list(graph.operands), list(graph.inputs), []
    counts: dict[int, int] = {}
    for at, (i, end) in enumerate(zip(graph.inputs, ends, strict=True)):
        if end.axis is None:
            operands[i] = evolve(operands[i], type=types[i])
            continue
        whole, count = len(operands), len(operands) + 1
        operands += [Operand(evolve(types[i], data=None), operands[i].name), Operand(COUNT)]
        shape = (*types[i].shape[: end.axis], None, *types[i].shape[end.axis + 1 :])
        operands[i] = evolve(operands[i], type=types[i].with_shape(shape))
        counts[at] = count
        number = count if end.like is None else counts[end.like]
        first.append(Operation(FirstEntries(end.axis), (whole, number), (i,)))
        inputs[at] = whole
    inputs += counts.values()
    return evolve(graph, operands=tuple(operands), operations=(*first, *graph.operations), inputs=tuple(inputs))


def leaving(graph: Subgraph, ends: Sequence[End]) -> Subgraph:
    """The graph that gives its outputs so, and behind them a number for each that is counted.

    Where more entries count than there is room for it fails. Precondition: `left` and `unified` say that they fit.
    """
    found = left(graph)
    assert found is not None
    if all(e.axis is None for e in ends):
        return graph
    w = Writer(Edit(graph))
    pairs = [fitted(w, each, end) for each, end in zip(found, ends, strict=True)]
    for operation in w.made:
        w.edit.insert(len(graph.operations), operation)
    counts = [count for _, count in pairs if count is not None]
    w.edit.end_with([whole for whole, _ in pairs] + counts, graph.state)
    return w.edit.done()


def fitted(w: Writer, each: Given, end: End) -> tuple[int, int | None]:
    """A tensor in the room of an end, and how many of its entries count."""
    if end.axis is None:
        return each.operand, None
    size = each.end.type.shape[end.axis] or 0
    count = w.number(size) if each.count is None else each.count
    quantization = each.end.type.quantization
    if size < end.size:
        if not size:
            nothing, shape = w.like(each.end.type, 0), w.constant(np.array(end.type.shape, np.int32))
            return w.add(BroadcastTo(), nothing, shape, quantization=quantization), count
        margins = np.zeros((end.type.rank, 2), np.int32)
        margins[end.axis, 1] = end.size - size
        return w.add(Pad(), each.operand, w.constant(margins), quantization=quantization), count
    if size > end.size:
        checked = w.add(Within(inclusive=True), count, w.number(end.size))
        appended = _appended(w, each.operand, end)
        if appended is not None:
            return w.add(DynamicUpdateSlice(), *appended, quantization=quantization), checked
        begin, sizes = np.zeros(end.type.rank, np.int32), np.array(end.type.shape, np.int32)
        whole = w.add(Slice(), each.operand, w.constant(begin), w.constant(sizes), quantization=quantization)
        return whole, checked
    return each.operand, count


def _appended(w: Writer, whole: int, end: End) -> tuple[int, ...] | None:
    """What is put over which tensor of the end's size, and where, if that is how first entries were joined: then no
    larger tensor is made."""
    put = definer(w.edit.subgraph, whole)
    if put is None or not isinstance(put.op, DynamicUpdateSlice):
        return None
    joined, part, start = put.used
    made = definer(w.edit.subgraph, joined)
    if made is None or not isinstance(made.op, Concat) or made.used[1:] != (part,):
        return None
    return (made.used[0], part, start) if w.types[made.used[0]].shape == end.type.shape else None
