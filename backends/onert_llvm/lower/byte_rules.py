"""The rules for operations on 8-bit integers, by the kind of operation."""

from __future__ import annotations

from collections.abc import Iterator

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.binary import Binary, PRelu
from onert.ir.ops.comparison import Comparison
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.convert import Cast, Dequantize, Quantize
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.fully_connected import FullyConnected
from onert.ir.ops.joining import Concat
from onert.ir.ops.pool import Pool2D
from onert.ir.ops.reduce import ArgReduce, Reduce
from onert.ir.ops.resize import ResizeBilinear
from onert.ir.ops.softmax import Softmax
from onert.ir.ops.transpose_conv import TransposeConv2D
from onert.ir.ops.unary import LeakyRelu, Unary

from .rule import Rule, rule

BYTES: dict[type[Op], Rule] = {
    Conv2D: rule("integer_products", "lower_convolution"),
    DepthwiseConv2D: rule("integer_products", "lower_depthwise"),
    FullyConnected: rule("integer_products", "lower_fully_connected"),
    TransposeConv2D: rule("integer_transposed"),
    Binary: rule("integer_arithmetic"),
    Pool2D: rule("integer_pooling", "lower_pool", "why_no_pool"),
    Reduce: rule("integer_pooling", "lower_reduction", "why_no_reduction"),
    ArgReduce: rule("integer_extremes"),
    Softmax: rule("integer_softmax"),
    ResizeBilinear: rule("integer_resize"),
    Concat: rule("integer_joining"),
    **dict.fromkeys((Quantize, Dequantize, Cast), rule("conversions")),
}

_DYNAMIC: dict[type[Op], Rule] = {
    Conv2D: rule("hybrid", "lower_convolution", anchor=True),
    DepthwiseConv2D: rule("hybrid", "lower_depthwise", anchor=True),
    FullyConnected: rule("hybrid", "lower_fully_connected", anchor=True),
}
"""Floats with filters of bytes."""

_ELEMENTWISE: tuple[type[Op], ...] = (Unary, LeakyRelu, Binary, PRelu, Comparison, Quantize, Cast)
_TABLES = (rule("tables", "lower_map", "why_no_map"), rule("tables", "lower_pairs", "why_no_pairs"))
"""Functions of elements are functions of bytes where they are given such, whichever they are."""


def rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    """The rules that may apply to an operation that reads or makes bytes, the best first."""
    if any(t is not None and t.dtype in (DType.INT8, DType.UINT8) for t in (*types.inputs, *types.outputs)):
        table = _DYNAMIC if type(op) in _DYNAMIC and types.output.dtype is DType.FLOAT32 else BYTES
        if type(op) in table:
            yield table[type(op)]
        if type(op) in _ELEMENTWISE:
            yield from _TABLES
