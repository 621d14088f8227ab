"""Reductions along axes, cumulative operations, and top-k."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from onert.frontend.onnx.building import (
    axes_of,
    axis_last,
    binary,
    cast,
    dimension,
    ints,
    like,
    require_rank,
    reshape,
    transpose,
)
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType
from onert.ir.ops.data_movement.fill import TopK
from onert.ir.ops.data_movement.layout import Reverse
from onert.ir.ops.data_movement.reshape import ExpandDims, Squeeze
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.scan import CumProd, CumSum
from onert.ir.shape import normalize_axis

from .shapes import without_axes

_INPUT_SINCE = {"ReduceSum": 13}
"""The opset from which the axes are an input; 18 for all others."""


def _axes(node: Node) -> int | None:
    """The axes to reduce as an operand, by default all; None if nothing is to be reduced."""
    d, rank = node.draft, require_rank(node.draft, node.input(0))
    axes = node.integers("axes")
    if node.version >= _INPUT_SINCE.get(node.op_type, 18) and node.has(1):
        found = node.value(1)
        if found is None and node.type(1).shape != (0,):
            return node.input(1)
        axes = () if found is None else tuple(int(a) for a in found.reshape(-1))
    if axes:
        return ints(d, axes_of(axes, rank), DType.INT32)
    return None if node.flag("noop_with_empty_axes") or not rank else ints(d, range(rank), DType.INT32)


def _reduced(d: Draft, x: int, kind: Reduction, axes: int, *, keep: bool) -> int:
    if keep or d.value(axes) is not None or d.type(axes).rank != 1 or d.type(axes).shape[0] is None:
        return d.add(Reduce(kind, keep_dims=keep), x, axes)
    # the axes are known only at run time, but their number, and so the result's rank, is known
    return without_axes(d, d.add(Reduce(kind, keep_dims=True), x, axes), axes)


def _reduction(
    kind: Reduction,
    node: Node,
    *,
    before: Callable[[Draft, int], int] | None = None,
    after: Callable[[Draft, int], int] | None = None,
) -> int:
    d, x = node.draft, node.input(0)
    axes = _axes(node)
    x = x if before is None else before(d, x)
    if axes is not None:
        x = _reduced(d, x, kind, axes, keep=node.flag("keepdims", default=True))
    return x if after is None else after(d, x)


def _unary(kind: UnaryKind) -> Callable[[Draft, int], int]:
    return lambda d, x: d.add(Unary(kind), x)


def _through_floats(kind: UnaryKind) -> Callable[[Draft, int], int]:
    """A function computed in floats; for integers the result is truncated."""

    def made(d: Draft, x: int) -> int:
        dtype = d.type(x).dtype
        if dtype.is_float:
            return d.add(Unary(kind), x)
        return cast(d, d.add(Unary(kind), cast(d, x, DType.FLOAT64)), dtype)

    return made


def _log_sum_exp(node: Node) -> int:
    """The maximum is subtracted first to avoid overflow, unless it is infinite."""
    d, x = node.draft, node.input(0)
    axes, keep, dtype = _axes(node), node.flag("keepdims", default=True), d.type(x).dtype
    if axes is None:
        return x
    wide = x if dtype.is_float else cast(d, x, DType.FLOAT64)
    largest = _reduced(d, wide, Reduction.MAX, axes, keep=True)
    size = d.add(Unary(UnaryKind.ABS), largest)
    finite = d.add(Comparison(ComparisonKind.LESS), size, like(d, size, float("inf")))
    largest = d.add(Select(), finite, largest, like(d, size, 0))
    powers = d.add(Unary(UnaryKind.EXP), binary(d, BinaryKind.SUB, wide, largest))
    logs = d.add(Unary(UnaryKind.LOG), _reduced(d, powers, Reduction.SUM, axes, keep=True))
    out = binary(d, BinaryKind.ADD, logs, largest)
    if not keep:
        found = d.value(axes)
        out = without_axes(d, out, axes) if found is None else d.add(Squeeze(tuple(int(a) for a in found)), out)
    return cast(d, out, dtype)


def _arg(kind: Extreme, node: Node) -> int:
    """The first of equal elements, or the last with `select_last_index`."""
    d, x = node.draft, node.input(0)
    axis = normalize_axis(node.integer("axis"), require_rank(d, x, 1))
    last = node.flag("select_last_index")
    shown = d.add(Reverse(), x, ints(d, [axis], DType.INT32)) if last else x
    found = d.add(ArgReduce(kind), shown, d.constant(axis, DType.INT32))
    if last:
        highest = binary(d, BinaryKind.SUB, dimension(d, x, axis), ints(d, [1]))
        found = binary(d, BinaryKind.SUB, reshape(d, highest, ()), found)
    if node.flag("keepdims", default=True):
        found = d.add(ExpandDims(), found, d.constant(axis, DType.INT32))
    return found


def _product(node: Node) -> int:
    """A cumulative product."""
    op = CumProd(exclusive=node.flag("exclusive"), reverse=node.flag("reverse"))
    return node.draft.add(op, node.input(0), node.input(1))


def _cumulative(node: Node) -> int:
    op = CumSum(exclusive=node.flag("exclusive"), reverse=node.flag("reverse"))
    d, x, axis = node.draft, node.input(0), node.input(1)
    dtype = d.type(x).dtype
    if dtype.is_float or dtype in (DType.INT32, DType.INT64):
        return d.add(op, x, axis)
    return cast(d, d.add(op, cast(d, x, DType.INT64), axis), dtype)


def _top(node: Node) -> tuple[int, ...]:
    """The largest (or smallest) elements along an axis and their indices; always sorted."""
    d, x = node.draft, node.input(0)
    rank = require_rank(d, x, 1)
    axis = normalize_axis(node.integer("axis", -1), rank)
    count = node.input(1) if node.version >= 10 else d.constant(node.integer("k"), DType.INT64)
    order = axis_last(rank, axis)
    turned = transpose(d, x, order)
    op = TopK(DType.INT64, least=not node.flag("largest", default=True))
    values, places = d.add_many(op, turned, reshape(d, count, ()))
    return transpose(d, values, order), transpose(d, places, order)


_SQUARE, _ABS = _unary(UnaryKind.SQUARE), _unary(UnaryKind.ABS)
TABLE: dict[str, Importer] = {
    "ArgMax": partial(_arg, Extreme.MAX),
    "ArgMin": partial(_arg, Extreme.MIN),
    "CumProd": _product,
    "CumSum": _cumulative,
    "ReduceL1": partial(_reduction, Reduction.SUM, before=_ABS),
    "ReduceL2": partial(_reduction, Reduction.SUM, before=_SQUARE, after=_through_floats(UnaryKind.SQRT)),
    "ReduceLogSum": partial(_reduction, Reduction.SUM, after=_through_floats(UnaryKind.LOG)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": partial(_reduction, Reduction.MAX),
    "ReduceMean": partial(_reduction, Reduction.MEAN),
    "ReduceMin": partial(_reduction, Reduction.MIN),
    "ReduceProd": partial(_reduction, Reduction.PROD),
    "ReduceSum": partial(_reduction, Reduction.SUM),
    "ReduceSumSquare": partial(_reduction, Reduction.SUM, before=_SQUARE),
    "TopK": _top,
}
