"""Nodes of com.microsoft that choose: regions of pictures, words, different elements; inverses, and gates."""

from __future__ import annotations

from typing import Any

import numpy as np

from .onnx_domain_cases import MICROSOFT, Constant, floats

_REGIONS = np.float32([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.2, 0.5, 0.6, 1.3], [0.9, 0.8, 0.1, 0.2]])
_PICTURES = np.int32([0, 1, 1, 0])
_WORDS = np.int64([[1, 2, 3, 1, 2, 4, 1, 2], [5, 5, 5, 5, 5, 5, 5, 5]])

SELECTED: list[tuple[str, str, tuple[Any, ...], dict[str, Any], int]] = [
    (MICROSOFT, "CropAndResize", (floats(2, 3, 5, 6), _REGIONS, _PICTURES, Constant(np.int32([4, 3]))), {}, 1),
    (
        MICROSOFT,
        "CropAndResize",
        (floats(2, 3, 5, 6), _REGIONS, _PICTURES, Constant(np.int32([3, 1]))),
        {"mode": "nearest", "extrapolation_value": 7.0},
        1,
    ),
    (MICROSOFT, "GatedRMSNorm", (floats(2, 3, 8), floats(8), floats(2, 3, 8)), {"epsilon": 0.01}, 1),
    (MICROSOFT, "GatedRMSNorm", (floats(3, 8), floats(4), floats(3, 8)), {"activation": "sigmoid"}, 1),
    (MICROSOFT, "Inverse", (floats(3, 4, 4),), {}, 1),
    (MICROSOFT, "NGramRepeatBlock", (_WORDS, floats(2, 7)), {"ngram_size": 3}, 1),
    (MICROSOFT, "NGramRepeatBlock", (_WORDS, floats(2, 7)), {"ngram_size": 1}, 1),
    (MICROSOFT, "NGramRepeatBlock", (_WORDS, floats(2, 7)), {"ngram_size": 9}, 1),
    (MICROSOFT, "Unique", (np.float32([2, 1, 1, 3, 4, 3]),), {}, 3),
]
