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

from . import conversions, fourier, integer_matmul, integer_transposed, short_elements, short_gathering, short_products
from .rule import Rule

_CONVERSION = Rule(conversions.why_not, conversions.lower)
_RESCALING = Rule(short_elements.why_not_rescaled, short_elements.lower_rescaled)
_MAPPING = Rule(short_elements.why_not_mapped, short_elements.lower_mapped)

SHORTS: dict[type[Op], tuple[Rule, ...]] = {
    Conv2D: (Rule(short_products.why_not, short_products.lower_convolution),),
    DepthwiseConv2D: (Rule(short_products.why_not, short_products.lower_depthwise),),
    FullyConnected: (Rule(short_products.why_not, short_products.lower_fully_connected),),
    TransposeConv2D: (Rule(integer_transposed.why_not_shorts, integer_transposed.lower_shorts),),
    Binary: (Rule(short_elements.why_not_binary, short_elements.lower_binary),),
    Quantize: (_CONVERSION, _RESCALING),
    Dequantize: (_CONVERSION,),
    Pool2D: (Rule(short_gathering.why_no_pool, short_gathering.lower_pool),),
    Reduce: (Rule(short_gathering.why_no_reduction, short_gathering.lower_reduction),),
    Softmax: (Rule(short_gathering.why_no_softmax, short_gathering.lower_softmax),),
    Unary: (_RESCALING, _MAPPING),
    LeakyRelu: (_MAPPING,),
}
"""The best first."""

_MATRICES = Rule(integer_matmul.why_not, integer_matmul.lower)
_PART = Rule(fourier.why_no_part, fourier.lower_part)


def rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    """The rules that may apply to an operation on 16-bit integers, matrices of integers or complex numbers."""
    if isinstance(op, BatchMatMul) and types.input(0).dtype in (DType.INT8, DType.INT16):
        yield _MATRICES
    if any(t is not None and t.dtype is DType.INT16 for t in (*types.inputs, *types.outputs)) and type(op) in SHORTS:
        yield from SHORTS[type(op)]
    if isinstance(op, Unary) and types.input(0).dtype is DType.COMPLEX64:
        yield _PART
