"""Detectors in the style of YOLO, whose outputs are raw predictions for every cell of several grids.

Sources: exports of YOLOv5 and v7 (`[1, cells, 5 + classes]`, three boxes per cell, objectness after the box), of YOLOv8
and later (`[1, 4 + classes, cells]`, no objectness), of YOLOv6 and YOLOX (`[1, cells, 5 + classes]`, one box per cell),
their pose heads (points after the classes) and mask heads (32 coefficients after the classes, and an output of
prototypes). The grids have strides 8, 16 and 32, and also 64 in larger models.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from onert.ir import Array
from onert.ir.value import Value

from .boxes import IOU, as_scores, corners, sigmoid, suppressed
from .found import Answer, Found, Point, as_box
from .poses import BODY
from .run_outputs import RunOutputs

_STRIDES = ((8, 16, 32), (8, 16, 32, 64))
_ANCHORS = 3


@frozen(eq=False)
class Head(Value):
    """Predictions for all cells: `rows` is `[cells, numbers]`.

    A row holds the box, the objectness if `objectness` is set, `classes` scores, and then either the numbers of
    `points` (count, numbers per point) or `masks` coefficients. `centers` are the centres (x, y) of the cells and
    `strides` their sizes, both in pixels.
    """

    rows: Array
    centers: Array
    strides: Array
    channels_first: bool
    anchors: int
    objectness: bool
    classes: int
    points: tuple[int, int] | None
    masks: int


def read_heads(outputs: RunOutputs) -> Answer | None:
    """Detections from raw predictions; None if no output has as many rows as the input's grids have cells."""
    if outputs.plane is None:
        return None
    at = next((i for i, a in enumerate(outputs.arrays) if _oriented(a, outputs.plane) is not None), None)
    if at is None:
        return None
    array = outputs.arrays[at]
    prototypes = next((a for i, a in enumerate(outputs.arrays) if i != at and a.ndim == 4 and a.shape[0] == 1), None)
    head = _head(array, outputs, prototypes)
    return None if head is None else _answer(head, outputs, at, prototypes)


