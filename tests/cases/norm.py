"""Cases of softmax, normalisations and resizing."""

from __future__ import annotations

from typing import Any

import numpy as np
from formulas import floats, spread

from onert.ir import Array, DType, Op, Quantization
from onert.ir.ops.reduction.norm import InstanceNorm, L2Normalization, LocalResponseNormalization, RmsNorm
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.ops.vision_audio.resize import ResizeBilinear, ResizeNearestNeighbor

from .case import Case, scaled


def _exponential(x: Array, beta: float) -> Array:
    powers = np.exp(beta * x.astype(np.float64))
    return powers / powers.sum(axis=-1, keepdims=True)


def _local(x: Array, op: LocalResponseNormalization) -> Array:
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        first, last = max(at[-1] - op.radius, 0), at[-1] + op.radius
        squares = sum(float(v) ** 2 for v in x[at[:-1]][first : last + 1])
        out[at] = x[at] * (op.bias + op.alpha * squares) ** -op.beta
    return out.astype(np.float32)


_X = floats((2, 3, 5))
_I8 = spread((2, 6), -128, 127).astype(np.int8)
_U8 = spread((2, 6), 0, 255).astype(np.uint8)
_IMAGE = np.float32([[1, 2], [3, 4]]).reshape(1, 2, 2, 1)
_LRN = LocalResponseNormalization(1, 2.0, 0.5, 0.75)
_WIDE = LocalResponseNormalization(9, 1.0, 1.0, 0.5)
_MEAN, _VARIANCE = _X.mean(axis=(0, 1)), _X.var(axis=(0, 1))


def _resized(
    name: str, op: ResizeBilinear | ResizeNearestNeighbor, x: Array, wanted: list[Any], q: Quantization | None = None
) -> Case:
    """An image and the rows of the result, both quantised by `q` unless it is None."""
    size = len(wanted), len(wanted[0])
    expected = np.array(wanted, x.dtype).reshape(1, *size, -1)
    return Case(name, op, (x, np.int32(size)), (expected,), (q,), (q,), constant=(1,))


def _stored(name: str, op: Op, x: Array, wanted: list[list[int]], *q: Quantization) -> Case:
    """Quantised integers; `q` are the quantisations of x and the result."""
    return Case(name, op, (x,), (np.array(wanted, x.dtype),), q[:1], q[1:])


