"""Fold constant per-channel factors and summands before or after a layer into its weights and bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import evolve, frozen

from onert.compiler.passes.quantized.scales import from_bytes
from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, definer, only_user
from onert.ir import Array, DType, Op, Operation, Subgraph
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.process.derived_arrays import derived
from onert.ir.shape import num_elements
from onert.ir.value import Value


@frozen
class _Layer(Value):
    """The positions of a layer's input, weights and bias, and the weights' axes of outputs and inputs."""

    x: int
    weight: int
    bias: int
    outputs: int
    inputs: int


_LAYERS: Mapping[type[Op], _Layer] = {
    Conv2D: _Layer(0, 1, 2, 0, 3),
    DepthwiseConv2D: _Layer(0, 1, 2, 3, 3),
    Conv3D: _Layer(0, 1, 2, 4, 3),
    TransposeConv2D: _Layer(2, 1, 3, 0, 3),
    TransposeConv3D: _Layer(2, 1, 3, 3, 4),
    FullyConnected: _Layer(0, 1, 2, 0, 1),
}


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def fold_scales(subgraph: Subgraph) -> Subgraph:
    """Fold constant per-channel factors and summands into a layer with constant float weights.

    Results may be rounded differently, except that exact sums (of bytes times whole numbers) stay exact. A summand
    before a layer becomes part of the bias only if the layer does not pad its input with zeros. What was computed from
    sizes stays apart, as it has to in a program for many lengths, whose results have the same bits.

        a = Conv2D(x, w); b = Binary.MUL(a, c); y = Binary.ADD(b, d)   -->   y = Conv2D(x, w * c, d)
        a = Binary.MUL(x, c); y = FullyConnected(a, w)                 -->   y = FullyConnected(x, w * c)

    A single number is also folded into a layer whose results are moved first.

        a = FullyConnected(x, w); b = Transpose(a, [1, 0]); y = Binary.MUL(b, 2)   -->   a = FullyConnected(x, w * 2)
                                                                                         y = Transpose(a, [1, 0])
    """
    while True:
        edit, touched = Edit(subgraph), set[int]()
        for at, operation in enumerate(subgraph.operations):
            if type(operation.op) in _LAYERS and at not in touched:
                touched |= _fold_into_producer(edit, at, operation, touched) or _fold_into_consumer(
                    edit, at, operation, touched
                )
        found = edit.done()
        if found is subgraph:
            return subgraph
        subgraph = found


def _is_rounded(subgraph: Subgraph, operand: int) -> bool:
    """Whether the floats are rounded to whole numbers next, where their last bit may decide between two results."""
    users = (subgraph.operations[at].op for at in subgraph.uses.get(operand, ()))
    return Unary(UnaryKind.ROUND) in users


def _is_exact(subgraph: Subgraph, operation: Operation) -> bool:
    """Whether a layer sums products of bytes and whole numbers."""
    layer = _LAYERS[type(operation.op)]
    weight = subgraph.operands[operation.used[layer.weight]].known.value
    if weight is None or not from_bytes(subgraph, operation.used[layer.x]):
        return False
    return bool((np.rint(weight) == weight).all())


def _weights(subgraph: Subgraph, operation: Operation) -> tuple[Array, Array | None] | None:
    """A layer's weights and bias if both are constant floats of its result's type; otherwise None."""
    layer, types = _LAYERS[type(operation.op)], subgraph.types(operation)
    x, weight = types.input(layer.x), types.input(layer.weight)
    bias = types.inputs[layer.bias] if len(types.inputs) > layer.bias else None
    dtype = types.output.dtype
    same = dtype is x.dtype is weight.dtype and (bias is None or dtype is bias.dtype)
    if dtype not in (DType.FLOAT32, DType.FLOAT64) or not same or weight.value is None:
        return None
    if bias is not None and bias.value is None:
        return None
    if any(t is not None and t.quantization is not None for t in (*types.inputs, types.output)):
        return None
    return weight.value, None if bias is None or bias.value is None else bias.value.reshape(-1)


def _vector(subgraph: Subgraph, operand: int | None, tensor: int, count: int) -> Array | None:
    """A constant's value for each index of the last axis of the tensor `tensor` it; None if it varies along others."""
    if operand is None:
        return None
    type_, other = subgraph.operands[operand].known, subgraph.type(tensor)
    if type_.value is None or type_.rank > other.rank or any(d != 1 for d in type_.shape[:-1]):
        return None
    if subgraph.operands[operand].from_sizes:
        return None
    elements = type_.value.reshape(-1).astype(np.float64)
    if elements.size not in (1, count) or not np.isfinite(elements).all():
        return None
    return np.broadcast_to(elements, (count,))


