"""Side effects of operations, and the order that they impose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onert.ir import Effect, Operation, Subgraph, Subgraphs
from onert.ir.ops.custom import Python

_STRENGTH = {Effect.NONE: 0, Effect.READ: 1, Effect.WRITE: 2}


def stronger(a: Effect, b: Effect) -> Effect:
    """The more restrictive of two effects."""
    return a if _STRENGTH[a] >= _STRENGTH[b] else b


def is_function(operation: Operation) -> bool:
    """Whether the results depend only on the operands, so that the operation may be merged with an equal one or folded.

    False for a user's Python function, for which this is unknown.
    """
    op = operation.op
    known = op.evaluate is not None or op.evaluate_quantized is not None
    return known and op.effect is Effect.NONE and op.evaluate_in is None and not isinstance(op, Python)


def is_removable(operation: Operation) -> bool:
    """Whether the operation can be removed if its results are unused.

    A pass sees only one subgraph, so an operation that runs others counts as changing state. So does a user's Python
    function.
    """
    op = operation.op
    return op.effect is not Effect.WRITE and not op.subgraphs and not isinstance(op, Python)


def subgraph_effects(model: Subgraphs) -> tuple[Effect, ...]:
    """The effect of running each subgraph once with all that it calls. A subgraph with variables changes state."""
    found = [Effect.WRITE if subgraph.state else Effect.NONE for subgraph in model.subgraphs]
    changed = True
    while changed:  # terminates, because an effect only grows, and there are three
        changed = False
        for index, subgraph in enumerate(model.subgraphs):
            effect = found[index]
            for operation in subgraph.operations:
                effect = stronger(effect, operation_effect(operation, found))
            if effect is not found[index]:
                found[index], changed = effect, True
    return tuple(found)


def operation_effect(operation: Operation, of_subgraphs: Sequence[Effect]) -> Effect:
    """The operation's own effect, or that of a subgraph it runs if that is stronger."""
    effect = operation.op.effect
    for called in operation.op.subgraphs:
        effect = stronger(effect, of_subgraphs[called])
    return effect


def predecessors(
    subgraph: Subgraph, of_subgraphs: Sequence[Effect], must_follow: Mapping[int, Sequence[int]]
) -> tuple[tuple[int, ...], ...]:
    """For each operation those that must run before it: the producers of its operands, earlier operations with effects
    (two that only read state are not ordered), and those listed in `must_follow` for other reasons.
    """
    found = []
    last_write: int | None = None
    reads: list[int] = []
    for at, operation in enumerate(subgraph.operations):
        before = {subgraph.definitions[i] for i in operation.used if i in subgraph.definitions}
        before.update(must_follow.get(at, ()))
        effect = operation_effect(operation, of_subgraphs)
        if effect is not Effect.NONE and last_write is not None:
            before.add(last_write)
        if effect is Effect.READ:
            reads.append(at)
        elif effect is Effect.WRITE:
            before.update(reads)
            last_write, reads = at, []
        found.append(tuple(sorted(before)))
    return tuple(found)
