"""Pool channels-first images plane by plane, without transposes."""

from __future__ import annotations

from math import prod

from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit, only_user
from onert.ir import DType, Operand, Subgraph, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.shape import static

from .merge_transposes import permutation

_NARROWEST = 12
"""The fewest columns of a plane of results: in narrower ones a register of neighbours is mostly empty, so transposing
the image costs less."""
_MOST_STRIDE, _MOST = 2, 16
"""The most columns between results, and the most rows and columns of windows: backends pool others channels last."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def pool_planes(subgraph: Subgraph) -> Subgraph:
    """Let pools between two transposes, from channels first to channels last and back, see each channel as an image of
    its own.

        a = Transpose(x, [0, 2, 3, 1]); b = Pool2D(a); y = Transpose(b, [0, 3, 1, 2])
        -->   a = Reshape(x) to [n * c, h, w, 1]; b = Pool2D(a); y = Reshape(b)
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        order = permutation(subgraph, operation)
        if order is None or len(order) < 3 or order != (0, *range(2, len(order)), 1):
            continue
        steps = _pools(subgraph, operation.outputs[0])
        if steps is None:
            continue
        channels = static(subgraph.type(operation.used[0]).shape)[1]
        for number in (at, *steps):
            own = subgraph.operations[number]
            (source, result), op = (own.used[0], own.outputs[0]), own.op
            shape = static(subgraph.type(result).shape)
            if number != steps[-1]:
                shape = (shape[0] * channels, *shape[1:-1], 1)
                edit.redefine(result, Operand(TensorType(DType.FLOAT32, shape), subgraph.operands[result].name))
            op = op if isinstance(op, Pool2D) else Reshape(shape)
            edit.replace(number, evolve(own, op=op, inputs=(source,)))
    return edit.done()


def _pools(subgraph: Subgraph, operand: int) -> tuple[int, ...] | None:
    """The operations from this operand, the result of a transpose to channels last, to the transpose back: pools and
    reshapes that keep the channels. None if there are others, or if transposing is better."""
    found, pooled = list[int](), False
    images = 0
    while True:
        type_, user = subgraph.type(operand), only_user(subgraph, operand)
        if user is None or operand in subgraph.kept or type_.dtype is not DType.FLOAT32 or not type_.is_static:
            return None
        shape, operation = static(type_.shape), subgraph.operations[user]
        result = subgraph.type(operation.outputs[0])
        if not result.is_static or prod(shape) == 0:
            return None
        images = images or shape[0]
        found.append(user)
        order = permutation(subgraph, operation)
        if order is not None:
            back = order == (0, len(order) - 1, *range(1, len(order) - 1))
            return tuple(found) if pooled and back and shape[0] == images else None
        if isinstance(operation.op, Pool2D):
            pooled, suits = True, _suits(operation.op, static(result.shape)[2])
        else:
            reshaped = isinstance(operation.op, Reshape | ExpandDims | Squeeze)
            suits = reshaped and result.shape[-1] == shape[-1] and static(result.shape)[0] % images == 0
        if not suits:
            return None
        operand = operation.outputs[0]


def _suits(op: Pool2D, columns: int) -> bool:
    """Whether a pool with this many columns of results is better without transposes."""
    few = max(op.filter_height, op.filter_width) <= _MOST
    plain = op.kind is not Pooling.L2 and op.activation is Activation.NONE
    return few and plain and op.stride_width <= _MOST_STRIDE and columns >= _NARROWEST
