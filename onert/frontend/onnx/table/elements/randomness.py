"""Random numbers: with a seed the same for every new execution, without one different each time."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from onert.frontend.onnx.building import convert, ints, shape_of
from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.data_movement.random_numbers import Distribution, Multinomial, Random


def _seeds(node: Node) -> tuple[int, int]:
    """A seed's bits; never (0, 0), which means no seed."""
    if not node.has_attribute("seed"):
        return 0, 0
    if node.op_type == "Dropout":
        return node.integer("seed"), 1
    return int(np.float32(node.number("seed")).view(np.uint32)), 1


def _random(node: Node, distribution: Distribution, shape: int) -> Expression:
    seed, seed2 = _seeds(node)
    op = Random(distribution, seed, seed2, node.draft.size)
    return Expression(node.draft, node.draft.add(op, shape))


def _distribute(node: Node, distribution: Distribution, shape: int, to: DType) -> int:
    """Uniform numbers from `low` to `high`, or normal ones with `mean` and the standard deviation `scale`."""
    found = _random(node, distribution, shape)
    if distribution is Distribution.UNIFORM:
        low, high = node.number("low", 0.0), node.number("high", 1.0)
        found = found * (high - low) + low
    else:
        found = found * node.number("scale", 1.0) + node.number("mean", 0.0)
    return convert(node.draft, found.operand, to)


def _of_shape(distribution: Distribution, node: Node) -> int:
    shape = node.integers("shape")
    if shape is None:
        raise ModelError("attribute shape is absent")
    return _distribute(node, distribution, ints(node.draft, shape), node.element_type("dtype", DType.FLOAT32))


def _like(distribution: Distribution, node: Node) -> int:
    d, x = node.draft, node.input(0)
    to = node.element_type("dtype", d.type(x).dtype)
    return _distribute(node, distribution, shape_of(d, x), to)


def _bernoulli(node: Node) -> int:
    """1 with the probability given by each element, otherwise 0."""
    d, x = node.draft, operand(node, 0)
    drawn = _random(node, Distribution.UNIFORM, shape_of(d, x.operand))
    return convert(d, (drawn < x.cast(DType.FLOAT32)).operand, node.element_type("dtype", x.dtype))


def _multinomial(node: Node) -> int:
    """Draw classes by their log probabilities."""
    seed, seed2 = _seeds(node)
    to = node.element_type("dtype", DType.INT32)
    d, x = node.draft, operand(node, 0).cast(DType.FLOAT32)
    op = Multinomial(to, seed, seed2, d.size)
    return d.add(op, x.operand, d.constant(node.integer("sample_size", 1), DType.INT32))


def dropout(node: Node, x: Expression, ratio: Expression, training: Expression) -> tuple[Expression, Expression]:
    """Dropout: in training, zero elements with probability `ratio` and scale up the others. Also returns the mask."""
    drawn = _random(node, Distribution.UNIFORM, shape_of(x.draft, x.operand))
    share = ratio.cast(DType.FLOAT32).scalar()
    kept = drawn >= share
    stays = kept | ~training.scalar()
    grown = x * (1 / (1 - share).at_least(math.ulp(1.0))).cast(x.dtype)
    used = training.scalar().select(kept.select(grown, 0.0), x)
    return used, stays


TABLE: dict[str, Importer] = {
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
    "RandomNormal": partial(_of_shape, Distribution.NORMAL),
    "RandomNormalLike": partial(_like, Distribution.NORMAL),
    "RandomUniform": partial(_of_shape, Distribution.UNIFORM),
    "RandomUniformLike": partial(_like, Distribution.UNIFORM),
}
