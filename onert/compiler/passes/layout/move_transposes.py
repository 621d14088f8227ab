"""Transposes that go where they cost less, or nothing."""

from __future__ import annotations

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.ir import Subgraph
from onert.ir.process import imports

from .merge_transposes import permutation


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def move_transposes(subgraph: Subgraph) -> Subgraph:
    """Let operations run on transposed operands, where fewer bytes are moved so in all.

    Which operations can, and how their attributes change, says a table (`rewrite/layout_table.py`). Operations that
    are connected change together, so that transposes on both sides of them meet and cancel; a model that is written
    with channels in front comes to run with channels last, but for its inputs and outputs.

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
