"""Post-processing of class scores, and the labels of the best classes."""

from __future__ import annotations

import math

import numpy as np

from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.node import Node
from onert.ir import Array, DType, ModelError
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduction
from onert.ir.ops.reduction.softmax import Softmax

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""In the order of their numbers in TreeEnsemble."""


def transformed(x: Expression, how: str) -> Expression:
    """Scores of each row, transformed according to `post_transform`."""
    if how == "NONE":
        return x
    if how == "LOGISTIC":
        return x.unary(UnaryKind.LOGISTIC)
    if how == "SOFTMAX":
        return x.of(x.draft.add(Softmax(), x.operand))
    if how == "SOFTMAX_ZERO":
        return _softmax_but_zeros(x)
    if how == "PROBIT":
        return _probit(x)
    raise ModelError(f"post_transform is {how!r}, expected one of {', '.join(TRANSFORMS)}")


def _softmax_but_zeros(x: Expression) -> Expression:
    """Softmax where a score of 0 remains 0."""
    largest = x.reduce(Reduction.MAX, [x.rank - 1])
    powers = (x.unary(UnaryKind.ABS) > 1e-7).select((x - largest).unary(UnaryKind.EXP), 0.0)
    total = powers.sum(x.rank - 1)
    return total.equals(0).select(powers.like(0.5), powers / total)


def _probit(x: Expression) -> Expression:
    """The quantile of the normal distribution, by Winitzki's approximation of the inverse error function (2008)."""
    y = x * 2 - 1
    logs = ((1 - y) * (y + 1)).unary(UnaryKind.LOG)
    half = logs * 0.5 + 2 / (math.pi * 0.147)
    inner = (half * half - logs / 0.147).unary(UnaryKind.SQRT) - half
    return y.unary(UnaryKind.SIGN) * inner.unary(UnaryKind.SQRT) * math.sqrt(2)


def labels(node: Node, integers: str, strings: str) -> tuple[Array, DType] | None:
    """The class labels in a node's attributes; None if there are none."""
    texts = node.texts(strings)
    if texts:
        return np.array([t.encode() for t in texts], object), DType.STRING
    numbers = node.integers(integers)
    return None if not numbers else (np.array(numbers, np.int64), DType.INT64)


def best(x: Expression, classes: tuple[Array, DType]) -> Expression:
    """The label with the largest score in each row."""
    count = x.known_size(1, "the scores")
    if len(classes[0]) != count:
        raise ModelError(f"there are {len(classes[0])} labels for {count} scores")
    return labelled(x.of(x.draft.add(ArgReduce(Extreme.MAX), x.operand, x.draft.constant(-1, DType.INT32))), classes)


def labelled(places: Expression, classes: tuple[Array, DType]) -> Expression:
    """The labels at int64 indices; the indices themselves if they equal the labels."""
    if classes[1] is DType.INT64 and np.array_equal(classes[0], np.arange(len(classes[0]))):
        return places
    d = places.draft
    return places.of(d.add(Gather(0), d.constant(classes[0], classes[1]), places.operand))
