"""Reductions along axes, and softmax.

Source: TNN's reduce_op_interpreter.cc and softmax_layer_interpreter.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from onert.frontend.tnn.site import Site, Writer
from onert.ir import Op
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax


def _reduction(
    kind: Reduction, site: Site, *, before: UnaryKind | None = None, after: UnaryKind | None = None
) -> Sequence[int]:
    """A reduction, with optional functions of its operand and its result."""
    g = site.graph
    keep = site.flag("keep dimensions")
    axes = _axes(site)
    x = site.x if before is None else g.add(Unary(before), site.x)
    y = g.add(Reduce(kind, keep), x, g.integers(axes))
    return [y if after is None else g.add(Unary(after), y)]


def _axes(site: Site) -> tuple[int, ...]:
    """The axes, which are all remaining parameters."""
    rank = len(site.shape)
    axes = [site.axis("axis", rank)]
    while site.remaining:
        axes.append(site.axis("axis", rank))
    return tuple(dict.fromkeys(axes))


def _log_sum_exp(site: Site) -> Sequence[int]:
    """Log-sum-exp; the maximum is subtracted before and added again afterwards."""
    g = site.graph
    keep = site.flag("keep dimensions")
    axes = g.integers(_axes(site))
    most = g.add(Reduce(Reduction.MAX, True), site.x, axes)
    powers = g.add(Unary(UnaryKind.EXP), g.binary(BinaryKind.SUB, site.x, most))
    total = g.add(Unary(UnaryKind.LOG), g.add(Reduce(Reduction.SUM, keep), powers, axes))
    again = most if keep else g.add(Reduce(Reduction.MAX), site.x, axes)
    return [g.binary(BinaryKind.ADD, total, again)]


def _probabilities(op: Op, site: Site) -> Sequence[int]:
    """Apply an operation on the last axis to any axis by transposing."""
    g = site.graph
    rank = len(site.shape)
    axis = site.axis("axis", rank, 1)
    if axis == rank - 1:
        return [g.add(op, site.x)]
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return [g.transpose(g.add(op, g.transpose(site.x, order)), order)]


LAYERS: dict[str, Writer] = {
    "ReduceMean": partial(_reduction, Reduction.MEAN),
    "ReduceSum": partial(_reduction, Reduction.SUM),
    "ReduceMax": partial(_reduction, Reduction.MAX),
    "ReduceMin": partial(_reduction, Reduction.MIN),
    "ReduceProd": partial(_reduction, Reduction.PROD),
    "ReduceL1": partial(_reduction, Reduction.SUM, before=UnaryKind.ABS),
    "ReduceL2": partial(_reduction, Reduction.SUM, before=UnaryKind.SQUARE, after=UnaryKind.SQRT),
    "ReduceSumSquare": partial(_reduction, Reduction.SUM, before=UnaryKind.SQUARE),
    "ReduceLogSum": partial(_reduction, Reduction.SUM, after=UnaryKind.LOG),
    "ReduceLogSumExp": _log_sum_exp,
    "LogSoftmax": partial(_probabilities, LogSoftmax()),
    "Softmax": partial(_probabilities, Softmax()),
}
