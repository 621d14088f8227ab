"""What an operation costs, counted from its types: arithmetic and memory traffic, for profiles and for ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from attrs import frozen

from .op import Op
from .ops.conv import Conv2D
from .ops.conv3d import Conv3D, TransposeConv3D
from .ops.depthwise import DepthwiseConv2D
from .ops.fully_connected import FullyConnected
from .ops.gru import GRU
from .ops.lstm import LSTM
from .ops.lstm_bidirectional import BidirectionalLSTM
from .ops.matmul import BatchMatMul
from .ops.pool import Pool2D
from .ops.rnn import RNN, BidirectionalRNN
from .ops.transpose_conv import TransposeConv2D, TransposeConvBias2D
from .types import CallTypes, TensorType


@frozen
class Cost:
    """`flops`: multiplications and additions. `nbytes`: bytes of operands and results, each counted once."""

    flops: int
    nbytes: int


def cost(op: Op, types: CallTypes) -> Cost:
    """The cost of one run. Results with unknown dimensions count nothing; movement does no arithmetic."""
    known = [t for t in (*types.inputs, *types.outputs) if t is not None and t.is_static]
    nbytes = sum(t.nbytes for t in known)
    if any(t is not None and not t.is_static for t in (*types.inputs, *types.outputs)) or not types.outputs:
        return Cost(0, nbytes)
    count = _FLOPS.get(type(op), _elementwise)
    return Cost(0 if op.stored else count(op, types), nbytes)


def _size(type_: TensorType) -> int:
    return prod(d or 0 for d in type_.shape)


def _dim(type_: TensorType, axis: int) -> int:
    return type_.shape[axis] or 0


def _elementwise(op: Any, types: CallTypes) -> int:
    """One for each element that is computed."""
    return sum(_size(t) for t in types.outputs)


def _filtered(op: Any, types: CallTypes) -> int:
    """Each output: a product and a sum for every element of its filter, filters along the first dimension."""
    weight = types.input(1)
    return 2 * _size(types.output) * _size(weight) // max(_dim(weight, 0), 1)


def _filtered_last(op: Any, types: CallTypes) -> int:
    """The same with filters along the last dimension."""
    weight = types.input(1)
    return 2 * _size(types.output) * _size(weight) // max(_dim(weight, -1), 1)


def _scattered(op: Any, types: CallTypes) -> int:
    """Transposed convolution: each input element meets every element of the filters that see it."""
    x = types.input(0 if isinstance(op, TransposeConvBias2D) else 2)
    return 2 * _size(x) * _size(types.input(1)) // max(_dim(x, -1), 1)


def _products(op: Any, types: CallTypes) -> int:
    x = types.input(0)
    return 2 * _size(types.output) * _dim(x, -2 if op.adjoint_x else -1)


def _windows(op: Any, types: CallTypes) -> int:
    window: int = op.filter_height * op.filter_width
    return _size(types.output) * window


def _gates(op: Any, types: CallTypes) -> int:
    """Each item of a sequence meets every weight once."""
    x = types.input(0)
    weights = sum(_size(t) for t in types.inputs[1:] if t is not None and t.rank == 2)
    return 2 * weights * _size(x) // max(_dim(x, -1), 1)


_FLOPS: Mapping[type[Op], Callable[[Any, CallTypes], int]] = {
    Conv2D: _filtered,
    FullyConnected: _filtered,
    DepthwiseConv2D: _filtered_last,
    Conv3D: _filtered_last,
    TransposeConv2D: _scattered,
    TransposeConvBias2D: _scattered,
    TransposeConv3D: _scattered,
    BatchMatMul: _products,
    Pool2D: _windows,
    **dict.fromkeys((LSTM, BidirectionalLSTM, GRU, RNN, BidirectionalRNN), _gates),
}
