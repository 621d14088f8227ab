"""Detectors with built-in non-maximum suppression, whose outputs are final detections."""

from __future__ import annotations

import numpy as np

from onert.frontend.metadata.model_metadata import Box as BoxSaid
from onert.ir import Array

from .boxes import corners, in_parts, swapped
from .found import Answer, Found, as_box
from .run_outputs import RunOutputs

_MOST_ROWS = 4096


def read_lists(outputs: RunOutputs) -> Answer | None:
    """Detections from separate outputs for boxes, classes, scores and optionally their count; None for other outputs.

    TFLite's `TFLite_Detection_PostProcess` writes them in this order, and other exporters in others. Outputs are told
    apart by shape and name, or by classes being whole numbers. Boxes without metadata are (top, left, bottom, right),
    or (left, top, right, bottom) if there is no count, as in torchvision.
    """
    if len(outputs.arrays) not in (3, 4):
        return None
    at = next(
        (i for i, a in enumerate(outputs.arrays) if a.ndim in (2, 3) and a.shape[-1] == 4 and a.dtype.kind == "f"), None
    )
    if at is None or (outputs.arrays[at].ndim == 3 and outputs.arrays[at].shape[0] != 1):
        return None
    boxes = outputs.arrays[at].reshape(-1, 4)
    columns = [i for i, a in enumerate(outputs.arrays) if i != at and a.shape == outputs.arrays[at].shape[:-1]]
    counts = [i for i, a in enumerate(outputs.arrays) if i != at and i not in columns and a.size == 1]
    if (
        len(outputs.arrays) == 4 and len(columns) == 3 and len(boxes) == 1
    ):  # a single detection: the count has its shape
        columns, counts = columns[:2], columns[2:]
    if len(columns) != 2 or len(columns) + len(counts) + 1 != len(outputs.arrays):
        return None
    classes_at, scores_at = _told_apart(outputs, *columns)
    there = len(boxes) if not counts else min(max(int(outputs.arrays[counts[0]].reshape(-1)[0]), 0), len(boxes))
    said = outputs.metadata.output(at).box
    if said is None:
        said = BoxSaid() if counts else None
    corner, written = _corners(boxes[:there], said, outputs.plane, top_first=bool(counts))
    scores, classes = (outputs.arrays[i].reshape(-1)[:there].astype(np.float64) for i in (scores_at, classes_at))
    names = [repr(outputs.infos[i].name) for i in (at, classes_at, scores_at)]
    sentence = (
        f"outputs {names[0]}, {names[1]} and {names[2]} are read as boxes ({written}), classes and scores of "
        f"{there} detections"
    )
    return _answer(outputs, (classes_at, scores_at, at), corner, classes, scores, sentence)


def read_rows(outputs: RunOutputs) -> Answer | None:
    """Detections from rows of 6 numbers (left, top, right, bottom, score, class; class and score may be swapped or come
    first) or 7 (preceded by the picture's number); None for other outputs.

    Written by YOLOv10 and later, YOLOv7 exports that include suppression, and PaddleDetection.
    """
    if len(outputs.arrays) > 2:
        return None
    array = outputs.arrays[0]
    if (
        array.dtype.kind != "f"
        or array.ndim not in (2, 3)
        or array.shape[-1] not in (6, 7)
        or array.size > 7 * _MOST_ROWS
    ):
        return None
    if array.ndim == 3 and array.shape[0] != 1:
        return None
    rows = array.reshape(-1, array.shape[-1]).astype(np.float64)
    box_at = (1, 2, 3, 4) if rows.shape[1] == 7 else (0, 1, 2, 3)
    rest = [i for i in range(1 if rows.shape[1] == 7 else 0, rows.shape[1]) if i not in box_at]
    kept = None
    for boxes_at, (a, b) in ((box_at, rest), ((2, 3, 4, 5), (0, 1))) if rows.shape[1] == 6 else ((box_at, rest),):
        for class_at, score_at in ((b, a), (a, b)):
            if _are_classes(rows[:, class_at]) and _are_scores(rows[:, score_at]) and _ordered(rows[:, list(boxes_at)]):
                kept = kept or (boxes_at, class_at, score_at)
    if kept is None:
        return None
    boxes_at, class_at, score_at = kept
    corner, written = _corners(rows[:, list(boxes_at)], None, outputs.plane, top_first=False)
    sentence = (
        f"output {outputs.infos[0].name!r} {list(array.shape)} is read as {len(rows)} detections: boxes ({written}) in "
        f"columns {boxes_at[0]} to {boxes_at[3]}, scores in {score_at}, classes in {class_at}"
    )
    return _answer(outputs, (0,), corner, rows[:, class_at], rows[:, score_at], sentence)


def _told_apart(outputs: RunOutputs, first: int, second: int) -> tuple[int, int]:
    """The two outputs in the order (classes, scores)."""
    for words in (("class", "label", "categor"), ("score", "conf", "prob")):
        named = [any(w in _name(outputs, i) for w in words) for i in (first, second)]
        if named[0] != named[1]:
            is_first = named[0] == (words[0] == "class")
            return (first, second) if is_first else (second, first)
    whole = [_are_classes(outputs.arrays[i].astype(np.float64)) for i in (first, second)]
    return (second, first) if whole == [False, True] else (first, second)


def _name(outputs: RunOutputs, at: int) -> str:
    return f"{outputs.infos[at].name} {outputs.metadata.output(at).name}".lower()


def _are_classes(numbers: Array) -> bool:
    return bool((numbers == np.rint(numbers)).all() and (numbers >= -1).all())


def _are_scores(numbers: Array) -> bool:
    return bool(((numbers >= 0) & (numbers <= 1)).all())


def _ordered(boxes: Array) -> bool:
    return bool((boxes[:, 2] >= boxes[:, 0]).all() and (boxes[:, 3] >= boxes[:, 1]).all())


def _corners(
    boxes: Array, said: BoxSaid | None, plane: tuple[int, int] | None, *, top_first: bool
) -> tuple[Array, str]:
    """Boxes (top, left, bottom, right) as fractions of the plane, and a description of their original form."""
    if said is None or said == BoxSaid():
        corner = boxes.astype(np.float64) if top_first else swapped(boxes)
        names = "top, left, bottom, right" if top_first else "left, top, right, bottom"
    else:
        ordered = boxes.astype(np.float64)[:, list(said.order)]
        names = {"center": "centre, width, height", "upper_left": "left, top, width, height"}.get(
            said.kind, "left, top, right, bottom"
        )
        if said.kind == "center":
            corner = corners(ordered)
        elif said.kind == "upper_left":
            corner = swapped(np.concatenate([ordered[:, :2], ordered[:, :2] + ordered[:, 2:]], 1))
        else:
            corner = swapped(ordered)
    if plane is None:
        return corner, names
    corner, unit = in_parts(corner, plane)
    return corner, f"{names} in {unit}"


def _answer(
    outputs: RunOutputs, at: tuple[int, ...], boxes: Array, classes: Array, scores: Array, sentence: str
) -> Answer:
    labels, least = outputs.labels(*at), outputs.least(*at)
    order = [
        i for i in np.argsort(-scores, kind="stable").tolist() if scores[i] >= least and np.isfinite(boxes[i]).all()
    ]
    found = [
        Found(
            int(classes[i]), float(scores[i]), labels.of(int(classes[i])), outputs.infos[at[-1]].name, as_box(boxes[i])
        )
        for i in order[: outputs.wanted.count]
    ]
    return Answer("detection", sentence, tuple(found))
