"""Derivatives of reductions and operations built on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from onert.flow.graph import Operation, Variable
from onert.frontend.flow.attributes import integer

from .accumulation import GradientRule, Gradients, Term


def _axis(operation: Operation) -> int | None:
    """The axis along which an operation reduces, counted from the front; None for all."""
    text = operation.attrs.get("axis")
    return None if text is None else integer(text) % operation.inputs[0].rank()


def _kept(g: Gradients, operation: Operation, reduced: Variable) -> Variable:
    """A result, or its adjoint, with a dimension of size 1 for each reduced one."""
    x, axis = operation.inputs[0], _axis(operation)
    shape = [1 if axis in (None, i) else size for i, size in enumerate(x.shape)]
    return reduced if list(reduced.shape) == shape or axis is None else g.reshape(reduced, shape)


Reduced = Callable[[Gradients, Variable, Variable, Variable], Variable]
"""Computes the adjoint of the operand from the operand, and the result and its adjoint, both with kept dimensions."""


def _reduction(derivative: Reduced, g: Gradients, operation: Operation, result: int = 0) -> list[Term | None]:
    x, y = operation.inputs[0], operation.outputs[result]

    def term() -> Variable:
        return derivative(g, x, _kept(g, operation, y), _kept(g, operation, g.adjoint(y)))

    return [term]


def _sum(g: Gradients, operation: Operation) -> list[Term]:
    x, y = operation.inputs[0], operation.outputs[0]
    return [lambda: g.broadcast(_kept(g, operation, g.adjoint(y)), x.shape)]


def _extreme(g: Gradients, operation: Operation) -> list[Term | None]:
    """For the element in the second result; the index has no derivative."""
    if len(operation.outputs) < 2 or not g.has_adjoint(operation.outputs[1]):
        return [None]
    return _reduction(_of_largest, g, operation, 1)


def _of_largest(g: Gradients, x: Variable, y: Variable, d: Variable) -> Variable:
    return g.select(g.equal(x, y), d)


OfResult = Callable[[Gradients, Variable, Variable, Callable[[Variable], Variable]], Variable]
"""Computes the adjoint of an operand of the result's shape from the result, its adjoint and a sum along the axis."""


def _along(derivative: OfResult, g: Gradients, operation: Operation) -> list[Term]:
    (y,) = operation.outputs
    axis = _axis(operation)

    def total(variable: Variable) -> Variable:
        return g.sum(variable) if axis is None else g.sum(variable, axis, keepdims=True)

    return [lambda: derivative(g, y, g.adjoint(y), total)]


def _normalize(g: Gradients, operation: Operation) -> list[Term]:
    """For `x / sum(x)`."""
    (x,), (y,) = operation.inputs, operation.outputs

    def term() -> Variable:
        d = g.adjoint(y)
        return g.div(g.sub(d, g.sum(g.mul(d, y))), g.sum(x))

    return [term]


RULES: Mapping[str, GradientRule] = {
    "Sum": _sum,
    "Product": partial(_reduction, lambda g, x, y, d: g.div(g.mul(d, y), x)),
    "Max": partial(_reduction, _of_largest),
    "Min": partial(_reduction, _of_largest),
    "ArgMax": _extreme,
    "ArgMin": _extreme,
    "LogSumExp": partial(_reduction, lambda g, x, y, d: g.mul(d, g.exp(g.sub(x, y)))),
    "SoftMax": partial(_along, lambda g, y, d, total: g.mul(y, g.sub(d, total(g.mul(d, y))))),
    "LogSoftMax": partial(_along, lambda g, y, d, total: g.sub(d, g.mul(g.exp(y), total(d)))),
    "Normalize": _normalize,
}
