"""The rules for operations in float32, and for those that move elements of any type."""

from __future__ import annotations

from onert.ir import Op
from onert.ir.ops.binary import AddN, Binary, PRelu
from onert.ir.ops.comparison import Comparison
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.convert import Bitcast, Cast, Dequantize, Quantize
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
from onert.ir.ops.select import Select
from onert.ir.ops.slicing import MirrorPad, Pad
from onert.ir.ops.softmax import LogSoftmax, Softmax
from onert.ir.ops.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.transpose_conv import TransposeConv2D, TransposeConvBias2D
from onert.ir.ops.unary import LeakyRelu, Unary

from .lower.rule import Named, Rule, rule
from .lower.views import VIEWS

ELEMENT_WISE = rule("elementwise", "lower_elementwise")
"""For all kinds that no table has: functions of elements, which may be chained."""

_GATHERING = rule("gathering")
_MOVEMENT = rule("movement")
_MOVED = (Reshape, Squeeze, ExpandDims, Copy, Bitcast, Concat, Split, SplitV, Pack, Unpack, Pad, MirrorPad, Fill)
_NORM = rule("reductions", "lower_norm", "why_not_rows")
_SOFTMAX = rule("reductions", "lower_softmax", "why_not_rows")

FLOATS: dict[type[Op], Rule] = {
    Conv2D: rule("products", "lower_convolution", anchor=True),
    DepthwiseConv2D: rule("depthwise", anchor=True),
    FullyConnected: rule("products", "lower_fully_connected", anchor=True),
    BatchMatMul: rule("matmul", anchor=True),
    **dict.fromkeys((TransposeConv2D, TransposeConvBias2D), rule("transposed")),
    Pool2D: rule("pooling"),
    ResizeBilinear: rule("resize"),
    Reduce: Rule(Named("reductions", "why_not"), Named("rows", "lower")),
    ArgReduce: rule("reductions", "lower_arg"),
    **dict.fromkeys((Softmax, LogSoftmax), _SOFTMAX),
    **dict.fromkeys((L2Normalization, RmsNorm), _NORM),
}
"""By the kind of operation: in float32, but that reductions know other plain types too."""

ANY: dict[type[Op], Rule] = {
    **dict.fromkeys((*_MOVED, SpaceToBatchND, BatchToSpaceND, *VIEWS), _MOVEMENT),
    **dict.fromkeys((Gather, GatherNd, EmbeddingLookup), _GATHERING),
    PutRow: rule("gathering", "lower_put", "why_not_put"),
    ResizeNearestNeighbor: rule("gathering", "lower_nearest"),
    **dict.fromkeys((VarHandle, ReadVariable, AssignVariable), rule("variables")),
}
"""By the kind of operation: elements of any type."""

_ELEMENTS = (Unary, LeakyRelu, Binary, AddN, PRelu, Comparison, Select, Cast, Quantize, Dequantize)

COMMON: frozenset[type[Op]] = frozenset((*FLOATS, *ANY, *_ELEMENTS))
"""The kinds that the tables read at once know: of others nothing is said here."""
