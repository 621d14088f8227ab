"""The rules for operations in float32, and for those that move elements of any type."""

from __future__ import annotations

from onert.ir import Op
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.convert import Bitcast
from onert.ir.ops.copy import Copy
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.fill import Fill
from onert.ir.ops.fully_connected import FullyConnected
from onert.ir.ops.gather import EmbeddingLookup, Gather, GatherNd, PutRow
from onert.ir.ops.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.layout import BatchToSpaceND, SpaceToBatchND
from onert.ir.ops.matmul import BatchMatMul
from onert.ir.ops.norm import L2Normalization, RmsNorm
from onert.ir.ops.pool import Pool2D
from onert.ir.ops.reduce import ArgReduce, Reduce
from onert.ir.ops.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.resize import ResizeBilinear, ResizeNearestNeighbor
from onert.ir.ops.scan import RFFT2D
from onert.ir.ops.slicing import MirrorPad, Pad
from onert.ir.ops.softmax import LogSoftmax, Softmax
from onert.ir.ops.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.transpose_conv import TransposeConv2D, TransposeConvBias2D

from .lower import (
    depthwise,
    elementwise,
    fourier,
    gathering,
    matmul,
    movement,
    pooling,
    products,
    reductions,
    resize,
    rows,
    spatial,
    transposed,
    variables,
)
from .lower.rule import Rule
from .lower.views import VIEWS

ELEMENT_WISE = Rule(elementwise.why_not, elementwise.lower_elementwise)
"""For all kinds that no table has: functions of elements, which may be chained."""

_GATHERING = Rule(gathering.why_not, gathering.lower)
_MOVEMENT = Rule(movement.why_not, movement.lower)
_MOVED = (Reshape, Squeeze, ExpandDims, Copy, Bitcast, Concat, Split, SplitV, Pack, Unpack, Pad, MirrorPad, Fill)
_NORM = Rule(reductions.why_not_rows, reductions.lower_norm)
_SOFTMAX = Rule(reductions.why_not_rows, reductions.lower_softmax)

FLOATS: dict[type[Op], Rule] = {
    Conv2D: Rule(products.why_not, products.lower_convolution, anchor=True),
    DepthwiseConv2D: Rule(depthwise.why_not, depthwise.lower, anchor=True),
    FullyConnected: Rule(products.why_not, products.lower_fully_connected, anchor=True),
    BatchMatMul: Rule(matmul.why_not, matmul.lower, anchor=True),
    **dict.fromkeys((TransposeConv2D, TransposeConvBias2D), Rule(transposed.why_not, transposed.lower)),
    Conv3D: Rule(spatial.why_not, spatial.lower_convolution, anchor=True),
    TransposeConv3D: Rule(spatial.why_not, spatial.lower_transposed),
    Pool2D: Rule(pooling.why_not, pooling.lower),
    ResizeBilinear: Rule(resize.why_not, resize.lower),
    Reduce: Rule(reductions.why_not, rows.lower),
    RFFT2D: Rule(fourier.why_not, fourier.lower),
    ArgReduce: Rule(reductions.why_not, reductions.lower_arg),
    **dict.fromkeys((Softmax, LogSoftmax), _SOFTMAX),
    **dict.fromkeys((L2Normalization, RmsNorm), _NORM),
}
"""By the kind of operation: in float32, but that reductions know other plain types too."""

ANY: dict[type[Op], Rule] = {
    **dict.fromkeys((*_MOVED, SpaceToBatchND, BatchToSpaceND, *VIEWS), _MOVEMENT),
    **dict.fromkeys((Gather, GatherNd, EmbeddingLookup), _GATHERING),
    PutRow: Rule(gathering.why_not_put, gathering.lower_put),
    ResizeNearestNeighbor: Rule(gathering.why_not, gathering.lower_nearest),
    **dict.fromkeys((VarHandle, ReadVariable, AssignVariable), Rule(variables.why_not, variables.lower)),
}
"""By the kind of operation: elements of any type."""
