"""Prepare updates in place: other readers of the old contents run first, and overwritten parts are saved."""

from __future__ import annotations

from attrs import evolve

from onert.compiler.rewrite.contract import OWN_OUTPUTS, rewriting
from onert.compiler.rewrite.edit import Edit
from onert.compiler.state.in_place import Versions, saved_parts
from onert.ir import DType, Effect, Operand, Operation, Subgraph, TensorType
from onert.ir.analysis.ordering import in_order
from onert.ir.ops.data_movement.part_update import PartUpdate, Update

MOST_MOVED = 64
"""How many updates the pass tries to move after the readers of their first operands: a bound for hostile models."""


@rewriting(requires=(OWN_OUTPUTS,), ensures=(OWN_OUTPUTS,))
def update_in_place(subgraph: Subgraph) -> Subgraph:
    """Move each part update after the readers of its first operand, if dependencies allow. If a variable, or an input
    that becomes an output, may be updated in place, save what is overwritten until the run has succeeded.

        y = DynamicUpdateSlice(s, u, at); z = Abs(s); after the run: s := y
            -->   z = Abs(s); old, at', taken = Overwritten(s, u, at); y = DynamicUpdateSlice(s, u, at')
    """
    if not any(isinstance(operation.op, Update) for operation in subgraph.operations):
        return subgraph
    subgraph = _readers_first(subgraph)
    edit = Edit(subgraph)
    done = saved_parts(subgraph)
    for chain in Versions(subgraph).chains():
        if chain.origin is not None and all(_pays(subgraph, at) for at in chain.updates):
            for at in chain.updates:
                if at not in done:
                    _record(edit, at)
    return edit.done()


def _pays(subgraph: Subgraph, at: int) -> bool:
    """Whether saving what update `at` overwrites moves fewer bytes than copying the whole tensor."""
    used, op = subgraph.operations[at].used, subgraph.operations[at].op
    assert isinstance(op, Update)
    return (
        isinstance(op, PartUpdate)
        or 0 < 2 * subgraph.type(used[op.update_index]).nbytes <= subgraph.type(used[0]).nbytes
    )


def _record(edit: Edit, at: int) -> None:
    """Save what update `at` overwrites, and its position."""
    operation = edit.subgraph.operations[at]
    op, used = operation.op, operation.used
    assert isinstance(op, Update)
    updated = (used[op.update_index], *op.places(used))
    part, *places = (edit.like(i) for i in updated)
    is_saved = edit.operand(Operand(TensorType(DType.BOOL, ())))
    record = Operation(op.recording(), (used[0], *updated), (part, *places, is_saved), f"what {operation} overwrites")
    edit.replace(at, record, evolve(operation, inputs=op.with_places(used, places)))


def _readers_first(subgraph: Subgraph) -> Subgraph:
    """The operations reordered so that as many updates as possible come after the readers of their first operands."""
    versions = Versions(subgraph)
    constraints: list[tuple[int, int]] = []
    order = tuple(range(len(subgraph.operations)))
    late = [
        (at, readers)
        for at, operation in enumerate(subgraph.operations)
        if isinstance(operation.op, Update) and (readers := versions.late_readers(at))
    ]
    for at, readers in late[:MOST_MOVED]:
        extended = [*constraints, *((reader, at) for reader in readers)]
        found = _sorted(subgraph, extended)
        if found is not None:
            constraints, order = extended, found
    if not constraints:
        return subgraph
    return evolve(subgraph, operations=tuple(subgraph.operations[at] for at in order))


def _sorted(subgraph: Subgraph, constraints: list[tuple[int, int]]) -> tuple[int, ...] | None:
    """The operations, as close to their order as the (earlier, later) pairs allow; None if these form a cycle."""
    count = len(subgraph.operations)
    pairs = set(constraints)
    last = None
    for at, operation in enumerate(subgraph.operations):
        pairs.update((subgraph.definitions[i], at) for i in operation.used if i in subgraph.definitions)
        if operation.op.effect is not Effect.NONE or operation.op.subgraphs:
            pairs.update(() if last is None else ((last, at),))
            last = at
    needs: list[list[int]] = [[] for _ in range(count)]
    for earlier, later in pairs:
        needs[later].append(earlier)
    found = in_order(needs)
    return tuple(found) if len(found) == count else None
