"""Operations that are expanded into simpler ones."""

from __future__ import annotations

from onert.flow.builder import Builder
from onert.flow.graph import Graph, Operation

from .rewriting import detach


def expand_softmax(flow: Graph) -> bool:
    """Expand the softmax over all elements.

    y = SoftMax(x)  -->  y = Mul(e, Reciprocal(Sum(e))) with e = Exp(Sub(x, Max(x)))
    """
    changed = False
    for operation in list(flow.ops.values()):
        whole = len(operation.inputs) == len(operation.outputs) == 1 and operation.func is not None
        if operation.type == "SoftMax" and "axis" not in operation.attrs and whole:
            _expand(flow, operation)
            changed = True
    return changed


def _expand(flow: Graph, operation: Operation) -> None:
    f = Builder(flow, operation.func)
    (x,), (y,) = operation.inputs, operation.outputs
    exponential = f.exp(f.sub(x, f.max(x)))
    reciprocal = f.rcp(f.sum(exponential))
    detach(operation)
    operation.type = "Mul"
    operation.add_input(exponential)
    operation.add_input(reciprocal)
    operation.add_output(y)
