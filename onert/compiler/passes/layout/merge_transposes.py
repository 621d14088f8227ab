"""Merge consecutive transposes, and turn transposes that move no element into reshapes."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.compiler.rewrite.layouts import moves_nothing
from onert.ir import Operation, Subgraph
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.shape import static

Order = tuple[int, ...]


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def merge_transposes(subgraph: Subgraph) -> Subgraph:
    """Merge two consecutive transposes, and turn one that only moves dimensions of size 1 into a reshape.

    Unused transposes are left to `remove_dead`.

        a = Transpose(x, [0, 2, 1]); y = Transpose(a, [2, 1, 0])   -->   y = Transpose(x, [1, 2, 0])
        y = Transpose(x of f32[1, 5, 7], [1, 0, 2])                -->   y = Reshape(x) to [5, 1, 7]
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        order = permutation(subgraph, operation)
        if order is None:
            continue
        source = operation.used[0]
        before = definer(subgraph, source)
        first = None if before is None else permutation(subgraph, before)
        if before is not None and first is not None:
            source, order = before.used[0], tuple(first[axis] for axis in order)
        x = subgraph.type(source)
        if x.is_static and moves_nothing(x.shape, order):
            shape = static(subgraph.type(operation.outputs[0]).shape)
            edit.replace(at, evolve(operation, op=Reshape(shape), inputs=(source,)))
        elif first is not None:
            axes = edit.constant(np.array(order, np.int32))
            edit.replace(at, evolve(operation, inputs=(source, axes)))
    return edit.done()


def permutation(subgraph: Subgraph, operation: Operation) -> Order | None:
    """The permutation of a transpose, with non-negative axes; None if it is unknown, or not a transpose."""
    if not isinstance(operation.op, Transpose):
        return None
    x, order = subgraph.types(operation).inputs
    if x is None or order is None or order.value is None or not x.ranked:
        return None
    return tuple(int(axis) % x.rank for axis in order.value.reshape(-1)) if x.rank else ()
