"""What no round of a loop changes: operands that every round returns as they are, and what is computed from these."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import evolve

from onert.compiler.rewrite.counts.counted_types import CountedType
from onert.compiler.rewrite.edit import Edit, compact
from onert.compiler.rewrite.effects import is_function
from onert.ir import Constant, Operand, Operation, Subgraph, TensorType
from onert.ir.analysis.cost import cost
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.control_flow.enclosed import Loop

FLOPS_PER_BYTE = 8
"""An operation with a result larger than its operands is moved before a loop if it takes this many additions and
multiplications for each byte of it, as products do."""


def constant_state(given: Sequence[Constant | None], body: Subgraph) -> dict[int, Constant]:
    """The constants, by position, among what a loop is `given` that its body returns as they are."""
    return {
        at: data
        for at, (data, i, o) in enumerate(zip(given, body.inputs, body.outputs, strict=False))
        if i == o and data is not None
    }


def returning_inputs(body: Subgraph, positions: Collection[int]) -> Subgraph:
    """The body of a loop that returns some of its inputs, which are known to stay the same, as they are."""
    outputs = (body.inputs[at] if at in positions else o for at, o in enumerate(body.outputs))
    return evolve(body, outputs=tuple(outputs)) if positions else body


def passed_through(sides: Sequence[Subgraph], types: Sequence[CountedType]) -> dict[int, int]:
    """The results of a branch that all its sides return as they were given, mapped to the positions of these operands.

    `types` are the operands' types: counted tensors are not searched. One result always stays.
    """
    plain = [at for at, type_ in enumerate(types) if not type_.axes]
    positions = [{side.inputs[at]: at for at in plain} for side in sides]
    found: dict[int, int] = {}
    for result, outputs in enumerate(zip(*(side.outputs for side in sides), strict=True)):
        at, *others = (own.get(o) for own, o in zip(positions, outputs, strict=True))
        if at is not None and all(other == at for other in others):
            found[result] = at
    if sides and len(found) == len(sides[0].outputs):
        found.pop(0, None)
    return found


def without_results(side: Subgraph, results: Mapping[int, int]) -> Subgraph:
    """A graph that does not return the results at some positions."""
    return evolve(side, outputs=tuple(o for at, o in enumerate(side.outputs) if at not in results))


def hoisted(graph: Subgraph, at: int) -> tuple[Subgraph, int]:
    """The graph with what each round of the loop `at` computes anew moved before the loop, and the loop's new number.

    Moved are operations on real numbers, which cannot fail, if reading their results is cheaper than computing them.
    They run even if the loop makes no round.
    """
    operation = graph.operations[at]
    if not isinstance(operation.op, Loop):
        return graph, at
    body = operation.op.body
    moved = _movable(body)
    if not moved:
        return graph, at
    gone = set(moved)
    kept = [o for i, o in enumerate(body.operations) if i not in gone]
    read = {i for o in kept for i in o.used}
    passed = [o for i in moved for o in body.operations[i].outputs if o in read]
    types = [body.type(o) for o in passed]
    edit = Edit(graph)
    number = dict(zip(body.inputs, operation.used, strict=True))
    for i in moved:
        for each in (*body.operations[i].used, *body.operations[i].outputs):
            if each not in number:
                number[each] = edit.operand(body.operands[each])
        edit.insert(at, body.operations[i].with_operands(number.__getitem__))
    inputs, outputs = (*body.inputs, *passed), (*body.outputs, *passed)
    body = compact(evolve(body, operations=tuple(kept), inputs=inputs, outputs=outputs))
    new = evolve(
        operation,
        op=evolve(operation.op, body=body, condition=_given(operation.op.condition, types)),
        inputs=(*operation.inputs, *(number[o] for o in passed)),
        outputs=(*operation.outputs, *(edit.operand(Operand(t)) for t in types)),
    )
    edit.replace(at, new)
    return infer_alone(edit.done()), at + len(moved)


def _movable(body: Subgraph) -> list[int]:
    """The operations of a loop's body that are computed from what no round changes, in order."""
    same = {i for i, o in zip(body.inputs, body.outputs, strict=True) if i == o}
    found = []
    for at, operation in enumerate(body.operations):
        given = [i for i in operation.used if body.operands[i].data is None]
        if given and same.issuperset(given) and _is_moved(body, operation, given):
            found.append(at)
            same.update(operation.outputs)
    return found


def _is_moved(body: Subgraph, operation: Operation, given: Sequence[int]) -> bool:
    types = [body.type(i) for i in (*given, *operation.outputs)]
    if not all(t.dtype.is_float for t in types) or not is_function(operation):
        return False
    if not body.kept.isdisjoint(operation.outputs):
        return False
    read, written = (sum(body.type(i).nbytes for i in each) for each in (operation.used, operation.outputs))
    return written <= read or cost(operation.op, body.types(operation)).flops >= FLOPS_PER_BYTE * written


def _given(condition: Subgraph, more: Sequence[TensorType]) -> Subgraph:
    """The condition of a loop with further operands, which it does not read."""
    first = len(condition.operands)
    operands = (*condition.operands, *map(Operand, more))
    return evolve(condition, operands=operands, inputs=(*condition.inputs, *range(first, len(operands))))
