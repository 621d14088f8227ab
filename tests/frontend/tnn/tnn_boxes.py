"""NumPy versions of TNN's PriorBox and DetectionOutput, box by box."""

from __future__ import annotations

import math

import numpy as np

from onert.ir import Array


def prior_box(plane: tuple[int, ...], picture: tuple[int, ...], numbers: list[float]) -> Array:
    words = iter(numbers)
    least, most = ([next(words) for _ in range(int(next(words)))] for _ in range(2))
    next(words), next(words)
    variances, ratios = ([next(words) for _ in range(int(next(words)))] for _ in range(2))
    height, width = plane[2:]
    picture_h, picture_w = picture[2:]
    boxes = []
    for y in range(height):
        for x in range(width):
            centre_x, centre_y = (x + 0.5) * picture_w / width, (y + 0.5) * picture_h / height
            for at, size in enumerate(least):
                sides = [(size, size)] + ([(math.sqrt(size * most[at]),) * 2] if most else [])
                sides += [(size * math.sqrt(r), size / math.sqrt(r)) for r in ratios if r != 1]
                for w, h in sides:
                    boxes += [(centre_x - w / 2) / picture_w, (centre_y - h / 2) / picture_h]
                    boxes += [(centre_x + w / 2) / picture_w, (centre_y + h / 2) / picture_h]
    spread = variances * (len(boxes) // 4)
    return np.array([boxes, spread], np.float32).reshape(1, 2, -1, 1)


def area(box: Array) -> float:
    return float(max(0, box[2] - box[0]) * max(0, box[3] - box[1]))


def overlap(a: Array, b: Array) -> float:
    common = area(np.concatenate([np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])]))
    return common / (area(a) + area(b) - common) if common > 0 else 0.0


def detections(locations: Array, scores: Array, priors: Array, numbers: list[float]) -> Array:
    """Detections of one image with locations shared by all classes and encoded as centre and size."""
    classes, _, background, in_target, _, keep, least, limit, candidates, _ = numbers
    chances = scores.reshape(-1, int(classes))
    decoded = []
    for (x, y, w, h), (x0, y0, x1, y1), spread in zip(locations.reshape(-1, 4), *priors.reshape(2, -1, 4), strict=True):
        factors = np.ones(4) if in_target else spread
        centre_x, centre_y = (x0 + x1) / 2 + factors[0] * x * (x1 - x0), (y0 + y1) / 2 + factors[1] * y * (y1 - y0)
        half_w, half_h = math.exp(factors[2] * w) * (x1 - x0) / 2, math.exp(factors[3] * h) * (y1 - y0) / 2
        decoded.append([centre_x - half_w, centre_y - half_h, centre_x + half_w, centre_y + half_h])
    boxes = np.array(decoded)
    found = []
    for label in range(int(classes)):
        if label == background:
            continue
        order = sorted((b for b in range(len(boxes)) if chances[b, label] > least), key=lambda b: -chances[b, label])
        kept: list[int] = []
        for box in order[: int(candidates)]:
            if all(overlap(boxes[box], boxes[other]) <= limit for other in kept):
                kept.append(box)
        found += [(label, box) for box in kept]
    best = sorted(found, key=lambda one: -chances[one[1], one[0]])[: int(keep)]
    rows = [[0, label, chances[box, label], *boxes[box]] for label, box in sorted(best, key=lambda one: one[0])]
    return np.array(rows or [[0, *[-1] * 6]], np.float32).reshape(1, 1, -1, 7)
