"""Move transposes to where they cost less, or nothing."""

from __future__ import annotations

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.ir import Subgraph
from onert.ir.process import imports

from .merge_transposes import permutation


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def move_transposes(subgraph: Subgraph) -> Subgraph:
    """Run operations on transposed operands if that moves fewer bytes in total.

    A table (`rewrite/layout_table.py`) says which operations can, and how their attributes change. Connected operations
    change together, so that transposes on both sides of them meet and cancel. A model in channels-first layout thus
    runs channels-last except for its inputs and outputs.

        a = Transpose(x, [0, 3, 1, 2]); b = RELU(a); y = Transpose(b, [0, 2, 3, 1])   -->   y = RELU(x)
        a = Transpose(x, [0, 3, 1, 2]); y = Reduce.MEAN(a, [2, 3])                    -->   y = Reduce.MEAN(x, [1, 2])
    """
    orders = {}
    for at, operation in enumerate(subgraph.operations):
        order = permutation(subgraph, operation)
        if order is not None:
            orders[at] = order
    if not orders:
        return subgraph
    found: Subgraph = imports.module("onert.compiler.rewrite.transposed").transposed(subgraph, orders)
    return found
