"""Cases of transposed and three-dimensional convolution."""

from __future__ import annotations

import numpy as np
from formulas import convolution, floats, spread, transposed

from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv3d import Conv3D, TransposeConv3D
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D, TransposeConvBias2D

from .case import Case, by_channel, scaled


def _shape(*dims: int) -> np.ndarray:
    return np.array(dims, np.int32)


def _real(name: str, op: TransposeConv2D, x: tuple[int, ...], weight: tuple[int, ...], size: tuple[int, int]) -> Case:
    image, filters, offset = floats(x), floats(weight, 29), floats((weight[0],), 11)
    axes = [(weight[1], op.stride_height, 1), (weight[2], op.stride_width, 1)]
    result = transposed(image, filters, axes, op.padding, size) + offset
    expected = op.activation.apply(result.astype(np.float32))
    output = _shape(x[0], *size, weight[0])
    return Case(name, op, (output, filters, image, offset), (expected,), constant=(0, 1, 3))


def _steps3(op: Conv3D | TransposeConv3D, window: tuple[int, ...]) -> list[tuple[int, int, int]]:
    return [(w, *step) for w, step in zip(window, op.steps, strict=True)]


def _conv3d(name: str, op: Conv3D, x: tuple[int, ...], window: tuple[int, ...], outputs: int) -> Case:
    image, filters, offset = floats(x), floats((*window, x[-1], outputs), 29), floats((outputs,), 11)
    result = convolution(image, filters.transpose(4, 0, 1, 2, 3), _steps3(op, window), op.padding) + offset
    return Case(name, op, (image, filters, offset), (op.activation.apply(result.astype(np.float32)),), constant=(1, 2))


def _transpose3d(
    name: str, op: TransposeConv3D, x: tuple[int, ...], window: tuple[int, ...], size: tuple[int, ...], outputs: int
) -> Case:
    image, filters = floats(x), floats((*window, outputs, x[-1]), 29)
    result = transposed(image, filters.transpose(3, 0, 1, 2, 4), _steps3(op, window), op.padding, size)
    output = _shape(x[0], *size, outputs)
    return Case(name, op, (output, filters, image), (result.astype(np.float32),), constant=(0, 1))


