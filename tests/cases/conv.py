"""Cases of two-dimensional convolution, regular and depthwise."""

from __future__ import annotations

from typing import Any

import numpy as np
from formulas import convolution, depthwise, floats, spread

from onert.ir import DType, Quantization
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D

from .case import Case, by_channel, scaled

_Any2D = Conv2D | DepthwiseConv2D


def _real(name: str, op: Conv2D, x: tuple[int, ...], weight: tuple[int, ...], *, bias: bool = True) -> Case:
    """Expected results come from the definition, written as loops."""
    image, filters, offset = floats(x), floats(weight, 29), floats((weight[0],), 11)
    axes = [(weight[1], op.stride_height, op.dilation_height), (weight[2], op.stride_width, op.dilation_width)]
    result = convolution(image, filters, axes, op.padding, x[3] // weight[3]) + (offset if bias else 0)
    expected = op.activation.apply(result.astype(np.float32))
    return Case(name, op, (image, filters, offset if bias else None), (expected,), constant=(1, 2))


def _real_depthwise(name: str, op: DepthwiseConv2D, x: tuple[int, ...], weight: tuple[int, ...]) -> Case:
    image, filters, offset = floats(x), floats(weight, 29), floats((weight[3],), 11)
    axes = [(weight[1], op.stride_height, op.dilation_height), (weight[2], op.stride_width, op.dilation_width)]
    result = depthwise(image, filters, axes, op.padding) + offset
    expected = op.activation.apply(result.astype(np.float32))
    return Case(name, op, (image, filters, offset), (expected,), constant=(1, 2))


_SAME2 = {"padding": Padding.SAME, "stride_height": 2, "stride_width": 2}


def _of_bytes(name: str, op: _Any2D, x: tuple[int, ...], weight: tuple[int, ...], dtype: DType) -> Case:
    """Expected results come from the definition in float64, on dequantised values that are exact in float32."""
    image, filters = spread(x, *dtype.limits, 41).astype(dtype.numpy), spread(weight, -128, 127, 29).astype(np.int8)
    axes = [(weight[1], op.stride_height, op.dilation_height), (weight[2], op.stride_width, op.dilation_width)]
    real = (image.astype(np.float64) - 5) / 4, filters.astype(np.float64) / 8
    single = isinstance(op, DepthwiseConv2D)
    result = depthwise(*real, axes, op.padding) if single else convolution(*real, axes, op.padding, 1)
    expected, axis = result.astype(np.float32), 3 if single else 0
    q = (scaled(0.25, 5), Quantization((0.125,) * weight[axis], (0,) * weight[axis], axis))
    return Case(name, op, (image, filters), (expected,), q, constant=(1,))


def _dynamic(name: str, op: _Any2D, weight: tuple[int, ...], wanted: list[Any], scales: Quantization) -> Case:
    """Floats, which are quantised during the run, and a filter of bytes."""
    parts = floats((2, 2, 2, 2)), spread(weight, -127, 127, 101).astype(np.int8), floats((2,), 11)
    return Case(name, op, parts, (np.float32(wanted),), (None, scales), constant=(1, 2), tolerance=3e-7)


def _stored(
    name: str,
    op: _Any2D,
    dtype: DType,
    x: tuple[int, ...],
    weight: tuple[int, ...],
    wanted: list[Any],
    result: Quantization,
) -> Case:
    """A picture of integers over their whole range; filters have scales by channel, or a zero point if unsigned."""
    axis, long, signed = 3 if isinstance(op, DepthwiseConv2D) else 0, dtype is DType.INT16, dtype is not DType.UINT8
    image = spread(x, *dtype.limits, 9973 if long else 37).astype(dtype.numpy)
    filters = spread(weight, -127, 127, 101).astype(np.int8) if signed else spread(weight, 0, 255, 101).astype(np.uint8)
    count = weight[axis]
    bias = spread((count,), -90000, 90000, 73133) if long else spread((count,), -900, 900, 731).astype(np.int32)
    given = scaled(0.0005) if long else scaled(0.05, 3 if signed else 120)
    scales = by_channel(count, axis) if signed else scaled(0.02, 131)
    q = (given, scales, scaled(1e-5 if long else 0.001))
    expected = np.array([wanted], dtype.numpy)
    return Case(name, op, (image, filters, bias), (expected,), q, (result,), constant=(1, 2))


CASES = [
    _real("pointwise", Conv2D(), (1, 3, 4, 5), (6, 1, 1, 5)),
    _real("same padding", Conv2D(padding=Padding.SAME), (2, 5, 4, 3), (4, 3, 3, 3)),
    _real("valid padding without bias", Conv2D(), (1, 5, 6, 2), (3, 3, 2, 2), bias=False),
    _real("uneven strides", Conv2D(Padding.SAME, 2, 3), (1, 7, 8, 2), (3, 3, 4, 2)),
    _real("dilation", Conv2D(Padding.SAME, 1, 1, 2, 3), (1, 7, 9, 2), (3, 3, 2, 2)),
    _real("dilation and stride", Conv2D(Padding.VALID, 2, 1, 3, 2), (1, 9, 7, 1), (2, 3, 2, 1)),
    _real("groups", Conv2D(Padding.SAME), (1, 4, 4, 6), (4, 3, 3, 3)),
    _real("as many groups as channels", Conv2D(), (1, 3, 3, 4), (8, 2, 2, 1)),
    _real("relu6", Conv2D(activation=Activation.RELU6), (1, 3, 3, 2), (3, 2, 2, 2)),
    _of_bytes("real sums", Conv2D(Padding.SAME, output=DType.FLOAT32), (1, 5, 4, 6), (7, 3, 3, 6), DType.UINT8),
    _of_bytes(
        "real sums of few channels",
        Conv2D(Margins(((1, 0), (0, 2))), 2, 1, output=DType.FLOAT32),
        (2, 6, 5, 3),
        (5, 3, 3, 3),
        DType.INT8,
    ),
    _of_bytes("real sums of pixels", Conv2D(output=DType.FLOAT32), (1, 3, 3, 9), (20, 1, 1, 9), DType.INT8),
    _real("tanh", Conv2D(activation=Activation.TANH), (1, 2, 2, 1), (1, 1, 1, 1)),
    _real("window as large as the image", Conv2D(), (1, 4, 3, 2), (2, 4, 3, 2)),
    _real("empty batch", Conv2D(Padding.SAME), (0, 3, 3, 2), (2, 3, 3, 2)),
    Case(
        "float16 filter",
        Conv2D(),
        (floats((1, 2, 2, 2)), floats((3, 1, 1, 2), 29).astype(np.float16), None),
        (
            convolution(floats((1, 2, 2, 2)), floats((3, 1, 1, 2), 29), [(1, 1, 1)] * 2, Padding.VALID).astype(
                np.float32
            ),
        ),
    ),
    _stored(
        "int8 by channel",
        Conv2D(**_SAME2, activation=Activation.RELU),
        DType.INT8,
        (1, 4, 3, 2),
        (3, 3, 3, 2),
        [[[-20, -20, -20], [-15, -20, 62]], [[-20, -20, -20], [3, -20, 84]]],
        scaled(0.2, -20),
    ),
    _stored(
        "uint8 with zero points",
        Conv2D(),
        DType.UINT8,
        (1, 3, 3, 2),
        (2, 2, 2, 2),
        [[[120, 169], [102, 133]], [[110, 2], [104, 128]]],
        scaled(0.3, 110),
    ),
    Case(
        "int4 filter in groups",
        Conv2D(Padding.SAME),
        (
            spread((1, 2, 3, 4), -128, 127).astype(np.int8),
            spread((4, 3, 3, 2), -8, 7, 5).astype(np.int8),
            spread((4,), -90, 90, 73).astype(np.int32),
        ),
        (
            np.int8(
                [
                    [
                        [[4, 2, -7, 3], [3, 0, 34, -13], [-1, 7, -7, 25]],
                        [[4, 2, 1, -5], [11, 10, 21, 6], [-4, 6, -3, 14]],
                    ]
                ]
            ),
        ),
        (scaled(0.05, -7), by_channel(4, 0), scaled(0.001)),
        (scaled(0.1, 5),),
        dtypes=(DType.INT8, DType.INT4),
        constant=(1, 2),
    ),
    _stored(
        "int16 with int64 bias",
        Conv2D(),
        DType.INT16,
        (1, 2, 3, 2),
        (2, 2, 2, 2),
        [[[2486, 13147], [228, 6822]]],
        scaled(0.002),
    ),
    Case(
        "int16 with int32 bias",
        Conv2D(),
        (
            spread((1, 2, 3, 2), -3276, 3276, 997).astype(np.int16),
            spread((2, 2, 2, 2), -127, 127, 101).astype(np.int8),
            spread((2,), -90000, 90000, 73133).astype(np.int32),
        ),
        (np.int16([[[[91, 2529], [-361, 1264]]]]),),
        (scaled(0.0005), by_channel(2, 0), scaled(1e-5)),
        (scaled(0.001),),
        constant=(1, 2),
    ),
    _dynamic(
        "dynamic range by channel",
        Conv2D(Padding.SAME),
        (2, 3, 3, 2),
        [
            [
                [[1.2310395240783691, -4.399149417877197], [-6.08396053314209, -3.53464937210083]],
                [[-4.753960609436035, -2.1761491298675537], [3.2735390663146973, 4.492851257324219]],
            ],
            [
                [[1.6048922538757324, -4.6635847091674805], [-5.888745307922363, -3.228562831878662]],
                [[-4.346019744873047, -2.5197696685791016], [2.7903432846069336, 4.719752311706543]],
            ],
        ],
        by_channel(2, 0),
    ),
    _dynamic(
        "dynamic range by tensor",
        Conv2D(),
        (2, 2, 1, 2),
        [
            [[[-3.156141757965088, 1.8368110656738281], [-1.6098425388336182, -4.2411417961120605]]],
            [[[-3.536141872406006, 2.293858289718628], [-2.0143306255340576, -3.7806103229522705]]],
        ],
        scaled(0.01),
    ),
    _real("uneven margins", Conv2D(Margins(((0, 2), (3, 1))), 2, 1, 1, 2), (1, 5, 6, 2), (3, 3, 2, 2)),
    _real_depthwise(
        "uneven margins of channels", DepthwiseConv2D(Margins(((1, 0), (0, 1)))), (1, 3, 4, 2), (1, 3, 2, 4)
    ),
    _of_bytes("real sums", DepthwiseConv2D(**_SAME2, output=DType.FLOAT32), (1, 5, 4, 6), (1, 3, 3, 12), DType.UINT8),
    _of_bytes("real sums of one", DepthwiseConv2D(output=DType.FLOAT32), (2, 4, 4, 1), (1, 2, 3, 5), DType.INT8),
    _real_depthwise("each channel alone", DepthwiseConv2D(Padding.SAME), (2, 4, 5, 3), (1, 3, 3, 3)),
    _real_depthwise("two outputs a channel", DepthwiseConv2D(Padding.SAME, 2, 2), (1, 5, 5, 3), (1, 3, 3, 6)),
    _real_depthwise("dilated channels", DepthwiseConv2D(Padding.VALID, 1, 1, 2, 2), (1, 6, 7, 2), (1, 3, 3, 2)),
    _real_depthwise(
        "one channel into many, relu6", DepthwiseConv2D(activation=Activation.RELU6), (1, 3, 4, 1), (1, 2, 3, 4)
    ),
    _stored(
        "int8 channels",
        DepthwiseConv2D(Padding.SAME, 2, 1),
        DType.INT8,
        (1, 4, 3, 2),
        (1, 3, 3, 4),
        [
            [[-80, -1, 60, -93], [59, -34, -53, -43], [-4, -27, -28, -42]],
            [[31, -15, -120, 83], [-66, -53, 53, -34], [39, -75, -30, -61]],
        ],
        scaled(0.2, -20),
    ),
    _stored(
        "uint8 channels",
        DepthwiseConv2D(Padding.SAME),
        DType.UINT8,
        (1, 3, 3, 2),
        (1, 2, 2, 2),
        [[[191, 43], [140, 68], [87, 118]], [[37, 182], [153, 56], [106, 103]], [[20, 126], [166, 122], [132, 110]]],
        scaled(0.2, 110),
    ),
    _stored(
        "int16 channels",
        DepthwiseConv2D(),
        DType.INT16,
        (1, 2, 3, 2),
        (1, 2, 2, 2),
        [[[21398, -21463], [8105, -10054]]],
        scaled(0.001),
    ),
    _dynamic(
        "dynamic range channels",
        DepthwiseConv2D(Padding.SAME),
        (1, 3, 3, 2),
        [
            [
                [[-0.7704803943634033, 0.976975679397583], [-4.015382289886475, -4.314152240753174]],
                [[-2.52518630027771, -4.522407054901123], [1.592411994934082, 0.5604658126831055]],
            ],
            [
                [[-0.7660098075866699, 1.4571728706359863], [-4.105166435241699, -3.9436521530151367]],
                [[-2.1859803199768066, -4.433051109313965], [1.1723628044128418, 0.478374719619751]],
            ],
        ],
        by_channel(2, 3),
    ),
]
