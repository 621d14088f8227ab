"""Merge consecutive reshapes, and move reshapes out from between a layer and what could be fused into it."""

from __future__ import annotations

from attrs import evolve

from onert.compiler.passes.fuse_activation import ends_with_activation
from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer, only_user
from onert.ir import Operand, Operation, Subgraph
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary
from onert.ir.shape import static


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def merge_reshapes(subgraph: Subgraph) -> Subgraph:
    """Let a reshape read the input of the reshape before it, and move element-wise operations on a layer's result
    before the reshape of that result.

    Unused reshapes are left to `remove_dead`. Reshapes are the kinds that share their operand's memory: Reshape,
    Squeeze, ExpandDims.

        a = Reshape(x, [6]); y = ExpandDims(a, 0)            -->   a = Reshape(x, [6]); y = Reshape(x) to [1, 6]
        a = Conv2D(x, w); b = Squeeze(a, [1]); y = RELU(b)   -->   a = Conv2D(x, w); b = RELU(a); y = Squeeze(b, [1])
    """
    edit, touched = Edit(subgraph), set[int]()
    for at, operation in enumerate(subgraph.operations):
        if isinstance(operation.op, Unary | LeakyRelu | Binary):
            _lift(edit, at, operation, touched)
            continue
        before = definer(subgraph, operation.inputs[0] if operation.inputs else None)
        if not operation.op.shares or before is None or not before.op.shares:
            continue
        result, source = subgraph.type(operation.outputs[0]), subgraph.type(before.used[0])
        if result.is_static and source.is_static and source.dtype is result.dtype:
            edit.replace(at, evolve(operation, op=Reshape(static(result.shape)), inputs=(before.used[0],)))
    return edit.done()


def _lift(edit: Edit, at: int, operation: Operation, touched: set[int]) -> None:
    """Move an element-wise operation before the reshape of a layer's result if it is the reshape's only reader."""
    subgraph = edit.subgraph
    for position, operand in enumerate(operation.used):
        reshape = definer(subgraph, operand)
        if reshape is None or not isinstance(reshape.op, Reshape | Squeeze | ExpandDims):
            continue
        place, layer = subgraph.definitions[operand], definer(subgraph, reshape.used[0])
        if layer is None or not (ends_with_activation(layer.op) or isinstance(layer.op, Unary | LeakyRelu)):
            continue
        if only_user(subgraph, operand) != at or only_user(subgraph, reshape.used[0]) != place or place in touched:
            continue
        inputs = _operands_before(edit, operation, position, reshape.used[0])
        types = [subgraph.type(i) for i in (reshape.used[0], operand, operation.outputs[0])]
        if inputs is None or types[1] != types[2] or types[0].quantization is not None or not types[0].ranked:
            continue
        lifted = edit.operand(Operand(types[0]))
        first = evolve(operation, inputs=inputs, outputs=(lifted,))
        then = evolve(reshape, inputs=(lifted, *reshape.inputs[1:]), outputs=operation.outputs)
        edit.remove(place)
        edit.replace(at, first, then)
        touched.update((place, at))
        return


def _operands_before(edit: Edit, operation: Operation, position: int, source: int) -> tuple[int, ...] | None:
    """The operation's operands with the one at `position` replaced by `source`; None if the others do not fit.

    The others must be constants of one element, or one element per index of a last axis that the reshape keeps.
    """
    subgraph, found = edit.subgraph, list(operation.used)
    before, after = subgraph.type(source).shape, subgraph.type(operation.used[position]).shape
    for i, operand in enumerate(found):
        if i == position:
            found[i] = source
            continue
        value = subgraph.operands[operand].known.value
        if value is None or value.ndim > len(after):
            return None
        if value.size != 1:
            keeps_last_axis = bool(before) and bool(after) and before[-1] is not None and before[-1] == after[-1]
            if not (keeps_last_axis and value.shape[-1] == value.size):
                return None
        type_ = subgraph.type(operand)
        found[i] = edit.constant(value.reshape(() if value.size == 1 else -1), type_.dtype, type_.quantization)
    return tuple(found)
