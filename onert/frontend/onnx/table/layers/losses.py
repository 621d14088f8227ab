"""Losses: negative log likelihoods of target classes."""

from __future__ import annotations

from onert.frontend.onnx.building import axis_last
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.element_indices import GatherElements
from onert.ir.ops.reduction.reduce import Reduction
from onert.ir.ops.reduction.softmax import LogSoftmax


def _loss(node: Node, x: Expression, target: Expression, weight: Expression | None) -> Expression:
    """`-weight[t] * x[n, t, ...]` for each target t: summed, averaged with weights, or unreduced.

    Targets equal to `ignore_index` do not count. `x` is [batch, classes, ...], `target` [batch, ...].
    """
    reduction = node.choice("reduction", ("none", "mean", "sum"), "mean")
    if x.rank < 2 or target.rank != x.rank - 1:
        raise ModelError(f"has input {x.type} and target {target.type}, expected one dimension fewer")
    d = x.draft
    ignored = None
    place = target.cast(DType.INT64)
    if node.has_attribute("ignore_index"):
        ignored = place.equals(node.integer("ignore_index"))
        place = ignored.select(place.like(0), place)
    found = -x.of(d.add(GatherElements(1), x.operand, place.unsqueeze(1).operand)).squeeze(1)
    share = None if weight is None else weight.cast(x.dtype).take(place, 0)
    if ignored is not None:
        share = ignored.select(x.like(0), x.like(1)) if share is None else ignored.select(x.like(0), share)
        found = ignored.select(x.like(0), found)  # the log of an ignored class may be infinite
    loss = found if share is None else found * share
    axes = range(loss.rank)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum(*axes, keep=False)
    if share is None:
        return loss.reduce(Reduction.MEAN, axes, keep=False)
    return loss.sum(*axes, keep=False) / share.sum(*axes, keep=False)


def _weight(node: Node) -> Expression | None:
    return operand(node, 2) if node.has(2) else None


def _log_likelihood(node: Node) -> int:
    """Source: ONNX NegativeLogLikelihoodLoss."""
    x, target = (operand(node, at) for at in (0, 1))
    return _loss(node, x, target, _weight(node)).operand


def _cross_entropy(node: Node) -> tuple[int, int]:
    """The loss, and the log softmax. Source: ONNX SoftmaxCrossEntropyLoss."""
    d = node.draft
    x, target = (operand(node, at) for at in (0, 1))
    if x.rank < 2:
        raise ModelError(f"has input {x.type}, expected at least 2 dimensions")
    order = axis_last(x.rank, 1)
    shares = x.of(d.add(LogSoftmax(), x.transpose(*order).operand)).transpose(*order)
    return _loss(node, shares, target, _weight(node)).operand, shares.operand


TABLE: dict[str, Importer] = {
    "NegativeLogLikelihoodLoss": _log_likelihood,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
}
