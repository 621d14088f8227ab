"""How often loops go round, where their graphs tell: counters that grow towards bounds that stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from onert.compiler.rewrite.counts.extents import Extents
from onert.ir import Op, Operation, Subgraph, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind

from .edit import definer


def ends(condition: Subgraph, body: Subgraph) -> bool:
    """Whether a loop is sure to end: it goes on only while a counter, one more in each round, is below a bound that
    stays as it is.
    """
    return next(_counters(condition, body), None) is not None


def trips(
    condition: Subgraph, body: Subgraph, given: Sequence[TensorType], largest: Mapping[int, int] | None = None
) -> int | None:
    """The most rounds of a loop whose counter starts at a number that is known; None if it is not.

    `largest` says how large some of what the loop is given can be, by position.
    """
    found = []
    for at, limit, step in _counters(condition, body, largest or {}):
        start = given[at].value
        if start is not None:
            found.append(max(0, -((int(start.min(initial=limit)) - limit) // step)))
    return min(found, default=None)


def _counters(
    condition: Subgraph, body: Subgraph, largest: Mapping[int, int] | None = None
) -> Iterator[tuple[int, int, int]]:
    """The counters of a loop: the position of each, the bound below which the loop goes on, and the step."""
    waiting = [condition.outputs[0]]
    seen: set[int] = set()
    while waiting:
        operand = waiting.pop()
        made = None if operand in seen else definer(condition, operand)
        seen.add(operand)
        if made is not None and isinstance(made.op, Binary) and made.op.kind is BinaryKind.LOGICAL_AND:
            waiting += made.used
        elif made is not None and isinstance(made.op, Comparison):
            found = _counter(condition, body, made, largest or {})
            if found is not None:
                yield found


def _counter(
    condition: Subgraph, body: Subgraph, compared: Operation, largest: Mapping[int, int]
) -> tuple[int, int, int] | None:
    op: Op = compared.op
    assert isinstance(op, Comparison)
    counter, bound = compared.used
    if op.kind is ComparisonKind.GREATER:
        counter, bound = bound, counter
    elif op.kind is not ComparisonKind.LESS:
        return None
    if counter not in condition.inputs:
        return None
    at = condition.inputs.index(counter)
    limit = _limit(condition, body, bound, largest)
    step = _step(body, at)
    if limit is None or step is None or step < 1:
        return None
    # A counter that comes to the bound does not pass the largest number on its way.
    sure = step == 1 or limit + step <= np.iinfo(condition.type(counter).dtype.numpy).max
    return (at, limit, step) if sure else None


def _limit(condition: Subgraph, body: Subgraph, bound: int, largest: Mapping[int, int]) -> int | None:
    """The largest that a bound can be; None if it may be any number, and change."""
    data = condition.operands[bound].data
    if data is not None:
        return int(data.array.max())
    most = int(np.iinfo(condition.type(bound).dtype.numpy).max)
    if bound in condition.inputs:
        at = condition.inputs.index(bound)
        same = body.outputs[at] == body.inputs[at]
        return min(most, largest.get(at, most)) if same else None
    found = Extents(condition, {i: o.known for i, o in enumerate(condition.operands)}, {}, lambda _: None).one(bound)
    return None if found is None or found.high >= most else found.high


def _step(body: Subgraph, at: int) -> int | None:
    """By how much an input grows in each round; None if it does something else, or is no integer."""
    made = definer(body, body.outputs[at])
    plain = made is not None and isinstance(made.op, Binary) and made.op.kind is BinaryKind.ADD
    if made is None or not plain or not body.type(body.inputs[at]).dtype.is_integer:
        return None
    assert isinstance(made.op, Binary)
    if made.op.activation is not Activation.NONE or body.inputs[at] not in made.used:
        return None
    others = [i for i in made.used if i != body.inputs[at]]
    data = body.operands[others[0]].data if len(others) == 1 else None
    return None if data is None or data.array.size != 1 else int(data.array.reshape(()))
