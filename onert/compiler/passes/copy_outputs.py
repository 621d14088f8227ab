"""Give every output an operation that defines it."""

from __future__ import annotations

from attrs import evolve

from onert.compiler.rewrite.contract import OWN_OUTPUTS, rewriting
from onert.compiler.rewrite.edit import Edit
from onert.ir import Operation, Subgraph
from onert.ir.ops.data_movement.copy import Copy


@rewriting(ensures=(OWN_OUTPUTS,))
def copy_outputs(subgraph: Subgraph) -> Subgraph:
    """Copy outputs that are not an operation's result (inputs, constants, variables), and repeated outputs.

    The source of a state update that is itself a variable is copied too: another update may already have overwritten
    it. This pass runs last, because other passes create such outputs.

        y = Abs(x); return x, y, y   -->   y = Abs(x); x' = Copy(x); y' = Copy(y); return x', y, y'
    """
    edit = Edit(subgraph)

    def copied(operand: int) -> int:
        copy = edit.like(operand, subgraph.operands[operand].name)
        edit.insert(
            len(subgraph.operations), Operation(Copy(), (operand,), (copy,), f"copy of {subgraph.label(operand)}")
        )
        return copy

    outputs: list[int] = []
    seen: set[int] = set()
    for output in subgraph.outputs:
        is_separate = output in subgraph.definitions and output not in seen
        seen.add(output)
        outputs.append(output if is_separate else copied(output))
    state = tuple(
        evolve(u, source=copied(u.source)) if subgraph.operands[u.source].variable else u for u in subgraph.state
    )
    if tuple(outputs) == subgraph.outputs and state == subgraph.state:
        return subgraph
    edit.end_with(outputs, state)
    return edit.done()
