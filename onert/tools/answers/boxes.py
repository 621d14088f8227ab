"""Boxes: conversions between their forms, and non-maximum suppression."""

from __future__ import annotations

import numpy as np

from onert.ir import Array

IOU = 0.45
"""Intersection over union above which the lower-scored of two boxes of a class is suppressed."""
_CANDIDATES, _KEPT = 3000, 300
_PARTS = 2.0
"""The highest coordinate of boxes in fractions of the plane; with higher ones, boxes are in pixels."""


def corners(boxes: Array) -> Array:
    """Convert `[n, 4]` boxes from (centre x, centre y, width, height) to (top, left, bottom, right)."""
    x, y, width, height = np.moveaxis(boxes.astype(np.float64), -1, 0)
    return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], -1)


def swapped(boxes: Array) -> Array:
    """Convert boxes between (left, top, right, bottom) and (top, left, bottom, right)."""
    return boxes.astype(np.float64)[..., [1, 0, 3, 2]]


def in_parts(boxes: Array, plane: tuple[int, int]) -> tuple[Array, str]:
    """Boxes (top, left, bottom, right) as fractions of the plane, and their unit (pixels if large)."""
    finite = boxes[np.isfinite(boxes)]
    if finite.size and np.abs(finite).max() > _PARTS:
        height, width = plane
        return boxes / np.array([height, width, height, width]), f"pixels of {width}x{height}"
    return boxes, "parts of the picture"


def suppressed(boxes: Array, scores: Array, classes: Array) -> list[int]:
    """Non-maximum suppression within each class: the positions of the remaining boxes, highest score first."""
    order = np.argsort(-scores, kind="stable")[:_CANDIDATES]
    kept: list[int] = []
    area = np.maximum(boxes[:, 2] - boxes[:, 0], 0) * np.maximum(boxes[:, 3] - boxes[:, 1], 0)
    while len(order) and len(kept) < _KEPT:
        best, rest = int(order[0]), order[1:]
        kept.append(best)
        top, left = (np.maximum(boxes[best, side], boxes[rest, side]) for side in (0, 1))
        bottom, right = (np.minimum(boxes[best, side], boxes[rest, side]) for side in (2, 3))
        shared = np.maximum(bottom - top, 0) * np.maximum(right - left, 0)
        union = area[best] + area[rest] - shared
        overlaps = (shared > IOU * union) & (classes[rest] == classes[best])
        order = rest[~overlaps]
    return kept


def sigmoid(x: Array) -> Array:
    """`1 / (1 + exp(-x))` without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x.astype(np.float64))))


def as_scores(values: Array) -> tuple[Array, str]:
    """Values from 0 to 1 unchanged, others through a sigmoid; and a description of what was done."""
    real = values.astype(np.float64)
    if real.size and (real.min() < 0 or real.max() > 1):
        return sigmoid(real), " through a sigmoid"
    return real, ""
