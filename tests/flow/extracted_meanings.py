"""The operations that flows take over from TensorFlow, with their definitions in NumPy."""

from __future__ import annotations

import numpy as np

from flow.meaning import Meaning, case, drawn, whole
from onert.ir import Array


def extracted() -> list[Meaning]:
    x, filters, depthwise_filters = drawn(2, 5, 6, 3), drawn(3, 2, 3, 4), drawn(2, 2, 3, 2)
    largest = x[:, :4, :].reshape(2, 2, 2, 3, 2, 3).max((2, 4))
    mean = x[:, :4, :].reshape(2, 2, 2, 2, 3, 3).mean((2, 4))
    padded = np.pad(x, ((0, 0), (1, 1), (0, 1), (0, 0)))
    plane = {"strides": "1,2,2,1", "padding": "VALID"}
    return [
        case("Conv2D", [x, filters], _convolved(x, filters, 1), constants=(1,), strides="1,1,1,1", padding="VALID"),
        case("Conv2D", [x, filters], _convolved(padded, filters, 1), "same", constants=(1,), padding="SAME"),
        case(
            "Conv2D",
            [x, filters],
            _convolved(padded, filters, 2),
            "with margins",
            constants=(1,),
            strides="[1, 2, 2, 1]",
            padding="EXPLICIT",
            explicit_paddings="0,0,1,1,0,1,0,0",
        ),
        case(
            "DepthwiseConv2dNative",
            [x, depthwise_filters],
            _depthwise(x, depthwise_filters, 2),
            constants=(1,),
            **plane,
        ),
        case("MaxPool", [x], largest, ksize="1,2,2,1", **plane),
        case("Pad", [x[0], whole(0, 0, 1, 2, 0, 1).reshape(3, 2)], np.pad(x[0], ((0, 0), (1, 2), (0, 1)))),
        case("PadV2", [x[0, 0], whole(1, 0, 0, 2).reshape(2, 2), np.float32(7)], _padded_with_sevens(x[0, 0])),
        case("Fill", [whole(2, 3), np.float32(0.5)], np.full((2, 3), 0.5, "f4")),
        case("AvgPool", [x], mean, ksize="1,2,3,1", strides="1,2,3,1", padding="VALID", data_format="NHWC"),
    ]


def _padded_with_sevens(x: Array) -> Array:
    return np.pad(x, ((1, 0), (0, 2)), constant_values=7)


def _windows(x: Array, filters: Array, stride: int) -> Array:
    """The windows of a convolution: [batch, height, width, window height, window width, channels]."""
    view = np.lib.stride_tricks.sliding_window_view(x, filters.shape[:2], (1, 2))
    return view[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)


def _convolved(x: Array, filters: Array, stride: int) -> Array:
    return np.einsum("bhwijc,ijcf->bhwf", _windows(x, filters, stride), filters, optimize=True)


def _depthwise(x: Array, filters: Array, stride: int) -> Array:
    found = np.einsum("bhwijc,ijcf->bhwcf", _windows(x, filters, stride), filters, optimize=True)
    return found.reshape(*found.shape[:3], -1)
