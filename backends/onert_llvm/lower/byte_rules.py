"""The rules for operations on 8-bit integers, by the kind of operation."""

from __future__ import annotations

from collections.abc import Iterator

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.binary import Binary, PRelu
from onert.ir.ops.comparison import Comparison
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.convert import Cast, Dequantize, Quantize
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.detection import DetectionPostProcess
from onert.ir.ops.fully_connected import FullyConnected
from onert.ir.ops.joining import Concat
from onert.ir.ops.pool import Pool2D
from onert.ir.ops.reduce import ArgReduce, Reduce
from onert.ir.ops.resize import ResizeBilinear
from onert.ir.ops.softmax import Softmax
from onert.ir.ops.transpose_conv import TransposeConv2D
from onert.ir.ops.unary import LeakyRelu, Unary

from . import (
    conversions,
    detection,
    hybrid,
    integer_arithmetic,
    integer_extremes,
    integer_joining,
    integer_pooling,
    integer_products,
    integer_resize,
    integer_softmax,
    integer_transposed,
    tables,
)
from .rule import Rule

BYTES: dict[type[Op], Rule] = {
    Conv2D: Rule(integer_products.why_not, integer_products.lower_convolution),
    DepthwiseConv2D: Rule(integer_products.why_not, integer_products.lower_depthwise),
    FullyConnected: Rule(integer_products.why_not, integer_products.lower_fully_connected),
    TransposeConv2D: Rule(integer_transposed.why_not, integer_transposed.lower),
    Binary: Rule(integer_arithmetic.why_not, integer_arithmetic.lower),
    Pool2D: Rule(integer_pooling.why_no_pool, integer_pooling.lower_pool),
    Reduce: Rule(integer_pooling.why_no_reduction, integer_pooling.lower_reduction),
    ArgReduce: Rule(integer_extremes.why_not, integer_extremes.lower),
    Softmax: Rule(integer_softmax.why_not, integer_softmax.lower),
    ResizeBilinear: Rule(integer_resize.why_not, integer_resize.lower),
    Concat: Rule(integer_joining.why_not, integer_joining.lower),
    **dict.fromkeys((Quantize, Dequantize, Cast), Rule(conversions.why_not, conversions.lower)),
}

_DYNAMIC: dict[type[Op], Rule] = {
    Conv2D: Rule(hybrid.why_not, hybrid.lower_convolution, anchor=True),
    DepthwiseConv2D: Rule(hybrid.why_not, hybrid.lower_depthwise, anchor=True),
    FullyConnected: Rule(hybrid.why_not, hybrid.lower_fully_connected, anchor=True),
}
"""Floats with filters of bytes."""

_ELEMENTWISE: tuple[type[Op], ...] = (Unary, LeakyRelu, Binary, PRelu, Comparison, Quantize, Cast)
_TABLES = (Rule(tables.why_no_map, tables.lower_map), Rule(tables.why_no_pairs, tables.lower_pairs))
"""Functions of elements are functions of bytes where they are given such, whichever they are."""


_MIXED: dict[type[Op], Rule] = {DetectionPostProcess: Rule(detection.why_not, detection.lower)}
"""What takes floats and bytes alike."""


def rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    """The rules that may apply to an operation that reads or makes bytes, the best first."""
    if type(op) in _MIXED:
        yield _MIXED[type(op)]
    if any(t is not None and t.dtype in (DType.INT8, DType.UINT8) for t in (*types.inputs, *types.outputs)):
        table = _DYNAMIC if type(op) in _DYNAMIC and types.output.dtype is DType.FLOAT32 else BYTES
        if type(op) in table:
            yield table[type(op)]
        if type(op) in _ELEMENTWISE:
            yield from _TABLES
