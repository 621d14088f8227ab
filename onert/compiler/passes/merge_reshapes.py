"""Reshapes of reshapes."""

from __future__ import annotations

from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import Subgraph
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.shape import static


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def merge_reshapes(subgraph: Subgraph) -> Subgraph:
    """Let a reshape read what the reshape before it reads.

    A reshape that no one reads any more is left
    to `remove_dead`. Reshapes are the kinds that share their operand's memory: Reshape, Squeeze, ExpandDims.

        a = Reshape(x, [6]); y = ExpandDims(a, 0)   -->   a = Reshape(x, [6]); y = Reshape(x) to [1, 6]
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        before = definer(subgraph, operation.inputs[0] if operation.inputs else None)
        if not operation.op.shares or before is None or not before.op.shares:
            continue
        result, source = subgraph.type(operation.outputs[0]), subgraph.type(before.used[0])
        if result.is_static and source.is_static and source.dtype is result.dtype:
            edit.replace(at, evolve(operation, op=Reshape(static(result.shape)), inputs=(before.used[0],)))
    return edit.done()
