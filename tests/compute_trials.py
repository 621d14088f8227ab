"""Random operands for computing operations: each kind with each element type and attributes, with a seed for each."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from cases.case import Case

from onert.ir import Array, DType, Op, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert.ir.ops.reduction.norm import L2Normalization
from onert.ir.ops.reduction.pool import Pool2D, Pooling
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.reduce_window import ReduceWindow, WindowReduction
from onert.ir.ops.reduction.scan import RFFT2D, CumSum
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor

Tensor = tuple[Array, Quantization | None, DType | None]

CLAMPS = (Activation.NONE, Activation.RELU6)
WINDOWS = (((1, 1), (1, 1), (1, 1)), ((3, 3), (2, 2), (1, 1)), ((3, 2), (1, 2), (2, 3)), ((5, 4), (3, 2), (1, 1)))
FILTERS = ("f32", "i8", "i8 tensor", "i4", "u8", "i16", "i16 narrow", "hybrid", "hybrid tensor")


class Draw:
    """Operands drawn at random, determined by the name."""

    def __init__(self, name: str) -> None:
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def real(self, shape: Sequence[int]) -> Tensor:
        return self.rng.normal(size=tuple(shape)).astype(np.float32), None, None

    def stored(self, dtype: Any, shape: Sequence[int], quantization: Quantization | None) -> Tensor:
        info = np.iinfo(dtype)
        return self.between(dtype, int(info.min), int(info.max), shape, quantization)

    def between(
        self, dtype: Any, low: int, high: int, shape: Sequence[int], quantization: Quantization | None
    ) -> Tensor:
        return self.rng.integers(low, high, tuple(shape), endpoint=True).astype(dtype), quantization, None

    def channels(self, count: int, axis: int) -> Quantization:
        scales = self.rng.uniform(0.001, 0.02, count).astype(np.float32)
        return Quantization(tuple(float(s) for s in scales), (0,) * count, axis)


def per_tensor(scale: float, zero: int = 0) -> Quantization:
    return Quantization((float(np.float32(scale)),), (zero,))


def case(name: str, op: Op, operands: Sequence[Tensor], result: Quantization | None, *constant: int) -> Case:
    """Dynamic-range sums are of integers and so exact, except in a transposed convolution (floats in LiteRT)."""
    exact = name.startswith("hybrid") and not isinstance(op, TransposeConv2D)
    return Case(
        name,
        op,
        tuple(o[0] for o in operands),
        quantization=tuple(o[1] for o in operands),
        result_quantization=(result,),
        dtypes=tuple(o[2] for o in operands),
        constant=constant,
        tolerance=0.0 if exact else 3e-6,
    )


def filtered(
    draw: Draw, kind: str, x: Sequence[int], weight: Sequence[int], outputs: int, axis: int
) -> tuple[Tensor, Tensor, Tensor, Quantization | None]:
    """Input, filter, bias and result quantisation of a layer with filters, whose outputs are along `axis`."""
    if kind == "f32":
        return draw.real(x), draw.real(weight), draw.real((outputs,)), None
    if kind.startswith("hybrid"):
        scales = per_tensor(0.01) if kind == "hybrid tensor" else draw.channels(outputs, axis)
        return draw.real(x), draw.between(np.int8, -127, 127, weight, scales), draw.real((outputs,)), None
    if kind == "u8":
        image, filters = per_tensor(0.05, 120), per_tensor(0.0131, 131)
        bias = draw.between(np.int32, -5000, 5000, (outputs,), per_tensor(0.05 * 0.0131))
        return draw.stored(np.uint8, x, image), draw.stored(np.uint8, weight, filters), bias, per_tensor(0.13, 110)
    scales = per_tensor(0.013) if kind == "i8 tensor" else draw.channels(outputs, axis)
    signed = draw.between(np.int8, -127, 127, weight, scales)
    if kind.startswith("i16"):
        narrow = kind == "i16 narrow"
        reach = 3000 if narrow else 32767
        image = draw.between(np.int16, -reach, reach, x, per_tensor(0.0005))
        bias = draw.between(np.int32 if narrow else np.int64, -500000, 500000, (outputs,), per_tensor(1e-6))
        return image, signed, bias, per_tensor(0.0011)
    if kind == "i4":
        signed = (draw.between(np.int8, -8, 7, weight, None)[0], scales, DType.INT4)
    bias = draw.between(np.int32, -5000, 5000, (outputs,), per_tensor(0.05 * 0.013))
    return draw.stored(np.int8, x, per_tensor(0.05, 3)), signed, bias, per_tensor(0.11, -7)


def convolutions() -> Iterator[Case]:
    for kind, (window, stride, dilation), padding, clamp in product(FILTERS, WINDOWS, Padding, CLAMPS):
        name = f"{kind} {window} by {stride} dilated {dilation} {padding.value} {clamp.name}"
        attributes = (padding, *stride, *dilation, clamp)
        groups = 1 if clamp is Activation.NONE or kind == "hybrid tensor" else 4
        *operands, result = filtered(Draw(name), kind, (2, 9, 10, 8), (12, *window, 8 // groups), 12, 0)
        yield case(name, Conv2D(*attributes), operands, result, 1, 2)
        if kind in ("i16 narrow", "hybrid tensor"):
            continue
        *operands, result = filtered(Draw(name), kind, (2, 9, 10, 6), (1, *window, 12), 12, 3)
        yield case(name, DepthwiseConv2D(*attributes), operands, result, 1, 2)


def transposed_convolutions() -> Iterator[Case]:
    kinds = ("f32", "i8", "u8", "i16", "hybrid")
    steps = (((3, 3), (1, 1)), ((3, 3), (2, 2)), ((2, 2), (3, 3)), ((4, 3), (2, 3)))
    for kind, (window, stride), padding, clamp in product(kinds, steps, Padding, CLAMPS):
        name = f"{kind} {window} by {stride} {padding.value} {clamp.name}"
        grown = [
            n * s if padding is Padding.SAME else (n - 1) * s + w
            for n, s, w in zip((4, 5), stride, window, strict=True)
        ]
        image, filters, bias, result = filtered(Draw(name), kind, (2, 4, 5, 6), (5, *window, 6), 5, 0)
        shape = (np.array([2, *grown, 5], np.int32), None, None)
        yield case(name, TransposeConv2D(padding, *stride, clamp), [shape, filters, image, bias], result, 0, 1, 3)


def spatial_convolutions() -> Iterator[Case]:
    steps = (((3, 2, 3), (1, 1, 1), (1, 1, 1)), ((3, 3, 3), (2, 1, 2), (1, 1, 1)), ((2, 2, 2), (1, 1, 1), (2, 1, 2)))
    for (window, stride, dilation), padding in product(steps, Padding):
        name = f"{window} by {stride} dilated {dilation} {padding.value}"
        draw, attributes = Draw(name), (padding, *stride, *dilation, Activation.RELU)
        x, bias = draw.real((2, 5, 6, 7, 3)), draw.real((4,))
        yield case(name, Conv3D(*attributes), [x, draw.real((*window, 3, 4)), bias], None, 1, 2)
        grown = [
            n * s if padding is Padding.SAME else (n - 1) * s + (w - 1) * d + 1
            for n, s, w, d in zip((5, 6, 7), stride, window, dilation, strict=True)
        ]
        shape = (np.array([2, *grown, 4], np.int32), None, None)
        yield case(name, TransposeConv3D(*attributes), [shape, draw.real((*window, 4, 3)), x, bias], None, 0, 1, 3)


def products() -> Iterator[Case]:
    for kind, shape, clamp, asymmetric in product(FILTERS, ((4, 32), (2, 4, 8), (3, 2, 32)), CLAMPS, (False, True)):
        if asymmetric and not kind.startswith("hybrid"):
            continue
        keep = shape[-1] == 32 and clamp is Activation.RELU6
        name = f"{kind} {shape} {clamp.name} asymmetric {asymmetric}"
        *operands, result = filtered(Draw(name), kind, shape, (9, 32), 9, 0)
        yield case(name, FullyConnected(clamp, keep, asymmetric), operands, result, 1, 2)
    batches = (((), ()), ((3,), (3,)), ((2, 1), (1, 3)), ((), (3,)), ((4,), ()))
    for kind, batch, left, right in product(
        ("f32", "i8", "i8 to i32", "i16", "hybrid"), batches, (False, True), (False, True)
    ):
        name = f"{kind} {batch} {left} {right}"
        draw = Draw(name)
        x = (*batch[0], 7, 5) if left else (*batch[0], 5, 7)
        y = (*batch[1], 6, 7) if right else (*batch[1], 7, 6)
        yield _matrices(name, draw, kind, x, y, BatchMatMul(left, right, output=DType.INT32 if "to" in kind else None))


def _matrices(name: str, draw: Draw, kind: str, x: Sequence[int], y: Sequence[int], op: BatchMatMul) -> Case:
    if kind == "f32":
        return case(name, op, [draw.real(x), draw.real(y)], None)
    if kind == "hybrid":
        return case(name, op, [draw.real(x), draw.between(np.int8, -127, 127, y, per_tensor(0.01))], None, 1)
    dtype = np.int16 if kind == "i16" else np.int8
    scales = (per_tensor(0.0005), per_tensor(0.0004)) if kind == "i16" else (per_tensor(0.05, 3), per_tensor(0.04, -9))
    result = None if op.output else per_tensor(0.01) if kind == "i16" else per_tensor(0.4, 5)
    return case(name, op, [draw.stored(dtype, x, scales[0]), draw.stored(dtype, y, scales[1])], result)


_STORED = {
    "i8": (np.int8, per_tensor(0.05, 3), per_tensor(0.04, -5)),
    "u8": (np.uint8, per_tensor(0.05, 103), per_tensor(0.04, 85)),
    "i16": (np.int16, per_tensor(0.0005), per_tensor(0.0007)),
    "i32": (np.int32, None, None),
    "i64": (np.int64, None, None),
    "bool": (np.bool_, None, None),
}


def _any(draw: Draw, kind: str, shape: Sequence[int]) -> Tensor:
    if kind == "f32":
        return draw.real(shape)
    dtype, quantization, _ = _STORED[kind]
    if quantization is None:
        return draw.between(dtype, 0, 1 if kind == "bool" else 1000, shape, None)
    return draw.stored(dtype, shape, quantization)


def pools() -> Iterator[Case]:
    sizes = (((2, 2), (2, 2)), ((3, 3), (1, 1)), ((3, 2), (2, 3)), ((9, 11), (1, 1)), ((3, 3), (4, 5)))
    for kind, pooling, (window, stride), padding, clamp in product(
        ("f32", "i8", "u8", "i16"), Pooling, sizes, Padding, CLAMPS
    ):
        if pooling is Pooling.L2 and kind != "f32":
            continue
        name = f"{kind} {window} by {stride} {padding.value} {clamp.name}"
        x = _any(Draw(name), kind, (2, 9, 11, 3))
        yield case(name, Pool2D(pooling, *window, padding, *stride, clamp), [x], x[1])


def reductions() -> Iterator[Case]:
    shapes = (
        ((3, 4, 5, 6), (1, 2)),
        ((3, 4, 5, 6), (3, 1)),
        ((3, 4, 5, 6), (0, 1, 2, 3)),
        ((7,), (0,)),
        ((2, 50, 40), (1, 1, -1)),
    )
    for reduction, kind, (shape, axes), keep in product(Reduction, ("f32", *_STORED), shapes, (False, True)):
        logical = reduction in (Reduction.ANY, Reduction.ALL)
        if logical is not (kind == "bool") or (reduction is Reduction.PROD and kind == "u8"):
            continue
        if reduction is Reduction.SUM and kind in ("i8", "i16"):
            continue  # LiteRT's reference kernel ignores the scale of the sums
        name = f"{kind} {shape} {axes} {keep}"
        x = _any(Draw(name), kind, shape)
        result = x[1] if reduction in (Reduction.MAX, Reduction.MIN) or x[1] is None else _STORED[kind][2]
        given = (np.array(axes, np.int32), None, None)
        yield case(name, Reduce(reduction, keep), [x, given], result, 1)
    for extreme, kind, axis, index in product(
        Extreme, ("f32", "i8", "u8", "i32", "bool"), (0, 1, -1), (DType.INT32, DType.INT64)
    ):
        name = f"{kind} {axis} {index.text}"
        x = _any(Draw(name), kind, (3, 40, 5))
        yield case(name, ArgReduce(extreme, index), [x, (np.array([axis], np.int32), None, None)], None, 1)


def softmaxes() -> Iterator[Case]:
    results = {"i8": per_tensor(1 / 256, -128), "u8": per_tensor(1 / 256), "i16": per_tensor(1 / 32768)}
    logarithms = {"i8": per_tensor(1 / 16, 127), "u8": per_tensor(1 / 16, 255)}
    units = {"i8": per_tensor(1 / 128), "u8": per_tensor(1 / 128, 128)}
    for kind, shape, scale, beta in product(
        ("f32", "i8", "u8", "i16"), ((5,), (3, 10), (2, 3, 501)), (0.01, 0.1, 2.0), (1.0, 0.5)
    ):
        name = f"{kind} {shape} scale {scale} beta {beta}"
        array, quantization, _ = _any(Draw(name), kind, shape)
        if quantization is not None:
            step = scale / 256 if kind == "i16" else scale
            quantization = per_tensor(step, quantization.zero_point)
        x = (array, quantization, None)
        yield case(name, Softmax(beta), [x], results.get(kind))
        if quantization is not None and kind != "i16":
            yield case(name, Softmax(beta, DType.INT16), [x], results["i16"])
        if kind != "i16":
            yield case(name, LogSoftmax(), [x], logarithms.get(kind))
            yield case(name, L2Normalization(), [x], units.get(kind))


def resizes() -> Iterator[Case]:
    sizes = (((3, 4), (6, 8)), ((7, 5), (3, 9)), ((1, 1), (4, 5)), ((4, 4), (1, 1)), ((65, 33), (7, 57)))
    modes = ((False, False), (True, False), (False, True), (True, True))
    for kind, (before, after), mode in product(("f32", "i8", "u8", "i16"), sizes, modes):
        name = f"{kind} {before} to {after} {mode}"
        x = _any(Draw(name), kind, (2, *before, 3))
        size = (np.array(after, np.int32), None, None)
        yield case(name, ResizeNearestNeighbor(*mode), [x, size], x[1], 1)
        if not all(mode):
            yield case(name, ResizeBilinear(*mode), [x, size], x[1], 1)


def window_reductions() -> Iterator[Case]:
    windows = (((2, 2), (1, 1), (1, 1)), ((3, 1), (2, 2), (1, 3)), ((2, 3), (1, 2), (2, 2)), ((9, 9), (1, 1), (1, 1)))
    for reduction, kind, window in product(WindowReduction, ("f32", "i8", "u8", "i16", "i32", "i64", "bool"), windows):
        logical = reduction in (WindowReduction.ALL, WindowReduction.ANY)
        if logical is not (kind == "bool"):
            continue
        name = f"{kind} {window}"
        draw = Draw(name)
        x = (_any(draw, kind, (5, 7))[0], None, None)
        start = (draw.rng.integers(0, 1, 1, endpoint=True).astype(x[0].dtype), None, None)
        steps = [(np.array(s, np.int64), None, None) for s in window]
        yield case(name, ReduceWindow(reduction), [x, start, *steps], None, 1, 2, 3, 4)


def scans() -> Iterator[Case]:
    for kind, exclusive, reverse, axis in product(("f32", "i32", "i64"), (False, True), (False, True), (0, 1, -1)):
        name = f"{kind} {exclusive} {reverse} {axis}"
        x = _any(Draw(name), kind, (3, 4, 5))
        yield case(name, CumSum(exclusive, reverse), [x, (np.array([axis], np.int32), None, None)], None, 1)
    for shape, length in (((2, 8, 8), (8, 8)), ((7, 9), (4, 16)), ((3, 5), (8, 8)), ((4, 4), (4, 2))):
        name = f"{shape} {length}"
        yield case(name, RFFT2D(), [Draw(name).real(shape), (np.array(length, np.int32), None, None)], None, 1)


LAYERS = (convolutions, transposed_convolutions, products, pools, reductions, softmaxes)
