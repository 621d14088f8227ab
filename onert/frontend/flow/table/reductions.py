"""Reductions along one or all axes, and operations composed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from onert.frontend.flow.emitter import Emitter, Node, Rule
from onert.ir import DType
from onert.ir import shape as shapes
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax

KINDS: Mapping[str, Reduction] = {
    "Sum": Reduction.SUM,
    "Product": Reduction.PROD,
    "Max": Reduction.MAX,
    "Min": Reduction.MIN,
    "All": Reduction.ALL,
    "Any": Reduction.ANY,
}
"""Reductions by their names in operations and recipes; `Count` is another."""


def reduced(e: Emitter, name: str, x: int, axes: Sequence[int], *, keep: bool = False, to: DType | None = None) -> int:
    """Add a reduction. `Count` counts nonzero elements, as type `to`; `All` and `Any` treat nonzero as true."""
    dtype = e.dtype(x)
    along = e.indices(axes)
    if name == "Count":
        return e.add(Reduce(Reduction.SUM, keep), e.cast(e.truth(x), to or DType.FLOAT32), along)
    if name in ("All", "Any"):
        return e.cast(e.add(Reduce(KINDS[name], keep), e.truth(x), along), dtype)
    return e.add(Reduce(KINDS[name], keep), x, along)


def _axes(e: Emitter, node: Node) -> tuple[int, ...]:
    """The operation's axis, or all axes if it has none."""
    node.require_inputs(1)
    axis, rank = node.integer("axis"), e.rank(node.inputs[0])
    return tuple(range(rank)) if axis is None else (shapes.normalize_axis(axis, rank),)


def _reduction(name: str, e: Emitter, node: Node) -> int:
    axes = _axes(e, node)
    to = node.result.dtype if name == "Count" else None
    return reduced(e, name, node.inputs[0], axes, keep=node.boolean("keepdims"), to=to)


def _extreme(kind: Extreme, e: Emitter, node: Node) -> Sequence[int]:
    """The index of an extreme element, and the element itself if there is a second result."""
    node.require_inputs(1)
    x, axis = node.inputs[0], node.integer("axis")
    if axis is None:
        x, axis = e.reshape(x, (-1,)), 0
    at = shapes.normalize_axis(axis, e.rank(x))
    index = e.add(ArgReduce(kind, node.result.dtype), x, e.indices((at,)))
    if len(node.results) == 1:
        return (index,)
    return index, reduced(e, "Max" if kind is Extreme.MAX else "Min", x, (at,))


def _softmax(op: Softmax | LogSoftmax, e: Emitter, node: Node) -> int:
    """Softmax along the operation's axis, or over all elements if it has none."""
    node.require_inputs(1)
    x, axis = node.inputs[0], node.integer("axis")
    rank = e.rank(x)
    if e.dtype(x) is DType.FLOAT64:
        return _spelt_out(e, op, x, _axes(e, node))
    if axis is None:
        if rank == 1 or (rank and all(d == 1 for d in e.type(x).shape[:-1])):
            return e.add(op, x)
        return e.reshape(e.add(op, e.reshape(x, (-1,))), e.shape(x))
    at = shapes.normalize_axis(axis, rank)
    if at == rank - 1:
        return e.add(op, x)
    swapped = list(range(rank))
    swapped[at], swapped[-1] = rank - 1, at
    order = e.indices(swapped)
    return e.add(Transpose(), e.add(op, e.add(Transpose(), x, order)), order)


def _spelt_out(e: Emitter, op: Softmax | LogSoftmax, x: int, axes: Sequence[int]) -> int:
    """A softmax composed of simpler operations, for an element type that only these support in native code."""
    less = e.binary(BinaryKind.SUB, x, reduced(e, "Max", x, axes, keep=True))
    powers = e.unary(UnaryKind.EXP, less)
    total = reduced(e, "Sum", powers, axes, keep=True)
    if isinstance(op, Softmax):
        return e.binary(BinaryKind.DIV, powers, total)
    return e.binary(BinaryKind.SUB, less, e.unary(UnaryKind.LOG, total))


def _log_sum_exp(e: Emitter, node: Node) -> int:
    """`max(x) + log(sum(exp(x - max(x))))`."""
    axes, x, keep = _axes(e, node), node.inputs[0], node.boolean("keepdims")
    largest = reduced(e, "Max", x, axes, keep=True)
    powers = e.unary(UnaryKind.EXP, e.binary(BinaryKind.SUB, x, largest))
    logarithm = e.unary(UnaryKind.LOG, reduced(e, "Sum", powers, axes, keep=keep))
    if not keep:
        largest = e.reshape(largest, e.shape(logarithm))
    return e.binary(BinaryKind.ADD, largest, logarithm)


def _normalize(e: Emitter, node: Node) -> int:
    """`x / sum(x)`."""
    node.require_inputs(1)
    x = node.inputs[0]
    return e.binary(BinaryKind.DIV, x, reduced(e, "Sum", x, range(e.rank(x))))


RULES: Mapping[str, Rule] = {
    **{name: partial(_reduction, name) for name in (*KINDS, "Count")},
    "ArgMax": partial(_extreme, Extreme.MAX),
    "ArgMin": partial(_extreme, Extreme.MIN),
    "SoftMax": partial(_softmax, Softmax()),
    "LogSoftMax": partial(_softmax, LogSoftmax()),
    "LogSumExp": _log_sum_exp,
    "Normalize": _normalize,
}
