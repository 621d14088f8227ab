"""Remove operations that change nothing."""

from __future__ import annotations

from onert.compiler.passes.layout.merge_transposes import permutation
from onert.compiler.rewrite.activation_bounds import Bounds, as_clamp
from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer
from onert.ir import DType, Operation, Subgraph, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.part_update import PartUpdate
from onert.ir.ops.data_movement.slicing import BroadcastTo, MirrorPad, Pad, Slice, Tile
from onert.ir.ops.elementwise.convert import Bitcast, Cast, Dequantize, Quantize
from onert.ir.symbolic.sizes import are_same

from .fuse_activation import clamps_exactly, ends_with_activation

SAME_TYPE_IS_SAME = (Cast, Bitcast, Quantize, Dequantize, Slice, Pad, MirrorPad, Tile, BroadcastTo)
"""Kinds whose result is their first operand if both have the same element type, shape and quantisation."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def remove_identities(subgraph: Subgraph) -> Subgraph:
    """Remove conversions to the same type, reshapes, slices and pads that keep the shape, concatenations of one tensor
    and empty ones, transposes that keep the order of axes, bounds that hold anyway, quantising what was just
    dequantised, and updates of the whole tensor.

    Results stay bit-identical. An output may become an input or a constant, which `copy_outputs` handles.

        a = Reshape(x, shape of x); b = RELU6(a); y = RELU(b)   -->   y = RELU6(x)
        a = Dequantize(q); y = Quantize(a), as q is quantised   -->   y = q
        y = DynamicUpdateSlice(x, u, start), as large as u      -->   y = u
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        same = _same(subgraph, operation)
        if same is not None:
            edit.remove(at)
            edit.redirect(operation.outputs[0], same)
    return edit.done()


def _same(subgraph: Subgraph, operation: Operation) -> int | None:
    """The operand that the operation's only result is a copy of."""
    source = operation.inputs[0] if operation.inputs else None
    if source is None or len(operation.outputs) != 1:
        return None
    result = subgraph.type(operation.outputs[0])
    if _is_same(result, subgraph.type(source)) and _changes_no_element(subgraph, operation, source):
        return source
    before = definer(subgraph, source)
    if isinstance(operation.op, Quantize) and before is not None and isinstance(before.op, Dequantize):
        stored = before.used[0]
        # The float32 in between is off by less than half a step of up to 16 bits.
        exact = subgraph.type(source).dtype is DType.FLOAT32 and result.dtype.is_integer and result.dtype.bits <= 16
        return stored if exact and result == subgraph.type(stored) else None
    if isinstance(operation.op, PartUpdate) and operation.op.clamps:  # the start can only be 0 if the part is the whole
        update = operation.used[operation.op.update_index]
        return update if _is_same(result, subgraph.type(update)) else None
    return None


def _is_same(a: TensorType, b: TensorType) -> bool:
    """Whether two static types are equal for all lengths that they depend on."""
    same_kind = a.dtype is b.dtype and a.quantization == b.quantization and len(a.shape) == len(b.shape)
    return same_kind and a.is_static and b.is_static and all(map(are_same, a.shape, b.shape))


def _changes_no_element(subgraph: Subgraph, operation: Operation, source: int) -> bool:
    """Whether an operation whose result has its operand's type also keeps all elements."""
    op = operation.op
    if isinstance(op, SAME_TYPE_IS_SAME) or op.shares:
        # An operand that is known only at run time may break a rule, which the run has to report.
        return all(subgraph.operands[i].is_constant for i in operation.used[1:])
    if isinstance(op, Concat):  # as the size is that of the first operand, the others have no elements
        return op.activation is Activation.NONE
    order = permutation(subgraph, operation)
    if order is not None:
        return list(order) == sorted(order)
    return _bounded(subgraph, operation, source)


def _bounded(subgraph: Subgraph, operation: Operation, source: int) -> bool:
    """Whether the operation clamps values that are already within its bounds."""
    bounds, before = as_clamp(operation.op), definer(subgraph, source)
    if bounds is None or before is None or not clamps_exactly(subgraph.type(source)):
        return False
    known = as_clamp(before.op)
    if known is None and ends_with_activation(before.op):
        known = Bounds.of(before.op.attributes["activation"])
    return known is not None and known.within(bounds)
