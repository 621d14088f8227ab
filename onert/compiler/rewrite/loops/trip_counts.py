"""Trip counts of loops whose counters grow towards constant bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from onert.compiler.rewrite.counts.extents import Extents
from onert.compiler.rewrite.edit import definer
from onert.ir import Array, Op, Operation, Subgraph, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.control_flow.enclosed import Branch
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Within
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.symbolic.trace import maximum


def terminates(condition: Subgraph, body: Subgraph) -> bool:
    """Whether a loop is certain to end: it continues only while a growing counter is below an invariant bound."""
    return next(_counters(condition, body), None) is not None


def changes_nothing(body: Subgraph) -> bool:
    """Whether a round returns its operands: the loop then never ends, which the executor reports."""
    pairs = enumerate(zip(body.inputs, body.outputs, strict=True))
    return all(given == result or growth(body, at) == 0 for at, (given, result) in pairs)


def most_trips(
    condition: Subgraph, body: Subgraph, starts: Sequence[TensorType], largest: Mapping[int, int] | None = None
) -> int | None:
    """The most rounds of a loop, if a counter starts at a known number; otherwise None.

    `largest` has upper bounds of some of the loop's operands, by position.
    """
    found = []
    for at, limit, step in _counters(condition, body, largest or {}):
        start = _number(starts[at].value)
        if start is not None:
            found.append(maximum(0, -((start - limit) // step)))
    return min(found, default=None)


def exact_trips(condition: Subgraph, body: Subgraph, starts: Sequence[TensorType]) -> int | None:
    """The exact number of rounds if a loop's only condition is a counter below a known bound; otherwise None."""
    comparison = definer(condition, condition.outputs[0])
    if comparison is None or not isinstance(comparison.op, Comparison) or len(condition.operations) != 1:
        return None
    found = _counter(condition, body, comparison, {})
    bound = next((condition.operands[i].data for i in comparison.used if i not in condition.inputs), None)
    if found is None or bound is None or bound.array.size != 1:
        return None
    at, limit, step = found
    start = _number(starts[at].value)
    return None if start is None else maximum(0, -((start - limit) // step))


def _counters(
    condition: Subgraph, body: Subgraph, largest: Mapping[int, int] | None = None
) -> Iterator[tuple[int, int, int]]:
    """The counters of a loop: for each its position, the bound below which the loop continues, and its step."""
    pending = [condition.outputs[0]]
    seen: set[int] = set()
    while pending:
        operand = pending.pop()
        producer = None if operand in seen else definer(condition, operand)
        seen.add(operand)
        if producer is not None and isinstance(producer.op, Binary) and producer.op.kind is BinaryKind.LOGICAL_AND:
            pending += producer.used
        elif producer is not None and isinstance(producer.op, Branch) and _is_false(producer.op.otherwise):
            pending.append(producer.used[0])
        elif producer is not None and isinstance(producer.op, Comparison):
            found = _counter(condition, body, producer, largest or {})
            if found is not None:
                yield found


def _is_false(graph: Subgraph) -> bool:
    """Whether the first result of a graph is the constant false."""
    operand = graph.outputs[0]
    producer = definer(graph, operand)
    if producer is not None and isinstance(producer.op, Copy):
        operand = producer.used[0]
    data = graph.operands[operand].data
    return data is not None and not data.array.any()


def _counter(
    condition: Subgraph, body: Subgraph, comparison: Operation, largest: Mapping[int, int]
) -> tuple[int, int, int] | None:
    op: Op = comparison.op
    assert isinstance(op, Comparison)
    counter, bound = comparison.used
    if op.kind is ComparisonKind.GREATER:
        counter, bound = bound, counter
    elif op.kind is not ComparisonKind.LESS:
        return None
    if counter not in condition.inputs:
        return None
    at = condition.inputs.index(counter)
    limit = _limit(condition, body, bound, largest)
    step = growth(body, at)
    if limit is None or step is None or step < 1:
        return None
    # The counter must not overflow before it reaches the bound.
    cannot_overflow = step == 1 or limit + step <= np.iinfo(condition.type(counter).dtype.numpy).max
    return (at, limit, step) if cannot_overflow else None


def _limit(condition: Subgraph, body: Subgraph, bound: int, largest: Mapping[int, int]) -> int | None:
    """The largest possible value of a bound; None if it may be any number, or may change."""
    data = condition.operands[bound].data
    if data is not None:
        return _number(data.array)
    largest_number = int(np.iinfo(condition.type(bound).dtype.numpy).max)
    if bound in condition.inputs:
        at = condition.inputs.index(bound)
        is_invariant = body.outputs[at] == body.inputs[at]
        return min(largest_number, largest.get(at, largest_number)) if is_invariant else None
    found = Extents(condition, {i: o.known for i, o in enumerate(condition.operands)}, {}, lambda _: {}).one(bound)
    return None if found is None or found.high >= largest_number else found.high


def _number(array: Array | None) -> int | None:
    """The only element of an array; None if it has several, or is unknown."""
    if array is None or array.size != 1:
        return None
    found: int = array.reshape(-1).tolist()[0]
    return found


def growth(body: Subgraph, at: int) -> int | None:
    """By how much an input grows in each round; None if it changes in another way, or is not an integer."""
    operand, total = body.outputs[at], 0
    if not body.type(body.inputs[at]).dtype.is_integer:
        return None
    while operand != body.inputs[at]:
        producer = definer(body, operand)
        if producer is None:
            return None
        if isinstance(producer.op, Within) and len(producer.used) == 2:
            operand = producer.used[0]
            continue
        op = producer.op
        if not isinstance(op, Binary) or op.kind is not BinaryKind.ADD or op.activation is not Activation.NONE:
            return None
        data = [body.operands[i].data for i in producer.used]
        known = next((i for i, each in enumerate(data) if each is not None and each.array.size == 1), None)
        number = None if known is None else data[known]
        if known is None or number is None:
            return None
        total += int(number.array.reshape(()))
        operand = producer.used[1 - known]
    return total
