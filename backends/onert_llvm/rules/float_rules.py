"""The rules for float32 operations, and for those that move elements of any type."""

from __future__ import annotations

from onert.ir import Op
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D, TransposeConvBias2D
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import Fill, PerLength
from onert.ir.ops.data_movement.gather import EmbeddingLookup, Gather, GatherNd, PutRow
from onert.ir.ops.data_movement.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.data_movement.layout import BatchToSpaceND, SpaceToBatchND
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.data_movement.slicing import MirrorPad, Pad
from onert.ir.ops.elementwise.binary import AddN, Binary, PRelu
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Bitcast, Cast, Dequantize, Quantize
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary
from onert.ir.ops.reduction.norm import L2Normalization, RmsNorm
from onert.ir.ops.reduction.pool import Pool2D
from onert.ir.ops.reduction.reduce import ArgReduce, Reduce
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor
from onert_llvm.lower.data_movement.view_ops import VIEWS
from onert_llvm.lower.rule import Named, Rule, rule

ELEMENT_WISE = rule("elementwise.float_elementwise", "lower_elementwise")
"""For all kinds that are in no table: element-wise functions, which may be chained."""

_GATHERING = rule("data_movement.gather")
_MOVEMENT = rule("data_movement.movement")
_MOVED = (
    Reshape,
    Squeeze,
    ExpandDims,
    Copy,
    Bitcast,
    Concat,
    Split,
    SplitV,
    Pack,
    Unpack,
    Pad,
    MirrorPad,
    Fill,
    PerLength,
)
_NORM = rule("reduction.float_reduce_softmax_norm", "lower_norm", "why_not_rows")
_SOFTMAX = rule("reduction.float_reduce_softmax_norm", "lower_softmax", "why_not_rows")

FLOATS: dict[type[Op], Rule] = {
    Conv2D: rule("contraction.float_conv_fc", "lower_convolution", anchor=True),
    DepthwiseConv2D: rule("contraction.float_depthwise", anchor=True),
    FullyConnected: rule("contraction.float_conv_fc", "lower_fully_connected", anchor=True),
    BatchMatMul: rule("contraction.batched.floats", anchor=True),
    **dict.fromkeys((TransposeConv2D, TransposeConvBias2D), rule("contraction.spatial.float_transpose_conv")),
    Pool2D: rule("reduction.pool"),
    ResizeBilinear: rule("vision_audio.float_resize"),
    Reduce: Rule(
        Named("reduction.float_reduce_softmax_norm", "why_not"), Named("reduction.fused_row_reductions", "lower")
    ),
    ArgReduce: rule("reduction.float_reduce_softmax_norm", "lower_arg"),
    **dict.fromkeys((Softmax, LogSoftmax), _SOFTMAX),
    **dict.fromkeys((L2Normalization, RmsNorm), _NORM),
}
"""By kind of operation: float32, but reductions also support other plain types."""

ANY: dict[type[Op], Rule] = {
    **dict.fromkeys((*_MOVED, SpaceToBatchND, BatchToSpaceND, *VIEWS), _MOVEMENT),
    **dict.fromkeys((Gather, GatherNd, EmbeddingLookup), _GATHERING),
    PutRow: rule("data_movement.gather", "lower_put", "why_not_put"),
    ResizeNearestNeighbor: rule("data_movement.gather", "lower_nearest"),
}
"""By kind of operation: elements of any type."""

_ELEMENTS = (Unary, LeakyRelu, Binary, AddN, PRelu, Comparison, Select, Cast, Quantize, Dequantize)

INDICES: dict[type[Op], int] = {Gather: 1, GatherNd: 1, EmbeddingLookup: 0, PutRow: 2}
"""The operand of each kind whose elements are checked at run time."""

COMMON: frozenset[type[Op]] = frozenset((*FLOATS, *ANY, *_ELEMENTS))
"""The kinds covered by the tables that are always imported; other kinds have lazy rules."""
