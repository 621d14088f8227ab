"""The rules for 16-bit integers, matrices of integers and complex numbers, by the kind of operation."""

from __future__ import annotations

from collections.abc import Iterator

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.binary import Binary
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.convert import Dequantize, Quantize
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.fully_connected import FullyConnected
from onert.ir.ops.matmul import BatchMatMul
from onert.ir.ops.pool import Pool2D
from onert.ir.ops.reduce import Reduce
from onert.ir.ops.softmax import Softmax
from onert.ir.ops.transpose_conv import TransposeConv2D
from onert.ir.ops.unary import LeakyRelu, Unary

from .rule import Rule, rule

_CONVERSION = rule("conversions")
_RESCALING = rule("short_elements", "lower_rescaled", "why_not_rescaled")
_MAPPING = rule("short_elements", "lower_mapped", "why_not_mapped")

SHORTS: dict[type[Op], tuple[Rule, ...]] = {
    Conv2D: (rule("short_products", "lower_convolution"),),
    DepthwiseConv2D: (rule("short_products", "lower_depthwise"),),
    FullyConnected: (rule("short_products", "lower_fully_connected"),),
    TransposeConv2D: (rule("integer_transposed", "lower_shorts", "why_not_shorts"),),
    Binary: (rule("short_elements", "lower_binary", "why_not_binary"),),
    Quantize: (_CONVERSION, _RESCALING),
    Dequantize: (_CONVERSION,),
    Pool2D: (rule("short_gathering", "lower_pool", "why_no_pool"),),
    Reduce: (rule("short_gathering", "lower_reduction", "why_no_reduction"),),
    Softmax: (rule("short_gathering", "lower_softmax", "why_no_softmax"),),
    Unary: (_RESCALING, _MAPPING),
    LeakyRelu: (_MAPPING,),
}
"""The best first."""

_MATRICES = rule("integer_matmul")
_PART = rule("fourier", "lower_part", "why_no_part")


def rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    """The rules that may apply to an operation on 16-bit integers, matrices of integers or complex numbers."""
    if isinstance(op, BatchMatMul) and types.input(0).dtype in (DType.INT8, DType.INT16):
        yield _MATRICES
    if any(t is not None and t.dtype is DType.INT16 for t in (*types.inputs, *types.outputs)) and type(op) in SHORTS:
        yield from SHORTS[type(op)]
    if isinstance(op, Unary) and types.input(0).dtype is DType.COMPLEX64:
        yield _PART