CASES = [
    _real("stride 1", TransposeConv2D(Padding.SAME), (1, 3, 4, 2), (3, 3, 3, 2), (3, 4)),
    _real("stride 2 doubles", TransposeConv2D(Padding.SAME, 2, 2), (2, 3, 2, 2), (2, 3, 3, 2), (6, 4)),
    _real("valid", TransposeConv2D(Padding.VALID, 2, 3), (1, 2, 3, 2), (2, 3, 4, 2), (5, 10)),
    _real("gaps between windows", TransposeConv2D(Padding.VALID, 3, 3), (1, 2, 2, 1), (1, 2, 2, 1), (5, 5)),
    _real("margins fall away", TransposeConv2D(Margins(((2, 0), (0, 1))), 2, 3), (1, 2, 3, 2), (2, 3, 4, 2), (3, 9)),
    _real("relu6", TransposeConv2D(Padding.SAME, 2, 2, Activation.RELU6), (1, 2, 2, 1), (1, 2, 2, 1), (4, 4)),
    Case(
        "int8 by channel",
        TransposeConv2D(Padding.SAME, 2, 2),
        (
            _shape(1, 4, 4, 2),
            spread((2, 3, 3, 2), -127, 127, 101).astype(np.int8),
            spread((1, 2, 2, 2), -128, 127).astype(np.int8),
            spread((2,), -900, 900, 731).astype(np.int32),
        ),
        (
            np.int8(
                [
                    [
                        [[71, 55], [-36, -85], [-58, 26], [-38, -55]],
                        [[-37, -86], [23, -8], [-83, 55], [-2, -9]],
                        [[-43, -78], [-100, 3], [-42, -128], [45, 79]],
                        [[-8, 15], [-27, -9], [-83, -118], [-74, -93]],
                    ]
                ]
            ),
        ),
        (None, by_channel(2), scaled(0.05, 3), scaled(0.001)),
        (scaled(0.1, -20),),
        constant=(0, 1, 3),
    ),
    Case(
        "uint8 without bias",
        TransposeConv2D(Padding.VALID, 1, 1),
        (
            _shape(1, 3, 3, 1),
            spread((1, 2, 2, 2), 0, 255, 101).astype(np.uint8),
            spread((1, 2, 2, 2), 0, 255).astype(np.uint8),
        ),
        (np.uint8([[[[201], [134], [97]], [[23], [30], [201]], [[151], [65], [54]]]]),),
        (None, scaled(0.02, 131), scaled(0.05, 120)),
        (scaled(0.2, 110),),
        constant=(0, 1),
    ),
    Case(
        "int16",
        TransposeConv2D(Padding.SAME, 2, 1),
        (
            _shape(1, 4, 2, 2),
            spread((2, 3, 3, 2), -127, 127, 101).astype(np.int8),
            spread((1, 2, 2, 2), -32768, 32767, 9973).astype(np.int16),
            spread((2,), -90000, 90000, 73133).astype(np.int64),
        ),
        (
            np.int16(
                [
                    [
                        [[4778, -8592], [-21757, -5305]],
                        [[12366, 1270], [-10537, 25811]],
                        [[-32768, -18622], [29755, 5150]],
                        [[-16158, -15639], [-13116, -23493]],
                    ]
                ]
            ),
        ),
        (None, by_channel(2), scaled(0.0005), scaled(1e-5)),
        (scaled(0.001),),
        constant=(0, 1, 3),
    ),
    Case(
        "dynamic range",
        TransposeConv2D(Padding.SAME, 2, 2),
        (
            _shape(1, 4, 4, 1),
            spread((1, 3, 3, 2), -127, 127, 101).astype(np.int8),
            floats((1, 2, 2, 2)),
        ),
        (
            np.float32(
                [
                    [
                        [[3.387402296066284], [-3.529529571533203], [1.5263333320617676], [1.1867549419403076]],
                        [[2.064107894897461], [2.7946765422821045], [-5.127578258514404], [-0.34386274218559265]],
                        [[-0.20378431677818298], [-2.0633628368377686], [5.0530686378479], [-0.37441176176071167]],
                        [[2.1149606704711914], [2.7073140144348145], [-4.964029312133789], [-0.4155784249305725]],
                    ]
                ]
            ),
        ),
        (None, scaled(0.01)),
        constant=(0, 1),
        tolerance=1e-6,
    ),
    Case(
        "MediaPipe's same padding",
        TransposeConvBias2D(Padding.SAME, 2, 2),
        (
            np.float32([[[[1.0], [2.0]], [[3.0], [4.0]]]]),
            np.ones((1, 2, 2, 1), np.float32),
            np.float32([0.5]),
        ),
        # 2 * (2 - 1) + 2 - max(0, 2 - 1 - 1) = 4 rows: the windows are adjacent
        (np.float32([[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]).reshape(1, 4, 4, 1) + np.float32(0.5),),
        constant=(1, 2),
    ),
    Case(
        "MediaPipe's same padding of an odd image",
        TransposeConvBias2D(Padding.SAME, 2, 2),
        (np.float32([1, 2, 3]).reshape(1, 3, 1, 1), np.float32([1, 10, 100]).reshape(1, 3, 1, 1), np.float32([0])),
        # rows: 2 * 2 + 3 - max(0, 3 - 1 - 0) = 5, one of the two removed at the front
        (np.float32([10, 102, 20, 203, 30]).reshape(1, 5, 1, 1),),
        constant=(1, 2),
    ),
    _conv3d("three axes", Conv3D(Padding.SAME), (1, 3, 4, 2, 2), (2, 3, 2), 3),
    _conv3d(
        "strides and relu", Conv3D(Padding.VALID, 1, 2, 1, activation=Activation.RELU), (2, 3, 5, 3, 1), (2, 2, 3), 2
    ),
    _conv3d("dilated", Conv3D(Padding.SAME, 1, 1, 1, 2, 1, 2), (1, 4, 2, 4, 1), (2, 1, 2), 1),
    _transpose3d("three axes back", TransposeConv3D(Padding.SAME, 2, 1, 2), (1, 2, 2, 2, 2), (2, 3, 3), (4, 2, 4), 3),
    _transpose3d("valid back", TransposeConv3D(Padding.VALID, 1, 2, 1), (1, 2, 2, 1, 1), (2, 2, 2), (3, 4, 2), 2),
]
