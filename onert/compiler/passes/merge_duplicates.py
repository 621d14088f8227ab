"""Common subexpression elimination: compute once what is computed twice."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from attrs import fields, has

from onert.compiler.rewrite.contract import rewriting
from onert.compiler.rewrite.edit import Edit
from onert.compiler.rewrite.effects import is_function
from onert.ir import Operand, Operation, Subgraph

SMALL = 1 << 10  # constants up to this many bytes are compared; reading larger ones is not worthwhile


@rewriting()
def merge_duplicates(subgraph: Subgraph) -> Subgraph:
    """Run one of several equal operations on equal operands; keep one of several equal small constants.

    Operations with effects, or that draw random numbers, are untouched.

        a = Abs(x); b = Abs(x); y = Add(a, b)   -->   a = Abs(x); y = Add(a, a)
    """
    edit = Edit(subgraph)
    same: dict[int, int] = {}
    constants: dict[Hashable, int] = {}
    for index, operand in enumerate(subgraph.operands):
        if operand.data is not None and not operand.type.dtype.is_handle and operand.type.nbytes <= SMALL:
            same[index] = constants.setdefault(_constant_key(operand), index)
    found: dict[Hashable, Operation] = {}
    for at, operation in enumerate(subgraph.operations):
        if not is_function(operation):
            continue
        try:
            first = found.setdefault(_operation_key(subgraph, operation, same), operation)
        except TypeError:  # attributes that cannot be compared
            continue
        if first is not operation and [*_floats(first.op)] == [*_floats(operation.op)]:
            edit.remove(at)
            same.update(zip(operation.outputs, first.outputs, strict=True))
    for double, kept in same.items():
        if double != kept:
            edit.redirect(double, kept)
    return edit.done()


def _floats(attributes: Any) -> Iterator[str]:
    """The floats among attributes, as text: 0.0 == -0.0, but they differ."""
    if isinstance(attributes, float):
        yield repr(attributes)
    elif isinstance(attributes, tuple):
        for each in attributes:
            yield from _floats(each)
    elif has(type(attributes)):
        for each in fields(type(attributes)):
            yield from _floats(getattr(attributes, each.name))


def _constant_key(operand: Operand) -> Hashable:
    assert operand.data is not None
    return operand.type, operand.data.array.tobytes(), operand.from_sizes


def _operation_key(subgraph: Subgraph, operation: Operation, same: dict[int, int]) -> Hashable:
    """A key that is the same for equal operations."""
    inputs = tuple([None if i is None else same.get(i, i) for i in operation.inputs])
    return operation.op, inputs, tuple([subgraph.type(o) for o in operation.outputs])
