"""Detectors with an output of boxes and one of scores, a row per candidate: DETR and relatives, YOLO-NAS, raw SSD."""

from __future__ import annotations

import numpy as np

from .boxes import IOU, as_scores, corners, in_parts, suppressed, swapped
from .found import Answer, Found, as_box
from .run_outputs import RunOutputs

_MOST_BEFORE = 0.02
"""Boxes are taken as corners if at most this fraction ends before it begins; centres and sizes would do so often."""


def read_queries(outputs: RunOutputs) -> Answer | None:
    """Detections from `[1, n, 4]` boxes and `[1, n, classes]` scores; None for other outputs.

    Boxes are (left, top, right, bottom), unless too many of them would end before they begin; then they are (centre,
    width, height). Scores outside 0 to 1 are logits. A class beyond the labels means "no object".
    """
    if outputs.plane is None or len(outputs.arrays) not in (2, 3):
        return None
    at = next((i for i, a in enumerate(outputs.arrays) if a.ndim == 3 and a.shape[0] == 1 and a.shape[2] == 4), None)
    if at is None:
        return None
    rows = outputs.arrays[at].shape[1]
    scores_at = next(
        (i for i, a in enumerate(outputs.arrays) if i != at and a.ndim == 3 and a.shape[:2] == (1, rows)), None
    )
    if scores_at is None or not all(outputs.arrays[i].dtype.kind == "f" for i in (at, scores_at)):
        return None
    raw = outputs.arrays[at][0]
    before = float(np.mean((raw[:, 2] < raw[:, 0]) | (raw[:, 3] < raw[:, 1])))
    boxes = swapped(raw) if before <= _MOST_BEFORE else corners(raw)
    kind = "left, top, right, bottom" if before <= _MOST_BEFORE else "centre, width, height"
    boxes, unit = in_parts(boxes, outputs.plane)
    values, how = as_scores(outputs.arrays[scores_at][0])
    labels = outputs.labels(scores_at, at)
    if len(labels.names) == values.shape[1] - 1:
        values = values[:, :-1]
    classes = np.argmax(values, 1)
    best = values[np.arange(rows), classes]
    chosen = np.flatnonzero((best >= outputs.least(scores_at, at)) & np.isfinite(boxes).all(1))
    kept = [int(chosen[i]) for i in suppressed(boxes[chosen], best[chosen], classes[chosen])]
    found = [
        Found(int(classes[i]), float(best[i]), labels.of(int(classes[i])), outputs.infos[at].name, as_box(boxes[i]))
        for i in kept[: outputs.wanted.count]
    ]
    names = [repr(outputs.infos[i].name) for i in (at, scores_at)]
    said = (
        f"outputs {names[0]} and {names[1]} are read as {rows} boxes ({kind} in {unit}) and scores of "
        f"{values.shape[1]} classes{how}; overlaps above {IOU} are left out"
    )
    return Answer("detection", said, tuple(found))
