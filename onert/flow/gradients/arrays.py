"""Derivatives of matrix products and of data movement."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from onert.flow.builder.parts import padded
from onert.flow.graph import Operation, Variable
from onert.frontend.flow.attributes import boolean, integers
from onert.frontend.flow.elements import DTYPES
from onert.ir import ModelError

from .accumulation import GradientRule, Gradients, Term


def product(g: Gradients, x: Variable, y: Variable, *, transpose_x: bool, transpose_y: bool) -> Variable:
    """The product of matrices, each optionally transposed."""
    x, y = g.value(x), g.value(y)
    rows, columns = x.shape[-1 if transpose_x else -2], y.shape[-2 if transpose_y else -1]
    lead = [max(a, b) for a, b in zip(x.shape[:-2], y.shape[:-2], strict=True)]
    found = g.made("MatMul", [x, y], None, [*lead, rows, columns])
    assert found.producer is not None
    for name, wanted in (("transpose_a", transpose_x), ("transpose_b", transpose_y)):
        if wanted:
            found.producer.add_attr(name, True)
    return found


def _matmul(g: Gradients, operation: Operation) -> list[Term]:
    """For `C = A · B`: `dA = dC · Bᵀ` and `dB = Aᵀ · dC`, with each transposed as in the operation."""
    (a, b), (c,) = operation.inputs, operation.outputs
    ta, tb, tc = (boolean(operation.attrs.get(f"transpose_{which}", "0")) for which in "abc")

    def first() -> Variable:
        d = g.adjoint(c)
        if ta:
            return product(g, b, d, transpose_x=tb, transpose_y=not tc)
        return product(g, d, b, transpose_x=tc, transpose_y=not tb)

    def second() -> Variable:
        d = g.adjoint(c)
        if tb:
            return product(g, d, a, transpose_x=not tc, transpose_y=ta)
        return product(g, a, d, transpose_x=not ta, transpose_y=tc)

    return [first, second]


def _linear(g: Gradients, operation: Operation) -> list[Term]:
    """For `y = x · wᵀ + b`."""
    (x, w, *_), (y,) = operation.inputs, operation.outputs
    return [
        lambda: product(g, g.adjoint(y), w, transpose_x=False, transpose_y=False),
        lambda: product(g, g.adjoint(y), x, transpose_x=True, transpose_y=False),
        lambda: g.adjoint(y),
    ][: len(operation.inputs)]


def _transpose(g: Gradients, operation: Operation) -> list[Term]:
    (x,), (y,) = operation.inputs, operation.outputs
    text = operation.attrs.get("perm")
    order = list(integers(text)) if text is not None else list(reversed(range(x.rank())))
    return [lambda: g.transpose(g.adjoint(y), [order.index(axis) for axis in range(len(order))])]


def _in_its_shape(g: Gradients, operation: Operation) -> list[Term | None]:
    """For operations that only change the shape."""
    x, y = operation.inputs[0], operation.outputs[0]
    rest: list[Term | None] = [None] * (len(operation.inputs) - 1)
    return [lambda: g.reshape(g.adjoint(y), x.shape), *rest]


def _broadcast(g: Gradients, operation: Operation) -> list[Term | None]:
    rest: list[Term | None] = [None] * (len(operation.inputs) - 1)
    return [lambda: g.adjoint(operation.outputs[0]), *rest]


def _resize(g: Gradients, operation: Operation) -> list[Term]:
    (x,), (y,) = operation.inputs, operation.outputs
    return [lambda: g.resize(g.adjoint(y), x.shape)]


def _slice(g: Gradients, operation: Operation) -> list[Term | None]:
    """The adjoint of the part, padded with zeros."""
    (x, begin, _), (y,) = operation.inputs, operation.outputs

    def term() -> Variable:
        found = g.adjoint(y)
        for axis, start in enumerate(constant_of(begin)):
            found = padded(g, found, axis, start, x.shape[axis] - start - found.shape[axis])
        return found

    return [term, None, None]


def constant_of(variable: Variable) -> list[int]:
    """The elements of an integer constant. Raises ModelError for any other variable."""
    if variable.data is None:
        raise ModelError(f"'{variable.name}' is computed, expected a constant")
    raw, dtype = variable.data, DTYPES[variable.type].numpy
    elements = np.frombuffer(raw, dtype) if isinstance(raw, bytes | memoryview) else np.asarray(raw)
    return [int(i) for i in elements.reshape(-1)]


def _concat(g: Gradients, operation: Operation) -> list[Term | None]:
    *parts, at = operation.inputs
    (y,) = operation.outputs
    axis = constant_of(at)[0] % y.rank()

    def part(number: int) -> Callable[[], Variable]:
        begin = [0] * y.rank()
        begin[axis] = sum(p.shape[axis] for p in parts[:number])
        return lambda: g.slice(g.adjoint(y), begin, parts[number].shape)

    return [*(part(number) for number in range(len(parts))), None]


def _split(g: Gradients, operation: Operation) -> list[Term | None]:
    x, *more = operation.inputs
    axis = constant_of(more[1])[0] % x.rank() if len(more) == 2 else 0
    return [
        lambda: g.concat([g.adjoint(y) for y in operation.outputs], axis=axis),
        *([None] * len(more)),
    ]


RULES: Mapping[str, GradientRule] = {
    "MatMul": _matmul,
    "Linear": _linear,
    "Transpose": _transpose,
    "Reshape": _in_its_shape,
    "Squeeze": _in_its_shape,
    "ExpandDims": _in_its_shape,
    "Broadcast": _broadcast,
    "Resize": _resize,
    "Slice": _slice,
    "Concat": _concat,
    "Split": _split,
}
