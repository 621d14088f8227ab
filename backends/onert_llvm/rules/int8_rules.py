"""The rules for operations on 8-bit integers, by the kind of operation."""

from __future__ import annotations

from collections.abc import Iterator

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.elementwise.binary import Binary, PRelu
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary
from onert.ir.ops.reduction.reduce import Reduce
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert_llvm.lower.rule import Rule, rule

_STORED = frozenset((DType.INT8, DType.UINT8, DType.INT4, DType.INT2))
"""Integers of 8 bits or less, a byte each in memory."""

BYTES: dict[type[Op], Rule] = {
    Conv2D: rule("contraction.int8_conv_fc", "lower_convolution", tabled=True),
    DepthwiseConv2D: rule("contraction.int8_conv_fc", "lower_depthwise", tabled=True),
    FullyConnected: rule("contraction.int8_conv_fc", "lower_fully_connected", tabled=True),
    TransposeConv2D: rule("contraction.spatial.int_transpose_conv"),
    Binary: rule("elementwise.integer_binary"),
    Reduce: rule("reduction.integer_reduce"),
    Softmax: rule("reduction.integer_softmax"),
    ResizeBilinear: rule("vision_audio.int8_resize"),
    Concat: rule("elementwise.int8_lookup_tables", "lower_concat", "why_no_concat"),
    **dict.fromkeys((Quantize, Dequantize, Cast), rule("elementwise.conversions", "lower_scaled", "why_not_scaled")),
}

_TRANSPOSED = rule("contraction.spatial.hybrid_transpose_conv")
_DYNAMIC: dict[type[Op], Rule] = {
    Conv2D: rule("contraction.dynamic_range_conv_fc", "lower_convolution", anchor=True),
    DepthwiseConv2D: rule("contraction.dynamic_range_conv_fc", "lower_depthwise", anchor=True),
    FullyConnected: rule("contraction.dynamic_range_conv_fc", "lower_fully_connected", anchor=True),
    TransposeConv2D: _TRANSPOSED,
}
"""Floats with filters of bytes."""

_BLOCKS = rule("contraction.byte_products.blocks", anchor=True)
"""Floats with filters whose scales change along a row."""

_REAL: dict[type[Op], Rule] = {
    Conv2D: rule("contraction.byte_products.layers", "lower_convolution", anchor=True),
    FullyConnected: rule("contraction.byte_products.layers", "lower_fully_connected", anchor=True),
    BatchMatMul: rule("contraction.byte_products.batches", anchor=True),
}
"""Bytes with bytes whose sums become floats."""

_SUMS = rule("contraction.byte_products.sums")
"""Bytes with a constant matrix of bytes, whose sums are the result."""

_IMAGES: dict[type[Op], Rule] = {
    Conv2D: rule("contraction.dynamic_range_conv_fc", "lower_convolution"),
    DepthwiseConv2D: rule("contraction.dynamic_range_conv_fc", "lower_depthwise"),
}
"""The same for several images, each of which is a command: nothing may follow in it."""

_ELEMENTWISE: tuple[type[Op], ...] = (Unary, LeakyRelu, Binary, PRelu, Comparison, Quantize, Cast)
CHAIN = rule("elementwise.byte_chains", "lower")
"""For groups of operations that are a function of one byte together."""

_TABLES = (
    rule("elementwise.int8_lookup_tables", "lower_map", "why_no_map"),
    rule("elementwise.int8_lookup_tables", "lower_pairs", "why_no_pairs"),
)
"""Functions of elements are functions of bytes where they are given such, whichever they are."""


def rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    """The rules that may apply to an operation that reads or makes bytes, the best first."""
    if any(t is not None and t.dtype in _STORED for t in (*types.inputs, *types.outputs)):
        table = BYTES
        if type(op) in _REAL and types.output.dtype is DType.FLOAT32 and types.input(0).dtype is not DType.FLOAT32:
            table = _REAL
        elif type(op) in _DYNAMIC and types.output.dtype is DType.FLOAT32:
            several = type(op) in _IMAGES and types.input(0).shape[0] != 1
            table = _IMAGES if several else _DYNAMIC
            if isinstance(op, FullyConnected):
                yield _BLOCKS
        elif isinstance(op, BatchMatMul) and types.output.dtype is DType.INT32:
            yield _SUMS
        if type(op) in table:
            yield table[type(op)]
        if type(op) in _ELEMENTWISE:
            yield from _TABLES
