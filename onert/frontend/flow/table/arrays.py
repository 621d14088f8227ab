"""Shapes and data movement: transposes, slices, concatenation and splitting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from onert.frontend.flow.emitter import Emitter, Node, Rule
from onert.ir import DType, RuleError
from onert.ir import shape as shapes
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.joining import Concat, Split
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Rank, Reshape, ShapeOf
from onert.ir.ops.data_movement.slicing import BroadcastTo, Pad, Slice


def _transpose(e: Emitter, node: Node) -> int:
    node.require_inputs(1)
    order = node.integers("perm")
    if order is None:
        order = tuple(reversed(range(e.rank(node.inputs[0]))))
    return e.add(Transpose(), node.inputs[0], e.indices(order))


def _reshape(e: Emitter, node: Node) -> int:
    """Reshape to the shape in the second operand, or the declared one."""
    node.require_inputs(1, 2)
    if len(node.inputs) == 2:
        return e.add(Reshape(), *node.inputs)
    return e.add(Reshape(_declared(node)), node.inputs[0])


def _to_declared(e: Emitter, node: Node) -> int:
    """Squeeze or ExpandDims: reshape to the declared shape, which adds or removes dimensions of 1."""
    node.require_inputs(1, 2)
    return e.add(Reshape(_declared(node)), node.inputs[0])


def _declared(node: Node) -> tuple[int, ...]:
    """The declared shape of the result, with -1 for unknown dimensions."""
    return tuple(-1 if d is None else d for d in node.result.shape)


def _concat(e: Emitter, node: Node) -> int:
    """Concatenate; the last operand is the axis."""
    if len(node.inputs) < 2:
        raise RuleError(f"has {len(node.inputs)} inputs, expected at least 2")
    *tensors, axis = node.inputs
    count = node.integer("N")
    if count is not None and count != len(tensors):
        raise RuleError(f"attribute 'N' is {count}, but there are {len(tensors)} tensors and an axis")
    at = shapes.normalize_axis(e.integer(axis, "the axis"), e.rank(tensors[0]))
    return e.add(Concat(at), *tensors) if len(tensors) > 1 else e.add(Copy(), *tensors)


def _split(e: Emitter, node: Node) -> Sequence[int]:
    """Split into equal parts; the second operand is their number, the third the axis."""
    node.require_inputs(2, 3)
    count = e.integer(node.inputs[1], "the number of parts")
    axis = e.integer(node.inputs[2], "the axis") if len(node.inputs) == 3 else 0
    if count != len(node.results):
        raise RuleError(f"splits into {count} parts, but has {len(node.results)} outputs")
    return e.add_many(Split(count), e.indices((axis,)), node.inputs[0])


def _slice(e: Emitter, node: Node) -> int:
    node.require_inputs(3)
    return e.add(Slice(), *node.inputs)


def _resize(e: Emitter, node: Node) -> int:
    """Resize to another shape of the same rank: cut off at the end or padded with zeros."""
    node.require_inputs(1)
    x = node.inputs[0]
    wanted = node.integers("shape")
    if wanted is None:
        wanted = shapes.static(node.result.shape)
    have = e.shape(x)
    if len(wanted) != len(have) or any(d < 0 for d in wanted):
        raise RuleError(f"resizes {list(have)} to {list(wanted)}, expected the same rank and sizes of at least 0")
    kept = [min(a, b) for a, b in zip(have, wanted, strict=True)]
    if kept != list(have):
        x = e.add(Slice(), x, e.indices([0] * len(have)), e.indices(kept))
    if kept == list(wanted):
        return x if x != node.inputs[0] else e.add(Copy(), x)
    margins = [amount for a, b in zip(kept, wanted, strict=True) for amount in (0, b - a)]
    return e.add(Pad(), x, e.reshape(e.indices(margins), (len(have), 2)))


def _broadcast(e: Emitter, node: Node) -> int:
    """Broadcast to the shape in the second operand, the attribute, or the declared one."""
    node.require_inputs(1, 2)
    if len(node.inputs) == 2:
        return e.add(BroadcastTo(), *node.inputs)
    wanted = node.integers("shape")
    return e.add(
        BroadcastTo(), node.inputs[0], e.indices(shapes.static(node.result.shape if wanted is None else wanted))
    )


def _shape(e: Emitter, node: Node) -> int:
    node.require_inputs(1)
    return e.add(ShapeOf(node.result.dtype), node.inputs[0])


def _size(e: Emitter, node: Node) -> int:
    node.require_inputs(1)
    size = shapes.num_elements(e.type(node.inputs[0]).shape)
    if size is None:
        raise RuleError("computes the size of a tensor with unknown dimensions")
    return e.cast(e.constant(np.array(size, np.int32)), node.result.dtype)


def _rank(e: Emitter, node: Node) -> int:
    node.require_inputs(1)
    found = e.add(Rank(), node.inputs[0])
    return found if node.result.dtype is DType.INT32 else e.cast(found, node.result.dtype)


RULES: Mapping[str, Rule] = {
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Squeeze": _to_declared,
    "ExpandDims": _to_declared,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Resize": _resize,
    "Broadcast": _broadcast,
    "Shape": _shape,
    "Size": _size,
    "Rank": _rank,
}
