"""Cases of box selection, calculated for squares."""

from __future__ import annotations

import math

import numpy as np

from onert.ir import Array
from onert.ir.ops.vision_audio.detection import DetectionPostProcess, NonMaxSuppression

from .case import Case


def _f(*values: object) -> Array:
    return np.array(values, np.float32)


# Anchors are squares of side 2 centred at (1, 1), (1, 1.5) and (5, 5); the first two have an overlap of 3 / 5 = 0.6.
_ANCHORS = _f([1, 1, 2, 2], [1, 1.5, 2, 2], [5, 5, 2, 2])
_BOXES = _f([0, 0, 2, 2], [0, 0.5, 2, 2.5], [4, 4, 6, 6])
# The first class is the background, which is never detected.
_SCORES = _f([[0.9, 0.8, 0.1], [0.9, 0.7, 0.2], [0, 0.1, 0.6]])


def _post_process(name: str, iou: float, *found: tuple[int, int, float], regular: bool = False) -> Case:
    """`found`: box, class and score of each detection, at most four."""
    boxes, classes, scores = np.zeros((1, 4, 4), np.float32), np.zeros((1, 4), np.float32), np.zeros((1, 4), np.float32)
    for at, (box, label, score) in enumerate(found):
        boxes[0, at], classes[0, at], scores[0, at] = _BOXES[box], label, score
    op = DetectionPostProcess(4, 1, 2, 0.15, iou, 10, 10, 5, 5, regular)
    expected = (boxes, classes, scores, _f(len(found)))
    return Case(name, op, (np.zeros((1, 3, 4), np.float32), _SCORES, _ANCHORS), expected)


# An overlap of 0.6 reduces the second score from 0.7 to 0.7 * exp(-0.6 ** 2 / (2 * 0.5)).
_SOFTENED = 0.7 * math.exp(-0.36)

CASES = [
    _post_process("the worse of two that overlap is dropped", 0.5, (0, 0, 0.8), (2, 1, 0.6)),
    _post_process("enough room for all", 0.7, (0, 0, 0.8), (1, 0, 0.7), (2, 1, 0.6)),
    _post_process("class by class", 0.5, (0, 0, 0.8), (2, 1, 0.6), (1, 1, 0.2), regular=True),
    Case(
        "moved and grown from its anchor",  # centre 1 + 5 / 10 * 2, side 2 * exp(5 * ln 2 / 5)
        DetectionPostProcess(1, 1, 1, 0.1, 0.5, 10, 10, 5, 5),
        (_f([[5, 0, 5 * math.log(2), 0]]), _f([[0.5]]), _f([1, 1, 2, 2])),
        (_f([[0, 0, 4, 2]]), _f([0]), _f([0.5]), _f(1)),
    ),
    Case(
        "padded with 0",
        NonMaxSuppression(),
        (_BOXES, _f(0.7, 0.8, 0.6), np.array(4, np.int32), np.float32(0.5), np.float32(0.1)),
        (np.int32([1, 2, 0, 0]), np.array(2, np.int32)),
        constant=(2,),
    ),
    Case(
        "softened scores",
        NonMaxSuppression(),
        (_BOXES, _f(0.8, 0.7, 0.6), np.array(3, np.int32), np.float32(1), np.float32(0), np.float32(0.5)),
        (np.int32([0, 2, 1]), _f(0.8, 0.6, _SOFTENED), np.array(3, np.int32)),
        constant=(2,),
    ),
]
