"""Subgraphs that are one function of two elements, recognised so that whole tensors are computed at once."""

from __future__ import annotations

from attrs import evolve

from onert.ir import Op, Subgraph, Subgraphs
from onert.ir.ops.activation import Activation
from onert.ir.ops.binary import Binary, BinaryKind
from onert.ir.ops.comparison import Comparison, ComparisonKind
from onert.ir.ops.hlo_bodies import HloReduce, HloReduceWindow, HloScatter, HloSort

_SYMMETRIC = frozenset(
    {
        BinaryKind.ADD,
        BinaryKind.MUL,
        BinaryKind.MAXIMUM,
        BinaryKind.MINIMUM,
        BinaryKind.LOGICAL_AND,
        BinaryKind.LOGICAL_OR,
        BinaryKind.BITWISE_AND,
        BinaryKind.BITWISE_OR,
        BinaryKind.BITWISE_XOR,
    }
)
_ORDERS = {ComparisonKind.LESS: False, ComparisonKind.GREATER: True}


def recognize_bodies(model: Subgraphs) -> Subgraphs:
    """The model whose operations with bodies know what these do, where it is a single function of two elements."""
    graphs = []
    for graph in model.subgraphs:
        operations = tuple(evolve(o, op=_recognized(o.op, model)) for o in graph.operations)
        graphs.append(graph if operations == graph.operations else evolve(graph, operations=operations))
    return evolve(model, subgraphs=tuple(graphs))


def _recognized(op: Op, model: Subgraphs) -> Op:
    if not isinstance(op, HloReduce | HloReduceWindow | HloScatter | HloSort):
        return op
    body = model[op.body]
    if isinstance(op, HloSort):
        return evolve(op, descending=_order(body))
    if isinstance(op, HloScatter) and not body.operations and body.outputs == body.inputs[1:]:
        return evolve(op, replaces=True)
    function = _function(body)
    return op if function is None else evolve(op, function=function)


def _function(body: Subgraph) -> BinaryKind | None:
    """The body's function, where it is one of its two inputs in any order."""
    if len(body.operations) != 1 or body.outputs != body.operations[0].outputs or len(body.inputs) != 2:
        return None
    op = body.operations[0].op
    known = isinstance(op, Binary) and op.kind in _SYMMETRIC and op.activation is Activation.NONE
    if not known or set(body.operations[0].inputs) != set(body.inputs):
        return None
    assert isinstance(op, Binary)
    return op.kind


def _order(body: Subgraph) -> bool | None:
    """Whether the body puts a larger first element first (or a smaller one: False)."""
    if len(body.operations) != 1 or body.outputs != body.operations[0].outputs or len(body.inputs) < 2:
        return None
    op = body.operations[0].op
    if not isinstance(op, Comparison) or body.operations[0].inputs != body.inputs[:2]:
        return None
    return _ORDERS.get(op.kind)
