"""Costs of operations other than sums of products, as multiples of an operation at the float peak.

These are rules of thumb, fitted to the tests' models on one machine. Relative to peaks, they carry over to others.
"""

from __future__ import annotations

from onert.ir import Op
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D, TransposeConvBias2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind, unary_kinds
from onert.ir.ops.recurrent.gru import GRU
from onert.ir.ops.recurrent.lstm import LSTM
from onert.ir.ops.recurrent.lstm_basic import BasicLSTM
from onert.ir.ops.recurrent.lstm_bidirectional import BidirectionalLSTM
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor

LANES = 16
"""Channels that are computed at once; fewer take just as long."""
PRODUCTS = (Conv2D, FullyConnected, BatchMatMul, TransposeConv2D, TransposeConvBias2D)
"""Kinds that sum up products over channels."""
REQUANTISED, QUANTISED = 10.0, 90.0
"""The cost of requantising a result of 8-bit products, and of quantising a float before them."""
SIMPLE = 3.0
_BY_KIND: dict[type[Op], float] = {
    DepthwiseConv2D: 1.1,
    LSTM: 1.4,
    BasicLSTM: 1.4,
    BidirectionalLSTM: 1.4,
    GRU: 1.4,
    Softmax: 52.0,
    LogSoftmax: 52.0,
    ResizeBilinear: 28.0,
    ResizeNearestNeighbor: 28.0,
}
_DIVIDED, _TRANSCENDENTAL = 25.0, 43.0
_DIVISIONS = (BinaryKind.DIV, BinaryKind.FLOOR_DIV, BinaryKind.FLOOR_MOD, BinaryKind.REMAINDER)
_ROOTS = (UnaryKind.SQRT, UnaryKind.RSQRT, UnaryKind.CBRT)
_PLAIN = unary_kinds(
    "ABS NEG SQUARE SIGN HARD_SWISH RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 FLOOR CEIL TRUNC ROUND LOGICAL_NOT REAL IMAG"
).values()


def rate(op: Op) -> float:
    """The cost of an operation that `cost` counts, in operations at the float peak."""
    match op:
        case Unary(kind=kind):
            return SIMPLE if kind in _PLAIN else _DIVIDED if kind in _ROOTS else _TRANSCENDENTAL
        case Binary(kind=BinaryKind.POW | BinaryKind.ATAN2):
            return _TRANSCENDENTAL
        case Binary(kind=kind) if kind in _DIVISIONS:
            return _DIVIDED
    return _BY_KIND.get(type(op), SIMPLE)
