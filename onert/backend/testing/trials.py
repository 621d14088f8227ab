"""The table of trials: operations of many kinds, element types and shapes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onert.ir import Array, DType, Quantization, TensorType
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, Split
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.data_movement.slicing import Pad, StridedSlice
from onert.ir.ops.elementwise.binary import ROUNDED_ONCE, Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast, Dequantize, Quantize
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.elementwise.unary import LeakyRelu, Unary, UnaryKind
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.ops.vision_audio.resize import ResizeBilinear

from .trial import Trial

F32, I8, I32 = DType.FLOAT32, DType.INT8, DType.INT32
SHAPES = ((1,), (7,), (3, 5), (2, 3, 4), (1, 4, 5, 3), (1, 8, 8, 16))
BROADCASTS = (((3, 5), (5,)), ((2, 1, 4), (3, 1)), ((1, 4, 5, 3), (1, 1, 1, 3)), ((4, 4), ()))
IMAGES = ((1, 8, 8, 3), (1, 7, 9, 8), (2, 5, 6, 4))


def f32(*shape: int) -> TensorType:
    return TensorType(F32, shape)


def i8(*shape: int, scale: float = 0.05, zero: int = -3) -> TensorType:
    return TensorType(I8, shape, Quantization((scale,), (zero,)))


def _numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _ints(*values: int) -> Array:
    return np.array(values, np.int32)


def _elementwise() -> Iterator[Trial]:
    for kind in ROUNDED_ONCE:
        for shape in SHAPES:
            yield Trial(f"{kind.name} f32 {shape}", Binary(kind), (f32(*shape), f32(*shape)))
        for x, y in BROADCASTS:
            yield Trial(f"{kind.name} f32 {x} {y}", Binary(kind), (f32(*x), f32(*y)))
    for activation in (Activation.RELU, Activation.RELU6):
        yield Trial(f"ADD f32 {activation.name}", Binary(BinaryKind.ADD, activation), (f32(3, 5), f32(3, 5)))
    for kind in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL):
        yield Trial(f"{kind.name} i32", Binary(kind), (TensorType(I32, (3, 5)), TensorType(I32, (3, 5))))
        yield Trial(
            f"{kind.name} i8",
            Binary(kind),
            (i8(1, 5, 5, 8), i8(1, 5, 5, 8, scale=0.02)),
            quantization=Quantization((0.07,), (5,)),
        )
    for function in ("ABS", "NEG", "EXP", "SQRT", "RSQRT", "TANH", "LOGISTIC", "RELU", "RELU6", "HARD_SWISH"):
        if function in UnaryKind.__members__:
            kind_ = UnaryKind[function]
            yield from (Trial(f"{function} f32 {shape}", Unary(kind_), (f32(*shape),), 1e-5) for shape in SHAPES)
    yield Trial("LEAKY_RELU f32", LeakyRelu(0.2), (f32(3, 5),))
    for relation in ComparisonKind:
        yield Trial(f"{relation.name} i32", Comparison(relation), (TensorType(I32, (3, 5)), TensorType(I32, (5,))))
    yield Trial("SELECT f32", Select(), (TensorType(DType.BOOL, (3, 5)), f32(3, 5), f32(3, 5)))
    yield Trial("CAST i32 to f32", Cast(F32), (TensorType(I32, (3, 5)),))
    yield Trial("QUANTIZE f32 to i8", Quantize(I8), (f32(3, 5),), quantization=Quantization((0.03,), (4,)))
    yield Trial("DEQUANTIZE i8 to f32", Dequantize(), (i8(3, 5),))


def _products() -> Iterator[Trial]:
    for padding in Padding:
        for stride, dilation in ((1, 1), (2, 1), (1, 2)):
            name = f"{padding.name} stride {stride} dilation {dilation}"
            steps = (padding, stride, stride, dilation, dilation)
            for image in IMAGES:
                weight = _numbers(6, 3, 3, image[3])
                yield Trial(f"CONV_2D f32 {image} {name}", Conv2D(*steps), (f32(*image), weight, _numbers(6)))
                filters = _numbers(1, 3, 3, image[3] * 2)
                operands = (f32(*image), filters, _numbers(image[3] * 2))
                yield Trial(f"DEPTHWISE_CONV_2D f32 {image} {name}", DepthwiseConv2D(*steps), operands)
    yield Trial("CONV_2D f32 1x1 without bias", Conv2D(), (f32(1, 6, 6, 16), _numbers(24, 1, 1, 16), None))
    for rows, depth, columns in ((1, 16, 10), (4, 7, 3), (33, 64, 65)):
        operands = (f32(rows, depth), _numbers(columns, depth), _numbers(columns))
        yield Trial(f"FULLY_CONNECTED f32 {rows}x{depth}x{columns}", FullyConnected(), operands, 1e-4)
        pair = (f32(2, rows, depth), f32(2, depth, columns))
        yield Trial(f"BATCH_MATMUL f32 {rows}x{depth}x{columns}", BatchMatMul(), pair, 1e-4)


def _rows() -> Iterator[Trial]:
    for kind in (Pooling.AVERAGE, Pooling.MAX):
        for padding in Padding:
            op = Pool2D(kind, 3, 2, padding, 2, 1)
            yield from (Trial(f"{kind.name}_POOL f32 {image} {padding.name}", op, (f32(*image),)) for image in IMAGES)
    for shape in ((1, 10), (3, 7), (2, 3, 5)):
        yield Trial(f"SOFTMAX f32 {shape}", Softmax(), (f32(*shape),))
    for kind_ in (Reduction.MEAN, Reduction.SUM, Reduction.MAX, Reduction.MIN):
        yield Trial(f"{kind_.name} f32", Reduce(kind_, keep_dims=True), (f32(1, 4, 5, 3), _ints(1, 2)))
    yield Trial("RESIZE_BILINEAR f32", ResizeBilinear(), (f32(1, 4, 5, 3), _ints(8, 7)))


def _movement() -> Iterator[Trial]:
    for type_ in (f32(2, 3, 4), TensorType(I32, (2, 3, 4)), i8(2, 3, 4)):
        kind, same = type_.dtype.text, type_.quantization
        yield Trial(f"RESHAPE {kind}", Reshape(), (type_, _ints(4, 6)), quantization=same)
        yield Trial(f"TRANSPOSE {kind}", Transpose(), (type_, _ints(2, 0, 1)), quantization=same)
        yield Trial(f"CONCATENATION {kind}", Concat(1), (type_, type_), quantization=same)
        yield Trial(f"SPLIT {kind}", Split(3), (_ints(1).reshape(()), type_), quantization=same)
        pads = np.array([[0, 0], [1, 2], [0, 1]], np.int32)
        yield Trial(f"PAD {kind}", Pad(), (type_, pads), quantization=same)
        slices = (type_, _ints(0, 1, 0), _ints(2, 3, 4), _ints(1, 1, 2))
        yield Trial(f"STRIDED_SLICE {kind}", StridedSlice(), slices, quantization=same)
        yield Trial(f"GATHER {kind}", Gather(1), (type_, _ints(2, 0, 0)), quantization=same)


TRIALS: tuple[Trial, ...] = (*_elementwise(), *_products(), *_rows(), *_movement())
"""All trials; each is a separate test."""
