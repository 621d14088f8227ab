"""Support vector machines: regression, and classification by votes for pairs of classes."""

from __future__ import annotations

from itertools import accumulate, combinations

import numpy as np

from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.node import Importer, Node
from onert.ir import Array, DType, ModelError
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.reduction.coupling import CoupledProbabilities

from .linear import rows
from .scores import best, labels, transformed


def _regressor(node: Node) -> int:
    """The sum of kernel values of a row with each support vector, times their coefficients, plus rho."""
    x = rows(node)
    coefficients, count = node.numbers("coefficients") or (), node.integer("n_supports")
    width = x.known_size(1, "the input")
    kernel, kind = x, "LINEAR"
    if count > 0:
        kind = node.text("kernel_type", "LINEAR")
        vectors = np.array(node.numbers("support_vectors") or (), np.float32)
        if len(vectors) != count * width or len(coefficients) != count:
            raise ModelError(
                f"there are {len(vectors)} numbers and {len(coefficients)} coefficients for {count} vectors"
            )
        kernel = _kernel(node, x, vectors.reshape(count, width), kind)
    elif len(coefficients) != width:
        raise ModelError(f"there are {len(coefficients)} coefficients for {width} features")
    weights = x.of(x.draft.constant(np.array(coefficients, np.float32).reshape(-1, 1)))
    out = kernel @ weights + (node.numbers("rho") or (0.0,))[0]
    if node.flag("one_class"):
        out = (out > 0).select(out.like(1), -1)
    return transformed(out, node.text("post_transform", "NONE")).operand


def _kernel(node: Node, x: Expression, vectors: Array, kind: str) -> Expression:
    gamma, offset, degree = (*(node.numbers("kernel_params") or ()), 0.0, 0.0, 0.0)[:3]
    d = x.draft
    products = x @ x.of(d.constant(vectors.T.copy()))
    if kind == "LINEAR":
        return products
    if kind == "RBF":
        apart = (x.unsqueeze(1) - x.of(d.constant(vectors[None]))).unary(UnaryKind.SQUARE).sum(2, keep=False)
        return (apart * -gamma).unary(UnaryKind.EXP)
    line = products * gamma + offset
    if kind == "POLY":
        return line.binary(BinaryKind.POW, float(int(degree)))
    if kind == "SIGMOID":
        return line.unary(UnaryKind.TANH)
    raise ModelError(f"kernel_type is {kind!r}, expected LINEAR, POLY, RBF or SIGMOID")


_MOST_CLASSES = 1 << 10


def _classifier(node: Node) -> tuple[int, int]:
    """The class with the most votes, and the scores of pairs of classes or the class probabilities.

    Source: LIBSVM. The sum of kernels for classes i and j uses their own support vectors: those of i with row j - 1 of
    the coefficients, those of j with row i. A sum above 0 is a vote for i.
    """
    x = rows(node)
    classes = labels(node, "classlabels_ints", "classlabels_strings")
    if classes is None or not 2 <= len(classes[0]) <= _MOST_CLASSES:
        raise ModelError(f"has {0 if classes is None else len(classes[0])} labels, expected 2 to {_MOST_CLASSES}")
    each, count = node.integers("vectors_per_class") or (), len(classes[0])
    if not each:
        return _linear_classifier(node, x, classes)
    scores = _pairs(node, x, each, count)
    pairs, d = list(combinations(range(count), 2)), x.draft
    won: Array = np.zeros((len(pairs), count), np.float32)
    lost: Array = np.zeros((len(pairs), count), np.float32)
    for at, (one, other) in enumerate(pairs):
        won[at, one] = lost[at, other] = 1
    for_first = (scores > 0).cast(DType.FLOAT32)
    votes = for_first @ x.of(d.constant(won)) + (1 - for_first) @ x.of(d.constant(lost))
    chosen = best(votes, classes)
    if node.numbers("prob_a"):
        scores = _probabilities(node, scores, pairs, count)
    elif count == 2:
        scores = (-scores).concat([scores], 1)
    return chosen.operand, transformed(scores, node.text("post_transform", "NONE")).operand


def _linear_classifier(node: Node, x: Expression, classes: tuple[Array, DType]) -> tuple[int, int]:
    """Without support vectors, the coefficients are those of a linear model."""
    coefficients, width = np.array(node.numbers("coefficients") or (), np.float32), x.known_size(1, "the input")
    if coefficients.size != width * len(classes[0]):
        raise ModelError(
            f"there are {coefficients.size} coefficients for {len(classes[0])} classes of {width} features"
        )
    kernel = _kernel(node, x, coefficients.reshape(-1, width), node.text("kernel_type", "LINEAR"))
    scores = kernel + (node.numbers("rho") or (0.0,))[0]
    return best(scores, classes).operand, transformed(scores, node.text("post_transform", "NONE")).operand


def _pairs(node: Node, x: Expression, each: tuple[int, ...], count: int) -> Expression:
    """The sum of kernels for each pair of classes, `[rows, pairs]`."""
    width, total = x.known_size(1, "the input"), sum(each)
    vectors = np.array(node.numbers("support_vectors") or (), np.float32)
    coefficients = np.array(node.numbers("coefficients") or (), np.float32)
    rho = node.numbers("rho") or ()
    pairs = list(combinations(range(count), 2))
    fits = len(each) == count and min(each) >= 0 and vectors.size == total * width
    if not fits or coefficients.size != total * (count - 1) or len(rho) != len(pairs):
        raise ModelError(
            f"there are {vectors.size} numbers, {coefficients.size} coefficients and {len(rho)} offsets for "
            f"{list(each)} vectors of {count} classes"
        )
    ends = list(accumulate(each, initial=0))
    x.draft.memory.spend(4 * total * len(pairs), "the weights of support vectors")
    weights: Array = np.zeros((total, len(pairs)), np.float32)
    table = coefficients.reshape(count - 1, total)
    for at, (one, other) in enumerate(pairs):
        for own, row in ((one, other - 1), (other, one)):
            part = slice(ends[own], ends[own + 1])
            weights[part, at] = table[row, part]
    kernel = _kernel(node, x, vectors.reshape(total, width), node.text("kernel_type", "LINEAR"))
    d = x.draft
    return kernel @ x.of(d.constant(weights)) + x.of(d.constant(np.array(rho, np.float32)))


def _probabilities(node: Node, scores: Expression, pairs: list[tuple[int, int]], count: int) -> Expression:
    """Class probabilities from pairwise probabilities, which are logistic functions of the scores."""
    d, steep, shift = scores.draft, node.numbers("prob_a") or (), node.numbers("prob_b") or ()
    if len(steep) != len(pairs) or len(shift) != len(pairs):
        raise ModelError(f"there are {len(steep)} and {len(shift)} numbers for the probabilities of {len(pairs)} pairs")
    lines = scores * scores.of(d.constant(-np.array(steep, np.float32))) - scores.of(
        d.constant(np.array(shift, np.float32))
    )
    first = lines.unary(UnaryKind.LOGISTIC).at_least(1e-7).at_most(1 - 1e-7)
    both = first.concat([1 - first, first.take([0], 1)], 1)
    places: Array = np.full((count, count), 2 * len(pairs), np.int64)
    for at, (one, other) in enumerate(pairs):
        places[one, other], places[other, one] = at, len(pairs) + at
    matrix = scores.of(d.add(Gather(1), both.operand, d.constant(places)))
    return scores.of(d.add(CoupledProbabilities(), matrix.operand))


TABLE: dict[str, Importer] = {"SVMClassifier": _classifier, "SVMRegressor": _regressor}
