"""Shapes that are known before the run."""

from __future__ import annotations

import numpy as np

from onert.compiler.rewrite import Edit
from onert.ir import Array, Op, Subgraph, TensorType
from onert.ir.ops.reshape import Rank, ShapeOf
from onert.ir.shape import static


def fold_shapes(subgraph: Subgraph) -> Subgraph:
    """Replace the shape of a tensor, where every dimension is known, and its rank by a constant.

    Requires: inferred types. Ensures: the same numbers; what is computed from them folds next.

        s = ShapeOf(x of f32[2, 3]); y = Reshape(z, s)   -->   y = Reshape(z, const [2, 3])
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        source = operation.inputs[0] if operation.inputs else None
        value = None if source is None else _value(operation.op, subgraph.type(source))
        if value is not None:
            edit.remove(at)
            edit.redirect(operation.outputs[0], edit.constant(value))
    return edit.done()


def _value(op: Op, x: TensorType) -> Array | None:
    """What the operation gives, where the operand's type decides it."""
    if not x.ranked:
        return None
    if isinstance(op, Rank):
        return np.array(x.rank, np.int32)
    if isinstance(op, ShapeOf) and x.is_static:
        return np.array(static(x.shape), op.to.numpy)
    return None
