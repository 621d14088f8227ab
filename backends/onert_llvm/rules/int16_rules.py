"""The rules for 16-bit numbers, matrices of integers and complex numbers, by the kind of operation."""

from __future__ import annotations

from collections.abc import Iterator

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary
from onert.ir.ops.reduction.reduce import Reduce
from onert.ir.ops.reduction.softmax import Softmax
from onert_llvm.lower.rule import Rule, rule

_CONVERSION = rule("elementwise.conversions", "lower_scaled", "why_not_scaled")
_RESCALING = rule("elementwise.conversions", "lower_rescaled", "why_not_rescaled")
_MAPPING = rule("elementwise.conversions", "lower_mapped", "why_not_mapped")

SHORTS: dict[type[Op], tuple[Rule, ...]] = {
    Conv2D: (rule("contraction.int16_conv_fc", "lower_convolution"),),
    DepthwiseConv2D: (rule("contraction.int16_conv_fc", "lower_depthwise"),),
    FullyConnected: (rule("contraction.int16_conv_fc", "lower_fully_connected"),),
    TransposeConv2D: (rule("contraction.spatial.int_transpose_conv", "lower_shorts", "why_not_shorts"),),
    Binary: (rule("elementwise.integer_binary"),),
    Quantize: (_CONVERSION, _RESCALING),
    Dequantize: (_CONVERSION,),
    Reduce: (rule("reduction.integer_reduce"),),
    Softmax: (rule("reduction.integer_softmax"),),
    Unary: (_RESCALING, _MAPPING),
    LeakyRelu: (_MAPPING,),
}
"""The best first."""

_MATRICES = rule("contraction.batched.integers")
_WIDE_MATRICES = rule("contraction.batched.wide")
_PART = rule("vision_audio.rfft", "lower_part", "why_no_part")
_HALVES = rule("elementwise.conversions", "lower_halves", "why_not_halves")
_CHANNELS = rule("elementwise.conversions", "lower_channels", "why_not_channels")
_COMPLEX = rule("elementwise.conversions", "lower_complex", "why_not_complex")


def rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    """The rules that may apply to an operation on 16-bit numbers, matrices of integers or complex numbers."""
    if isinstance(op, BatchMatMul) and types.input(0).dtype in (DType.INT8, DType.INT16):
        yield _MATRICES
    if isinstance(op, BatchMatMul) and types.input(0).dtype in (DType.FLOAT64, DType.INT32, DType.INT64):
        yield _WIDE_MATRICES
    if any(t is not None and t.dtype is DType.INT16 for t in (*types.inputs, *types.outputs)) and type(op) in SHORTS:
        yield from SHORTS[type(op)]
    if isinstance(op, Unary) and types.input(0).dtype is DType.COMPLEX64:
        yield _PART
    if isinstance(op, Cast) and DType.COMPLEX64 in (types.input(0).dtype, types.output.dtype):
        yield _COMPLEX
    ends = (types.input(0).dtype, types.output.dtype) if isinstance(op, Cast | Dequantize) else ()
    if DType.FLOAT16 in ends or DType.BFLOAT16 in ends:
        yield _HALVES
    if isinstance(op, Dequantize) and _by_channel(types):
        yield _CHANNELS


def _by_channel(types: CallTypes) -> bool:
    """Whether the integers have scales of their own for each channel, or fewer bits than a byte."""
    scaled = types.input(0).quantization
    return scaled is not None and (not scaled.per_tensor or types.input(0).dtype is DType.INT4)
