"""Dead code elimination."""

from __future__ import annotations

from onert.compiler.rewrite.contract import NOTHING_DEAD, rewriting
from onert.compiler.rewrite.edit import Edit, compact
from onert.compiler.rewrite.effects import is_removable
from onert.ir import Subgraph


@rewriting(ensures=(NOTHING_DEAD,))
def remove_dead(subgraph: Subgraph) -> Subgraph:
    """Remove operations whose results are not used, and operands that nothing refers to.

    Operations that change state stay, in order, and so do inputs and outputs.

        a = Relu(x); b = Abs(x); return b   -->   b = Abs(x); return b
    """
    needed = set(subgraph.kept)
    edit = Edit(subgraph)
    for at in reversed(range(len(subgraph.operations))):
        operation = subgraph.operations[at]
        if is_removable(operation) and needed.isdisjoint(operation.outputs):
            edit.remove(at)
        else:
            needed.update(operation.used)
    return compact(edit.done())
