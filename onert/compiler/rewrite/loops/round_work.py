"""What a round of a loop does not move, although it is part of a tensor that an operation reads or writes."""

from __future__ import annotations

from onert.ir import Operation, Subgraph
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.symbolic.trace import maximum


def unmoved(graph: Subgraph, operation: Operation, *, is_body: bool) -> int:
    """The bytes of an operation's operands and results that a run of the graph neither reads nor writes.

    A lookup reads as many elements as it returns. In the body of a loop, an update of a part of the state is done in
    place if nothing else reads that state.
    """
    sizes = [graph.type(i).nbytes for i in operation.used]
    found: int = 0
    if isinstance(operation.op, Gather):
        found = maximum(0, sizes[0] - graph.type(operation.outputs[0]).nbytes)
    elif is_body and _is_in_place(graph, operation):
        found = maximum(0, 2 * (sizes[0] - sizes[1]))
    return found


def _is_in_place(body: Subgraph, operation: Operation) -> bool:
    """Whether an operation changes a part of the state that the body returns at the same position."""
    if not operation.op.overwrites or len(operation.used) < 2:
        return False
    state, result = operation.used[0], operation.outputs[0]
    readers = body.uses.get(state, ())
    return (
        (state, result) in zip(body.inputs, body.outputs, strict=False)
        and operation.used.count(state) == 1
        and [body.operations[at] for at in readers] == [operation]
    )
