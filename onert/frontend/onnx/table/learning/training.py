"""Optimiser steps: updates of tensors by their gradients."""

from __future__ import annotations

from collections.abc import Callable

from onert.frontend.onnx.expression import Expression, operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.elementwise.unary import UnaryKind

Step = Callable[[Node, Expression, Expression, list[Expression]], list[Expression]]
"""Returns the new tensor and states, given the rate, the update count, and a tensor with its gradient and states."""


def _each(states: int, step: Step) -> Importer:
    """A step for several tensors; the inputs are all tensors, all gradients, then each kind of state."""

    def build(node: Node) -> tuple[int, ...]:
        _d, kinds = node.draft, states + 2
        rate, update = operand(node, 0).scalar(), operand(node, 1).scalar()
        given = [operand(node, at) for at in range(2, len(node.inputs))]
        count = len(given) // kinds
        if not count or len(given) % kinds:
            raise ModelError(f"has {len(given)} tensors, expected a multiple of {kinds}")
        rows = [step(node, rate, update, given[at::count]) for at in range(count)]
        return tuple(row[kind].operand for kind in range(states + 1) for row in rows)

    return build


def _gradient(node: Node, x: Expression, g: Expression) -> Expression:
    """The gradient plus that of the L2 penalty."""
    return x * node.number("norm_coefficient") + g


def _adagrad(node: Node, rate: Expression, update: Expression, tensors: list[Expression]) -> list[Expression]:
    x, g, squares = tensors
    g = _gradient(node, x, g)
    slowed = rate / (update.cast(rate.dtype) * node.number("decay_factor") + 1)
    squares = squares + g * g
    return [x - slowed.cast(x.dtype) * g / (squares.unary(UnaryKind.SQRT) + node.number("epsilon", 1e-6)), squares]


def _adam(node: Node, rate: Expression, update: Expression, tensors: list[Expression]) -> list[Expression]:
    x, g, mean, squares = tensors
    alpha, beta = node.number("alpha", 0.9), node.number("beta", 0.999)
    g = _gradient(node, x, g)
    mean = mean * alpha + g * (1 - alpha)
    squares = squares * beta + g * g * (1 - beta)
    times = update.cast(DType.FLOAT64)
    shares = [1 - times.like(b).binary(BinaryKind.POW, times) for b in (alpha, beta)]
    corrected = rate.cast(DType.FLOAT64) * shares[1].unary(UnaryKind.SQRT) / shares[0]
    used = (update > 0).select(corrected, rate.cast(DType.FLOAT64)).cast(x.dtype)
    moved = x - used * (mean / (squares.unary(UnaryKind.SQRT) + node.number("epsilon", 1e-6)))
    return [moved * (1 - node.number("norm_coefficient_post")), mean, squares]


def _momentum(node: Node, rate: Expression, update: Expression, tensors: list[Expression]) -> list[Expression]:
    x, g, v = tensors
    alpha, mode = node.number("alpha"), node.choice("mode", ("standard", "nesterov"))
    g = _gradient(node, x, g)
    share = (update > 0).select(g.like(node.number("beta")), 1.0)
    v = v * alpha + share * g
    way = g + v * alpha if mode == "nesterov" else v
    return [x - rate.cast(x.dtype) * way, v]


TABLE: dict[str, Importer] = {
    "Adagrad": _each(1, _adagrad),
    "Adam": _each(2, _adam),
    "Momentum": _each(1, _momentum),
}
