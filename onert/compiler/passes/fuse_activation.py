"""Fuse an activation into the operation before it."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from onert.compiler.rewrite.activation_bounds import Bounds, activation_within, as_clamp
from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, only_user
from onert.ir import Op, Operation, Subgraph, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.reduction.pool import Pool2D

ENDS_WITH_ACTIVATION = (Conv2D, DepthwiseConv2D, Conv3D, TransposeConv2D, TransposeConv3D, FullyConnected, Pool2D)
"""Kinds whose `activation` comes last. In recurrent kinds it acts inside the cell, which is different."""

ARITHMETIC = (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.DIV)


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def fuse_activation(subgraph: Subgraph) -> Subgraph:
    """Fuse a RELU, RELU6 or RELU_N1_TO_1 into the operation before it if it is the only reader of that result.

    Results stay bit-identical. Floats may have any width (rounding preserves the order of numbers, and the bounds are
    exact); integers must have the same quantisation before and after.

        a = Conv2D(x, w, b); y = RELU(a)   -->   y = Conv2D(x, w, b) with activation RELU
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        op = operation.op
        if not ends_with_activation(op) or not _exact(subgraph, operation):
            continue
        user = only_user(subgraph, operation.outputs[0])
        clamp = None if user is None else as_clamp(subgraph.operations[user].op)
        if user is None or clamp is None:
            continue
        follower = subgraph.operations[user]
        if subgraph.type(follower.outputs[0]) != subgraph.type(operation.outputs[0]):
            continue
        fused = activation_within(Bounds.of(_activation(op)), clamp)
        if fused is not None:
            edit.replace(at, evolve(operation, op=_with_activation(op, fused), outputs=follower.outputs))
            edit.remove(user)
    return edit.done()


def _activation(op: Op) -> Activation:
    activation = op.attributes["activation"]
    assert isinstance(activation, Activation)
    return activation


def _with_activation(op: Any, activation: Activation) -> Op:
    fused: Op = evolve(op, activation=activation)
    return fused


def ends_with_activation(op: Op) -> bool:
    """Whether the operation's own activation is its last step."""
    return isinstance(op, ENDS_WITH_ACTIVATION) or (isinstance(op, Binary) and op.kind in ARITHMETIC)


def _exact(subgraph: Subgraph, operation: Operation) -> bool:
    """Whether clamping before and after storing the result are equivalent."""
    types = subgraph.types(operation)
    return clamps_exactly(types.output) and (types.output.dtype.is_float or clamps_exactly(types.input(0)))


def clamps_exactly(type_: TensorType) -> bool:
    """Whether an activation clamps the stored elements: floats, and integers whose arithmetic clamps stored values."""
    return type_.dtype.is_float or (
        type_.quantization is not None and type_.dtype.is_integer and type_.dtype.bits in (8, 16)
    )
