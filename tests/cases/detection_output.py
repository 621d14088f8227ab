"""Cases of a single-shot detector's output, calculated for squares."""

from __future__ import annotations

import math

import numpy as np

from onert.ir import Array
from onert.ir.ops.vision_audio.detection_output import BoxCode, DetectionOutput

from .case import Case


def _f(*values: object) -> Array:
    return np.array(values, np.float32)


# Squares of side 4: the first two have an overlap of 3 / 5, one is far away; all variances are 0.5.
_PRIORS = _f([0, 0, 4, 4, 0, 1, 4, 5, 8, 8, 12, 12], [0.5] * 12).reshape(1, 2, 12, 1)
_STILL = np.zeros((1, 12), np.float32)
_SCORES = _f([0.1, 0.9, 0.2, 0.8, 0.7, 0.6])
"""Class 0 is the background."""


def _rows(*rows: tuple[float, ...]) -> tuple[Array, ...]:
    return (np.array(rows, np.float32).reshape(1, 1, -1, 7),)


def _case(name: str, op: DetectionOutput, *rows: tuple[float, ...], moved: Array = _STILL) -> Case:
    return Case(name, op, (moved, _SCORES, _PRIORS), _rows(*rows))


_FIRST, _SECOND, _THIRD = (0, 1, 0.9, 0, 0, 4, 4), (0, 1, 0.8, 0, 1, 4, 5), (0, 1, 0.6, 8, 8, 12, 12)

CASES = [
    _case("the worse of two that overlap is dropped", DetectionOutput(2, iou_threshold=0.5), _FIRST, _THIRD),
    _case("enough room for all", DetectionOutput(2, iou_threshold=0.65), _FIRST, _SECOND, _THIRD),
    _case("the best of a picture", DetectionOutput(2, iou_threshold=0.65, keep=2), _FIRST, _SECOND),
    _case("few candidates", DetectionOutput(2, candidates=1), _FIRST),
    _case("scores that are too low", DetectionOutput(2, score_threshold=0.7, iou_threshold=0.65), _FIRST, _SECOND),
    _case("a limit that shrinks", DetectionOutput(2, iou_threshold=0.65, eta=0.5), _FIRST, _THIRD),
    _case("nothing found", DetectionOutput(2, score_threshold=1), (0, *(-1,) * 6)),
    _case(
        "moved and grown",  # the centre by half of a quarter of 4, the size by exp(ln 4 / 2)
        DetectionOutput(2, candidates=1),
        (0, 1, 0.9, -1.5, -2, 6.5, 6),
        moved=_f([0.25, 0, math.log(4), math.log(4), *[0] * 8]),
    ),
    _case(
        "moved by corners",
        DetectionOutput(2, candidates=1, code=BoxCode.CORNER),
        (0, 1, 0.9, 1, 0, 4, 3),
        moved=_f([2, 0, 0, -2, *[0] * 8]),
    ),
    _case(
        "moved by corners on the scale of the box",
        DetectionOutput(2, candidates=1, code=BoxCode.CORNER_SIZE, variance_in_target=True),
        (0, 1, 0.9, 2, 0, 4, 2),
        moved=_f([0.5, 0, 0, -0.5, *[0] * 8]),
    ),
    Case(
        "locations for each class",
        DetectionOutput(2, share_location=False, candidates=1, code=BoxCode.CORNER),
        (_f([9, 9, 9, 9, 2, 2, 2, 2, *[0] * 16]), _SCORES, _PRIORS),
        _rows((0, 1, 0.9, 1, 1, 5, 5)),
    ),
]
