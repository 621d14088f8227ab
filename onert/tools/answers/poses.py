"""Body poses."""

from __future__ import annotations

import numpy as np

from .found import Answer, Found, Point
from .run_outputs import RunOutputs

BODY = 17
"""The number of COCO's body points, which NAMES lists."""


NAMES = (
    "nose", "left eye", "right eye", "left ear", "right ear", "left shoulder", "right shoulder", "left elbow",
    "right elbow", "left wrist", "right wrist", "left hip", "right hip", "left knee", "right knee", "left ankle",
    "right ankle",
)  # fmt: skip


def read_poses(outputs: RunOutputs) -> Answer | None:
    """Poses from MoveNet's outputs: `[1, bodies, 17, 3]` points (y, x, score) as fractions of the picture, or `[1,
    bodies, 56]`, where a box (top, left, bottom, right) and its score follow; None for other outputs."""
    if len(outputs.arrays) != 1 or outputs.arrays[0].dtype.kind != "f":
        return None
    array, name = outputs.arrays[0].astype(np.float64), outputs.infos[0].name
    boxed = array.ndim == 3 and array.shape[0] == 1 and array.shape[2] == 3 * BODY + 5
    if not boxed and not (array.ndim == 4 and array.shape[0] == 1 and array.shape[2:] == (BODY, 3)):
        return None
    labels = outputs.labels(0)
    found = []
    for row in array[0].reshape(array.shape[1], -1):
        if not np.isfinite(row).all():
            continue
        points: tuple[Point, ...] = tuple(
            (float(y), float(x), float(s)) for y, x, s in row[: 3 * BODY].reshape(BODY, 3)
        )
        box = row[3 * BODY :].tolist()
        score = box[4] if boxed else float(np.mean([s for _, _, s in points]))
        if boxed and score < outputs.least(0):
            continue
        corner = (box[0], box[1], box[2], box[3]) if boxed else None
        found.append(Found(0, score, labels.names[0] if labels.names else "body", name, corner, points))
    found.sort(key=lambda one: -one.score)
    said = f"output {name!r} {list(array.shape)} is read as {BODY} points of each body: y, x, score"
    return Answer("keypoints", said, tuple(found[: outputs.wanted.count]))
