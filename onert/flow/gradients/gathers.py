"""Derivatives of lookups by index."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onert.flow.graph import Operation, Variable
from onert.frontend.flow.attributes import boolean, integer
from onert.frontend.flow.elements import DTYPES

from .accumulation import GradientRule, Gradients, Term


def _gather(g: Gradients, operation: Operation) -> list[Term | None]:
    """Rows of the adjoint are added to the rows that were read; for negative indices, to the `oov` row."""
    (params, indices, *oov), (y,) = operation.inputs, operation.outputs

    def numbers() -> Variable:
        return g.reshape(indices, [*indices.shape, 1]) if indices.rank() < 2 else g.value(indices)

    def rows() -> Variable:
        return g.scatter(numbers(), _rows(g, g.adjoint(y), numbers(), params), params.shape)

    def outside() -> Variable:
        missing = g.less(g.min(numbers(), numbers().rank() - 1), 0)
        row_dims = y.rank() - missing.rank()
        return g.select(g.reshape(missing, [*missing.shape, *(1,) * row_dims]), g.adjoint(y))

    return [rows, None, outside][: 2 + len(oov)]


def _rows(g: Gradients, d: Variable, numbers: Variable, params: Variable) -> Variable:
    """The adjoint with one row per index."""
    shape = [*numbers.shape[:-1], *params.shape[numbers.shape[-1] :]]
    return d if list(d.shape) == shape else g.reshape(d, shape)


def _batch(operation: Operation) -> int:
    return integer(operation.attrs.get("batch", "0"))


def _placed(g: Gradients, operation: Operation, value: Variable) -> Variable:
    """Add one row to all indices of a batch."""
    params, indices = operation.inputs
    return g.scatter(indices, value, params.shape, _batch(operation) or None, pooled=True)


def _gather_avg(g: Gradients, operation: Operation) -> list[Term | None]:
    (_, indices), (y,) = operation.inputs, operation.outputs

    def term() -> Variable:
        there = g.greater_equal(g.min(indices, indices.rank() - 1), 0)
        count = g.cast(there, y.type.removeprefix("&"))
        batch = _batch(operation)
        for _ in range(batch, count.rank()):
            count = g.sum(count, batch)
        count = g.maximum(count, 1.0)
        row_dims = y.rank() - count.rank()
        return _placed(g, operation, g.div(g.adjoint(y), g.reshape(count, [*count.shape, *(1,) * row_dims])))

    return [term, None]


def _gather_max(g: Gradients, operation: Operation) -> list[Term | None]:
    """Each element of the adjoint is added to the rows that have the maximum there."""
    (params, indices), (y,) = operation.inputs, operation.outputs

    def term() -> Variable:
        table, batch, depth = g.value(params), _batch(operation), indices.shape[-1]
        shape = [*indices.shape[:-1], *params.shape[depth:]]
        nothing = g.const(np.zeros(params.shape[depth:], DTYPES[table.type].numpy))
        numbers = g.value(indices)
        if indices.rank() == 1:
            numbers = g.reshape(numbers, [1, depth])
        rows = g.reshape(g.gather(table, numbers, nothing), shape)
        wide = [*shape[:batch], *(1,) * (indices.rank() - 1 - batch), *shape[indices.rank() - 1 :]]
        largest, d = (g.reshape(v, wide) for v in (y, g.adjoint(y)))
        return g.scatter(indices, g.select(g.equal(rows, largest), d), params.shape)

    return [term, None]


def _scatter(g: Gradients, operation: Operation) -> list[Term | None]:
    (indices, value), (y,) = operation.inputs, operation.outputs
    pooled = boolean(operation.attrs.get("pooled", "0"))

    def term() -> Variable:
        d = g.adjoint(y)
        if pooled:
            return g.gather_sum(d, indices, _batch(operation) or None)
        numbers = g.reshape(indices, [1, max(indices.elements(), 1)]) if indices.rank() < 2 else g.value(indices)
        nothing = g.const(np.zeros(d.shape[numbers.shape[-1] :], DTYPES[d.type].numpy))
        return g.reshape(g.gather(d, numbers, nothing), value.shape)

    return [None, term]


def _one_hot(g: Gradients, operation: Operation) -> list[Term | None]:
    """For the value: the adjoint at the index, later summed to the value's shape."""
    (index, *value), (y,) = operation.inputs, operation.outputs
    if not value:
        return [None]

    def term() -> Variable:
        depth = y.shape[index.rank()]
        marks = g.cast(g.onehot(index, depth), y.type.removeprefix("&"))
        return g.mul(g.adjoint(y), g.reshape(marks, [*marks.shape, *(1,) * value[0].rank()]))

    return [None, term]


RULES: Mapping[str, GradientRule] = {
    "Gather": _gather,
    "GatherSum": lambda g, operation: [lambda: _placed(g, operation, g.adjoint(operation.outputs[0])), None],
    "GatherAvg": _gather_avg,
    "GatherMax": _gather_max,
    "Scatter": _scatter,
    "OneHot": _one_hot,
}