CASES = [
    Case("softmax", Softmax(), (_X,), (_exponential(_X, 1).astype(np.float32),)),
    Case("softmax with beta", Softmax(0.5), (_X,), (_exponential(_X, 0.5).astype(np.float32),)),
    Case("softmax of large numbers", Softmax(), (np.float32([1000, 1000]),), (np.float32([0.5, 0.5]),)),
    Case("softmax of nothing", Softmax(), (np.zeros((2, 0), np.float32),), (np.zeros((2, 0), np.float32),)),
    _stored(
        "int8 softmax",
        Softmax(),
        _I8,
        [[-128, -128, -127, -123, -94, 88], [120, -128, -128, -128, -127, -121]],
        scaled(0.05, 3),
        scaled(1 / 256, -128),
    ),
    _stored(
        "uint8 softmax with beta",
        Softmax(0.7),
        _U8,
        [[0, 1, 4, 14, 51, 186], [230, 0, 0, 1, 5, 19]],
        scaled(0.05, 3),
        scaled(1 / 256),
    ),
    Case(
        "int8 softmax to int16",
        Softmax(output=DType.INT16),
        (_I8,),
        (np.int16([[-32597, -32249, -31193, -27990, -18269, 11226], [22933, -32690, -32531, -32049, -30587, -26149]]),),
        (scaled(0.03, 3),),
        (scaled(1 / 32768),),
    ),
    _stored(
        "int16 softmax",
        Softmax(),
        spread((2, 6), -32768, 32767, 9973).astype(np.int16),
        [[2, 10, 71, 525, 3852, 28310], [31193, 2, 4, 26, 185, 1359]],
        scaled(0.0002),
        scaled(1 / 32768),
    ),
    _stored("int8 softmax in another scale", Softmax(), np.int8([[0, 0]]), [[50, 50]], scaled(0.1), scaled(0.01)),
    Case("log softmax", LogSoftmax(), (_X,), (np.log(_exponential(_X, 1)).astype(np.float32),)),
    *(
        _stored(f"{x.dtype} log softmax", LogSoftmax(), x, wanted, scaled(0.05, 3), scaled(1 / 16, zero))
        for x, wanted, zero in (
            (_I8, [[-24, 6, 35, 65, 95, 124], [126, -49, -19, 10, 40, 70]], 127),
            (_U8, [[104, 134, 163, 193, 223, 252], [254, 79, 109, 138, 168, 198]], 255),
        )
    ),
    Case(
        "unit vectors",
        L2Normalization(),
        (np.float32([[3, 4], [0, 0], [-5, 0]]),),
        (np.float32([[0.6, 0.8], [0, 0], [-1, 0]]),),
    ),
    *(
        _stored(f"{x.dtype} unit vectors", L2Normalization(), x, wanted, scaled(0.05, zero), scaled(1 / 128, middle))
        for x, wanted, zero, middle in (
            (_I8, [[-93, -66, -40, -14, 12, 38], [61, -86, -61, -36, -11, 13]], 3, 0),
            (_U8, [[46, 76, 107, 137, 167, 198], [216, 58, 85, 111, 138, 165]], 100, 128),
        )
    ),
    _stored(
        "int8 unit vectors in another scale", L2Normalization(), np.int8([[3, 4]]), [[6, 8]], scaled(0.3), scaled(0.1)
    ),
    Case("neighbouring channels", _LRN, (_X,), (_local(_X, _LRN),)),
    Case("all channels", _WIDE, (_X,), (_local(_X, _WIDE),)),
    Case(
        "instances",
        InstanceNorm(0.125),
        (_X.reshape(1, 2, 3, 5), np.float32([1, 2, 3, 4, 5]), np.float32([5, 4, 3, 2, 1])),
        (
            ((_X - _MEAN) / np.sqrt(_VARIANCE + 0.125) * np.float32([1, 2, 3, 4, 5]) + np.float32([5, 4, 3, 2, 1]))
            .astype(np.float32)
            .reshape(1, 2, 3, 5),
        ),
        constant=(1, 2),
    ),
    Case(
        "instances of vectors, channels first",
        InstanceNorm(0.0),
        (np.float32([[[1, 3], [10, 30]]]), np.float32([1]), np.float32([0, 5])),
        (np.float32([[[-1, 1], [4, 6]]]),),
        constant=(1, 2),
    ),
    Case(
        "root mean square",
        RmsNorm(0.0),
        (np.float32([[3, 4], [6, 8]]), np.float32([2, 1])),
        (np.float32([[6, 4], [6, 4]]) / np.sqrt(np.float32([[12.5], [12.5]])),),
        constant=(1,),
    ),
    Case(
        "root mean square and offset",
        RmsNorm(3.0),
        (np.float32([[1, -1]]), np.float32([2]), np.float32([1])),
        (np.float32([[2, 0]]),),
        constant=(1, 2),
    ),
    _resized(
        "twice as large", ResizeBilinear(), _IMAGE, [[1, 1.5, 2, 2], [2, 2.5, 3, 3], [3, 3.5, 4, 4], [3, 3.5, 4, 4]]
    ),
    _resized("corners on corners", ResizeBilinear(align_corners=True), _IMAGE, [[1, 1.5, 2], [2, 2.5, 3], [3, 3.5, 4]]),
    _resized(
        "corners on corners of float64, between which it is computed in float32",
        ResizeBilinear(align_corners=True),
        _IMAGE.astype(np.float64),
        [[1, 1.5, 2], [2, 2.5, 3], [3, 3.5, 4]],
    ),
    _resized("centres on centres", ResizeBilinear(half_pixel_centers=True), _IMAGE, [[2, 2.25, 2.75, 3]]),
    _resized(
        "int8 image",
        ResizeBilinear(half_pixel_centers=True),
        spread((1, 3, 2, 2), -128, 127).astype(np.int8),
        [
            [[-128, -91], [-91, -54], [-54, -17]],
            [[-36, 2], [2, -42], [39, -85]],
            [[-21, 17], [17, -27], [54, -70]],
            [[-88, -51], [-51, -14], [-14, 23]],
        ],
        scaled(0.1, 3),
    ),
    _resized(
        "uint8 image",
        ResizeBilinear(),
        spread((1, 3, 2, 2), 0, 255).astype(np.uint8),
        [
            [[0, 37], [49, 86], [74, 111]],
            [[111, 148], [160, 69], [185, 30]],
            [[94, 131], [143, 95], [168, 77]],
            [[40, 77], [89, 126], [114, 151]],
        ],
        scaled(0.1, 3),
    ),
    _resized(
        "int16 image",
        ResizeBilinear(),
        np.int16([[13636, 19091, 24545, 30000], [-8182, -2727, 2727, 8182]]).reshape(1, 2, 2, 2),
        [
            [[13636, 19091], [20912, 26367], [24545, 30000]],
            [[-916, 4539], [6360, 11815], [9993, 15448]],
            [[-8182, -2727], [-906, 4549], [2727, 8182]],
        ],
        scaled(0.1),
    ),
    _resized("nearest", ResizeNearestNeighbor(), _IMAGE, [[1, 1, 2], [1, 1, 2], [3, 3, 4]]),
    _resized(
        "nearest, corners on corners",
        ResizeNearestNeighbor(align_corners=True),
        _IMAGE,
        [[1, 2, 2], [3, 4, 4], [3, 4, 4]],
    ),
    _resized(
        "nearest, centres on centres",
        ResizeNearestNeighbor(half_pixel_centers=True),
        np.int8([1, 2, 3, 4]).reshape(1, 1, 4, 1),
        [[2, 4]],
        scaled(0.1, 3),
    ),
]
