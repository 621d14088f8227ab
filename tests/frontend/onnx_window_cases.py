"""Nodes of com.microsoft for windows, words of letters, and margins that are an input."""

from __future__ import annotations

from typing import Any

import numpy as np

from .onnx_domain_cases import Constant, floats

_X = floats(4, 6, 7)
_WORDS = np.int32([[3, 1, 4, 1, 5, 0, 0, 0], [2, 7, 0, 0, 0, 0, 0, 0], [1, 0, 3, 4, 5, 6, 0, 0], [*range(1, 9)]])
_LETTERS = (floats(7, 1, 3, 5), floats(7), floats(10, 5))
_PLANE, _FILTERS = floats(1, 3, 5, 5), floats(3, 4, 3, 3)
_MARGINS = np.int64([1, 0, 0, 2])
_STRIDES = {"strides": [2, 2], "output_padding": [1, 1]}

WINDOWED: list[Any] = [
    *(
        ("UnfoldTensor", (_X,), attributes, 1, {0: (0, 1, 2)})
        for attributes in ({"size": 3}, {"size": 2, "dim": -2, "step": 2}, {"size": 4, "dim": 0, "step": 9})
    ),
    ("UnfoldTensor", (np.arange(24).reshape(3, 8),), {"size": 8}, 1, {0: (0,)}),
    ("WordConvEmbedding", (_WORDS, *_LETTERS), {"conv_window_size": 3}, 1, {0: (0, 1)}),
    ("ConvTransposeWithDynamicPads", (_PLANE, _FILTERS, Constant(_MARGINS), floats(4)), _STRIDES, 1, {0: (2, 3)}),
    ("ConvTransposeWithDynamicPads", (floats(1, 3, 5), floats(3, 4, 3), Constant(_MARGINS[:2])), {}, 1, {0: (2,)}),
]
COMPUTED_MARGINS = ("ConvTransposeWithDynamicPads", (_PLANE, _FILTERS, _MARGINS, floats(4)), _STRIDES, 1)

UNSUITED: dict[str, Any] = {
    "windows": ("UnfoldTensor", (_X,), {"size": 9}, 1, "windows of 9 every 1 do not fit dimension 2"),
    "empty windows": ("UnfoldTensor", (_X,), {"size": 0}, 1, "windows of 0 every 1 do not fit"),
    "windows without a step": ("UnfoldTensor", (_X,), {"size": 3, "step": 0}, 1, "windows of 3 every 0 do not fit"),
    "filter of letters": (
        "WordConvEmbedding",
        (_WORDS, *_LETTERS),
        {"embedding_size": 6},
        1,
        "embedding_size is 6 but the filter is f32[7, 1, 3, 5]",
    ),
    "planes of letters": (
        "WordConvEmbedding",
        (_WORDS, floats(7, 2, 3, 5), *_LETTERS[1:]),
        {},
        1,
        "the filter is f32[7, 2, 3, 5], expected [7, 1, 3, 5]",
    ),
    "short words": ("WordConvEmbedding", (_WORDS[:, :2], *_LETTERS), {}, 1, "a window of 3 letters does not fit"),
    "bias of words": ("WordConvEmbedding", (_WORDS, _LETTERS[0], floats(1), _LETTERS[2]), {}, 1, "the bias is f32[1]"),
    "letters": ("WordConvEmbedding", (_WORDS, *_LETTERS[:2], floats(10, 4)), {}, 1, "expected [any, 5]"),
    "margins": (
        "ConvTransposeWithDynamicPads",
        (_PLANE, _FILTERS, Constant(_MARGINS[:3])),
        {},
        1,
        "the tensor of margins is i64[3], expected [4]",
    ),
    "a row to be transposed": (
        "ConvTransposeWithDynamicPads",
        (_PLANE[0, 0], _FILTERS, Constant(_MARGINS)),
        {},
        1,
        "the input is f32[5, 5], expected at least 3 dimensions",
    ),
}
