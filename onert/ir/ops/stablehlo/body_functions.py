"""Recognises subgraphs that compute a known function of two elements."""

from __future__ import annotations

from typing import Any

from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind

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


def pair_function(body: Any) -> BinaryKind | None:
    """The function that the subgraph `body` computes, if it is a symmetric function of its two inputs; else None."""
    if len(body.operations) != 1 or body.outputs != body.operations[0].outputs or len(body.inputs) != 2:
        return None
    op = body.operations[0].op
    known = isinstance(op, Binary) and op.kind in _SYMMETRIC and op.activation is Activation.NONE
    if not known or set(body.operations[0].inputs) != set(body.inputs):
        return None
    assert isinstance(op, Binary)
    return op.kind


def pair_order(body: Any) -> bool | None:
    """Whether the subgraph `body` orders larger first elements first (False: smaller ones); None if neither."""
    if len(body.operations) != 1 or body.outputs != body.operations[0].outputs or len(body.inputs) < 2:
        return None
    op = body.operations[0].op
    if not isinstance(op, Comparison) or body.operations[0].inputs != body.inputs[:2]:
        return None
    return _ORDERS.get(op.kind)


def gives_second(body: Any) -> bool:
    """Whether the subgraph `body` returns the second of two elements unchanged."""
    return not body.operations and bool(body.outputs == body.inputs[1:])
