"""The rules for 8-bit and 16-bit integers, integer products, half-precision floats and complex numbers, by kind."""

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
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.ops.vision_audio.resize import ResizeBilinear
from onert_llvm.lower.rule import Rule, rule

_STORED = frozenset((DType.INT8, DType.UINT8, DType.INT4, DType.INT2))
"""Integers of 8 bits or less, each stored in a byte."""

_FLOATS = frozenset((DType.FLOAT32,))
"""Operations with only these types have no rules here."""

_SCALED = rule("elementwise.conversions", "lower_scaled", "why_not_scaled")
_QUANTIZED: dict[type[Op], Rule] = {
    Binary: rule("elementwise.integer_binary"),
    Reduce: rule("reduction.integer_reduce"),
    Softmax: rule("reduction.integer_softmax"),
    LogSoftmax: rule("reduction.integer_softmax", "lower_logarithm", "why_no_logarithm"),
    Quantize: _SCALED,
    Dequantize: _SCALED,
    ResizeBilinear: rule("vision_audio.integer_resize"),
}
"""Shared by bytes and 16-bit integers."""

BYTES: dict[type[Op], Rule] = {
    **_QUANTIZED,
    Conv2D: rule("contraction.int8_conv_fc", "lower_convolution", tabled=True),
    DepthwiseConv2D: rule("contraction.int8_conv_fc", "lower_depthwise", tabled=True),
    FullyConnected: rule("contraction.int8_conv_fc", "lower_fully_connected", tabled=True),
    TransposeConv2D: rule("contraction.spatial.int_transpose_conv"),
    Concat: rule("elementwise.int8_lookup_tables", "lower_concat", "why_no_concat"),
}

_TRANSPOSED = rule("contraction.spatial.hybrid_transpose_conv")
_DYNAMIC: dict[type[Op], Rule] = {
    Conv2D: rule("contraction.dynamic_range_conv_fc", "lower_convolution", anchor=True),
    DepthwiseConv2D: rule("contraction.dynamic_range_conv_fc", "lower_depthwise", anchor=True),
    FullyConnected: rule("contraction.dynamic_range_conv_fc", "lower_fully_connected", anchor=True),
    TransposeConv2D: _TRANSPOSED,
    BatchMatMul: rule("contraction.batched.dynamic_range"),
}
"""Floats with byte filters."""

_BLOCKS = rule("contraction.byte_products.blocks", anchor=True)
"""Floats with filters whose scales change along a row."""

_REAL: dict[type[Op], Rule] = {
    Conv2D: rule("contraction.byte_products.layers", "lower_convolution", anchor=True, tabled=True),
    DepthwiseConv2D: rule("contraction.byte_products.layers", "lower_depthwise", anchor=True, tabled=True),
    FullyConnected: rule("contraction.byte_products.layers", "lower_fully_connected", anchor=True, tabled=True),
    BatchMatMul: rule("contraction.byte_products.batches", anchor=True),
}
"""Products of bytes whose sums become floats."""

_SUMS = rule("contraction.byte_products.sums")
"""Products of bytes and a constant byte matrix, whose sums are the result."""

_IMAGES: dict[type[Op], Rule] = {
    Conv2D: rule("contraction.dynamic_range_conv_fc", "lower_convolution"),
    DepthwiseConv2D: rule("contraction.dynamic_range_conv_fc", "lower_depthwise"),
}
"""The same for several images, each of which is a separate command, so that nothing can be fused."""

_ELEMENTWISE: tuple[type[Op], ...] = (Unary, LeakyRelu, Binary, PRelu, Comparison, Quantize, Cast)
CHAIN = rule("elementwise.byte_chains", "lower")
"""For groups of operations that together are a function of one byte."""

WIDENED = rule("reduction.widened_sums", "lower")
"""For groups of a conversion from bytes and a sum of 32-bit integers."""

_TABLES = (
    rule("elementwise.int8_lookup_tables", "lower_map", "why_no_map"),
    rule("elementwise.int8_lookup_tables", "lower_pairs", "why_no_pairs"),
)
"""Any element-wise function of bytes is a table."""


_RESCALING = rule("elementwise.conversions", "lower_rescaled", "why_not_rescaled")
_MAPPING = rule("elementwise.conversions", "lower_mapped", "why_not_mapped")

SHORTS: dict[type[Op], tuple[Rule, ...]] = {
    **{kind: (found,) for kind, found in _QUANTIZED.items()},
    Conv2D: (rule("contraction.int16_conv_fc", "lower_convolution"),),
    DepthwiseConv2D: (rule("contraction.int16_conv_fc", "lower_depthwise"),),
    FullyConnected: (rule("contraction.int16_conv_fc", "lower_fully_connected"),),
    TransposeConv2D: (rule("contraction.spatial.int_transpose_conv", "lower_shorts", "why_not_shorts"),),
    Quantize: (_SCALED, _RESCALING),
    Unary: (_RESCALING, _MAPPING),
    LeakyRelu: (_MAPPING,),
}
"""By kind of operation, the best first."""

_MATRICES = rule("contraction.batched.integers")
_WIDE_MATRICES = rule("contraction.batched.wide")
_PART = rule("vision_audio.rfft", "lower_part", "why_no_part")
_HALVES = rule("elementwise.conversions", "lower_halves", "why_not_halves")
_CHANNELS = rule("elementwise.conversions", "lower_channels", "why_not_channels")
_COMPLEX = rule("elementwise.conversions", "lower_complex", "why_not_complex")


def rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    """The rules that may apply to an operation with element types other than float32, the best first."""
    dtypes = {t.dtype for t in (*types.inputs, *types.outputs) if t is not None}
    if dtypes == _FLOATS:
        return
    if isinstance(op, BatchMatMul) and types.input(0).dtype in (DType.INT8, DType.INT16):
        yield _MATRICES
    if isinstance(op, BatchMatMul) and types.input(0).dtype in (DType.FLOAT64, DType.INT32, DType.INT64):
        yield _WIDE_MATRICES
    if DType.INT16 in dtypes and type(op) in SHORTS:
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
    if not dtypes.isdisjoint(_STORED):
        yield from _byte_rules(op, types)


def _byte_rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    """The rules that may apply to an operation that reads or computes bytes, the best first."""
    table = BYTES
    if type(op) in _REAL and types.output.dtype is DType.FLOAT32 and types.input(0).dtype is not DType.FLOAT32:
        table = _REAL
    elif type(op) in _DYNAMIC and types.output.dtype is DType.FLOAT32:
        several = type(op) in _IMAGES and types.input(0).shape[0] != 1
        table = _IMAGES if several else _DYNAMIC
        if isinstance(op, FullyConnected):
            yield _BLOCKS
    elif isinstance(op, BatchMatMul) and types.output.dtype is DType.INT32:
        yield from (_SUMS, _REAL[BatchMatMul])
    if type(op) in table:
        yield table[type(op)]
    if type(op) in _ELEMENTWISE:
        yield from _TABLES


def _by_channel(types: CallTypes) -> bool:
    """Whether the integers have per-channel scales, or fewer bits than a byte."""
    scaled = types.input(0).quantization
    return scaled is not None and (not scaled.per_tensor or types.input(0).dtype is DType.INT4)