def grid(plane: tuple[int, int], strides: tuple[int, ...], anchors: int) -> tuple[Array, Array]:
    """The centres (x, y) of all cells in pixels, and their strides, in the order of a head's rows."""
    centers, sizes = [], []
    for stride in strides:
        rows, columns = (-(-side // stride) for side in plane)
        y, x = np.mgrid[:rows, :columns]
        level = (np.stack([x, y], -1).reshape(-1, 2) + 0.5) * stride
        centers.append(np.tile(level, (anchors, 1)))
        sizes.append(np.full(len(level) * anchors, float(stride)))
    return np.concatenate(centers), np.concatenate(sizes)


def _oriented(array: Array, plane: tuple[int, int]) -> tuple[Array, bool, tuple[int, ...], int] | None:
    """Rows of predictions, whether they were columns, the strides, and the boxes per cell; None for other outputs."""
    if array.dtype.kind != "f" or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[0] != 1):
        return None
    flat = array.reshape(array.shape[-2:])
    for strides in _STRIDES:
        places = sum(-(-plane[0] // s) * -(-plane[1] // s) for s in strides)
        for anchors in (1, _ANCHORS):
            if flat.shape[1] == places * anchors and flat.shape[0] > 4:
                return flat.T, True, strides, anchors
            if flat.shape[0] == places * anchors and flat.shape[1] > 4:
                return flat, False, strides, anchors
    return None


def _head(array: Array, outputs: RunOutputs, prototypes: Array | None) -> Head | None:
    assert outputs.plane is not None
    oriented = _oriented(array, outputs.plane)
    assert oriented is not None
    rows, first, strides, anchors = oriented
    numbers = rows.shape[1] - 4
    labels, said = len(outputs.labels().names), outputs.metadata
    masks = 0
    if prototypes is not None and outputs.wanted.task != "detection":
        masks = next((n for n in (prototypes.shape[1], prototypes.shape[3]) if n == 32 and numbers > n), 0)
    points = said.keypoints if said.task == "pose" or outputs.wanted.task == "keypoints" else None
    if (
        points is None
        and outputs.wanted.task in (None, "keypoints")
        and not masks
        and not labels
        and first
        and numbers == 1 + BODY * 3
    ):
        points = (BODY, 3)
    extra = masks + (points[0] * points[1] if points else 0)
    objectness = anchors == _ANCHORS or (not first and not extra)
    if labels:  # the number of labels decides it
        objectness = numbers - extra - labels == 1
    classes = numbers - extra - objectness
    if classes < 0 or (classes == 0 and not objectness) or (labels and classes != labels):
        return None
    centers, sizes = grid(outputs.plane, strides, anchors)
    return Head(rows, centers, sizes, first, anchors, objectness, classes, points, masks)


def _boxes(head: Head, plane: tuple[int, int]) -> tuple[Array, str, float]:
    """Boxes (top, left, bottom, right) as fractions of the plane, their original form, and 1.0 if that was fractions.

    Most centres of boxes lie near their cells. This shows whether coordinates are in pixels, in fractions, or offsets
    from the cells in strides with sizes as logarithms (YOLOX).
    """
    size = np.array([plane[1], plane[0]], np.float64)
    raw = head.rows[:, :4].astype(np.float64)
    middles = {
        "pixels": raw[:, :2],
        "parts": raw[:, :2] * size,
        "grid": raw[:, :2] * head.strides[:, None] + head.centers - head.strides[:, None] / 2,
    }
    away = {
        how: float(np.median(np.abs(middle - head.centers) / head.strides[:, None])) for how, middle in middles.items()
    }
    if float(np.abs(raw[:, :2]).max(initial=0)) <= 1.5:
        away.pop("pixels")
    else:
        away.pop("parts")
    how = min(away, key=lambda name: away[name])
    if how == "grid":
        with np.errstate(over="ignore"):
            sizes = np.exp(np.minimum(raw[:, 2:], 20)) * head.strides[:, None]
    else:
        sizes = raw[:, 2:] * (size if how == "parts" else 1)
    whole = corners(np.concatenate([middles[how], sizes], 1)) / np.array([*size[::-1], *size[::-1]])
    words = {
        "pixels": f"centre, width and height in pixels of {plane[1]}x{plane[0]}",
        "parts": "centre, width and height in parts of the picture",
        "grid": "offsets from cells of a grid and logarithms of sizes",
    }
    return whole, words[how], 1.0 if how == "parts" else 0.0


def _answer(head: Head, outputs: RunOutputs, at: int, prototypes: Array | None) -> Answer:
    assert outputs.plane is not None
    plane = outputs.plane
    boxes, written, in_parts = _boxes(head, plane)
    start = 4 + head.objectness
    values, how = as_scores(head.rows[:, 4 : start + head.classes])
    scores = values[:, 1:] * values[:, :1] if head.objectness and head.classes else values
    classes = np.argmax(scores, 1)
    best = scores[np.arange(len(scores)), classes]
    best = np.where(np.isfinite(boxes).all(1) & np.isfinite(best), best, -1.0)
    least = max(outputs.least(at), 1e-9)
    chosen = np.flatnonzero(best >= least)
    kept = [int(chosen[i]) for i in suppressed(boxes[chosen], best[chosen], classes[chosen])][: outputs.wanted.count]
    labels, name = outputs.labels(), outputs.infos[at].name
    rest = head.rows[:, start + head.classes :].astype(np.float64)
    found = [
        Found(
            int(classes[i]),
            float(best[i]),
            labels.of(int(classes[i])),
            name,
            as_box(boxes[i]),
            _points(rest[i], head.points, plane, parts=bool(in_parts)),
            _mask(rest[i], boxes[i], prototypes) if head.masks and prototypes is not None else None,
        )
        for i in kept
    ]
    task = "segmentation" if head.masks else "keypoints" if head.points else "detection"
    parts = [
        f"output {name!r} {list(outputs.arrays[at].shape)} is read as a YOLO head of {len(head.rows)} predictions, "
        f"{head.anchors} per cell: boxes ({written})",
        *(["objectness"] if head.objectness else []),
        f"scores of {head.classes or 1} classes{how}",
        *([f"{head.points[0]} points"] if head.points else []),
        *([f"{head.masks} mask coefficients"] if head.masks else []),
    ]
    return Answer(task, f"{', '.join(parts)}; overlaps above {IOU} are left out", tuple(found))


def _points(numbers: Array, shape: tuple[int, int] | None, plane: tuple[int, int], *, parts: bool) -> tuple[Point, ...]:
    """Points as fractions of the plane; their scores are 1 if the output has none."""
    if shape is None:
        return ()
    height, width = (1, 1) if parts else plane
    out = []
    for row in numbers[: shape[0] * shape[1]].reshape(shape):
        score = float(row[2]) if shape[1] > 2 else 1.0
        out.append(
            (
                float(row[1]) / height,
                float(row[0]) / width,
                score if 0 <= score <= 1 else float(sigmoid(np.array(score))),
            )
        )
    return tuple(out)


def _mask(coefficients: Array, box: Array, prototypes: Array) -> Array:
    """The elements of the prototypes' plane that an object covers, within its box."""
    planes = prototypes[0] if prototypes.shape[1] == 32 else np.moveaxis(prototypes[0], -1, 0)
    mask = np.tensordot(coefficients[: len(planes)], planes.astype(np.float64), 1) > 0
    height, width = mask.shape
    y, x = np.mgrid[:height, :width]
    top, left, bottom, right = box * [height, width, height, width]
    inside: Array = mask & (y + 0.5 >= top) & (y + 0.5 < bottom) & (x + 0.5 >= left) & (x + 0.5 < right)
    return inside