def _fold_into_producer(edit: Edit, at: int, operation: Operation, touched: set[int]) -> set[int]:
    """Fold a sum or product into the layer whose only reader it is. Returns the operations that were changed."""
    subgraph, result = edit.subgraph, operation.outputs[0]
    moved, user = _moved(subgraph, result)
    if user is None or user in touched or operation.op.attributes["activation"] is not Activation.NONE:
        return set()
    follower, found = subgraph.operations[user], _weights(subgraph, operation)
    if found is None or not isinstance(follower.op, Binary) or _is_rounded(subgraph, follower.outputs[0]):
        return set()
    if subgraph.type(follower.outputs[0]) != subgraph.type(moved):
        return set()
    layer, (weight, bias) = _LAYERS[type(operation.op)], found
    first = follower.inputs[0] == moved
    other = follower.inputs[1 if first else 0]
    if moved != result and (other is None or num_elements(subgraph.type(other).shape) != 1):
        return set()
    vector = _vector(subgraph, other, moved, weight.shape[layer.outputs])
    scale = None if vector is None else _scaled(follower.op.kind, vector, first)
    if scale is None or _is_exact(subgraph, operation):  # a look at all weights, so it comes last
        return set()
    factor, summand = scale
    shape = [1] * weight.ndim
    shape[layer.outputs] = -1
    new_bias = bias if bias is None or factor is None else bias * factor
    new_bias = new_bias if summand is None else summand if new_bias is None else new_bias + summand
    factors = None if factor is None else factor.reshape(shape)
    if moved == result:
        return _replaced(edit, at, user, operation, follower.op.activation, follower.outputs, factors, new_bias)
    if follower.op.activation is not Activation.NONE:
        return set()
    changed = _replaced(edit, at, user, operation, Activation.NONE, operation.outputs, factors, new_bias)
    if changed:
        edit.redirect(follower.outputs[0], moved)
    return changed


def _moved(subgraph: Subgraph, operand: int) -> tuple[int, int | None]:
    """A result after the reshapes and transposes each of which alone reads the one before, and its only reader."""
    user = only_user(subgraph, operand)
    while user is not None and isinstance(subgraph.operations[user].op, Reshape | Transpose):
        (operand,) = subgraph.operations[user].outputs
        user = only_user(subgraph, operand)
    return operand, user


Scale = tuple[Array | None, Array | None]
"""A factor and a summand; None if there is none."""


def _scaled(kind: BinaryKind, vector: Array, first: bool) -> Scale | None:
    """An operation with a constant `vector` as a scale; None if it is none. `first`: the other operand comes first."""
    match kind:
        case BinaryKind.MUL:
            return vector, None
        case BinaryKind.ADD:
            return None, vector
        case BinaryKind.SUB:
            return (None, -vector) if first else (np.full_like(vector, -1), vector)
        case BinaryKind.DIV if first and np.all(vector != 0):
            return 1 / vector, None
        case _:
            return None


def _fold_into_consumer(edit: Edit, at: int, operation: Operation, touched: set[int]) -> set[int]:
    """Fold a sum or product into the layer that is its only reader. Returns the operations that were changed."""
    subgraph, layer = edit.subgraph, _LAYERS[type(operation.op)]
    x = operation.inputs[layer.x]
    before, found = definer(subgraph, x), _weights(subgraph, operation)
    if x is None or before is None or found is None or only_user(subgraph, x) != at:
        return set()
    place = subgraph.definitions[x]
    if not isinstance(before.op, Binary) or before.op.activation is not Activation.NONE or place in touched:
        return set()
    weight, bias = found
    count = weight.shape[layer.inputs]
    if count != subgraph.type(x).shape[-1]:
        return set()  # grouped, or the rows have another length
    first = subgraph.operands[before.used[1]].is_constant
    source, other = before.used if first else before.used[::-1]
    vector = _vector(subgraph, other, source, count)
    scale = None if vector is None else _scaled(before.op.kind, vector, first)
    if scale is None or subgraph.type(source) != subgraph.type(x) or _is_exact(subgraph, operation):
        return set()
    factor, summand = scale
    shape = [1] * weight.ndim
    shape[layer.inputs] = -1
    new_bias: Any = bias
    if summand is not None:
        padding = operation.op.attributes.get("padding", Padding.VALID)
        if padding is not Padding.VALID or isinstance(operation.op, TransposeConv2D | TransposeConv3D):
            return set()
        axes = tuple(axis for axis in range(weight.ndim) if axis != layer.outputs)
        sums = (weight * summand.reshape(shape)).sum(axis=axes)
        new_bias = sums if bias is None else bias + sums
    factors = None if factor is None else factor.reshape(shape)
    activation: Any = operation.op.attributes["activation"]
    changed = tuple(source if i == layer.x else operand for i, operand in enumerate(operation.inputs))
    return _replaced(
        edit, at, place, evolve(operation, inputs=changed), activation, operation.outputs, factors, new_bias
    )


def _replaced(
    edit: Edit,
    at: int,
    other: int,
    operation: Operation,
    activation: Activation,
    outputs: tuple[int, ...],
    factors: Array | None,
    bias: Array | None,
) -> set[int]:
    """Multiply the layer's weights, replace its bias, and remove the operation folded into them."""
    layer = _LAYERS[type(operation.op)]
    inputs = [*operation.inputs, None, None][: layer.bias + 1]
    old = inputs[layer.weight]
    assert old is not None
    type_ = edit.subgraph.operands[old].known
    dtype, weight = type_.dtype, type_.value
    assert weight is not None
    constants: list[tuple[int, Array]] = []
    with np.errstate(over="ignore"):
        if factors is not None:
            how = ("scaled", factors.shape, factors.tobytes())
            scaled = derived(weight, how, lambda: np.ascontiguousarray((weight * factors).astype(dtype.numpy)))
            constants.append((layer.weight, scaled))
        if bias is not None:
            constants.append((layer.bias, np.ascontiguousarray(bias.astype(dtype.numpy))))
    if not all(np.isfinite(elements).all() for _, elements in constants):
        return set()
    for i, elements in constants:
        inputs[i] = edit.constant(elements, dtype)
    while inputs[-1] is None:
        inputs.pop()
    op: Any = operation.op
    edit.replace(at, evolve(operation, op=evolve(op, activation=activation), inputs=tuple(inputs), outputs=outputs))
    edit.remove(other)
    return {at, other}
